/** Calls that run now, so that a Stop ends those it is for at once. */
import type { Catalog } from './catalog/catalog.ts';
import type { CompiledStop } from './catalog/stop.ts';
import type { Principal } from './principal.ts';

export interface RunningCall {
  /** Aborted when the client gives up, or a Stop is for it. */
  readonly signal: AbortSignal;
  /** The Stop that ended it. */
  readonly stopped: () => CompiledStop | undefined;
  /** Once it has ended, however it did. */
  readonly leave: () => void;
}

export interface RunningCalls {
  readonly enter: (principal: Principal, toolId: string, client: AbortSignal) => RunningCall;
  readonly close: () => void;
}

interface Entry {
  readonly principal: Principal;
  readonly toolId: string;
  readonly controller: AbortController;
  stop: CompiledStop | undefined;
}

/** Follows the catalog: a call that is made while a Stop is there is the decision's affair. */
export function createRunningCalls(catalog: Pick<Catalog, 'onChange' | 'stopFor' | 'hasStops'>): RunningCalls {
  const entries = new Set<Entry>();
  const sweep = (): void => {
    if (!catalog.hasStops()) return;
    for (const entry of entries) {
      if (entry.stop !== undefined) continue;
      entry.stop = catalog.stopFor(entry.principal.namespace, entry.principal.serviceAccount, entry.toolId);
      if (entry.stop !== undefined) entry.controller.abort();
    }
  };
  // Of any object: a Tool may have become part of a stopped Plugin, an account that of a stopped Agent.
  const unfollow = catalog.onChange(sweep);
  return {
    enter: (principal, toolId, client) => {
      const controller = new AbortController();
      const entry: Entry = { principal, toolId, controller, stop: undefined };
      const giveUp = (): void => controller.abort();
      if (client.aborted) giveUp();
      else client.addEventListener('abort', giveUp, { once: true });
      entries.add(entry);
      return {
        signal: controller.signal,
        stopped: () => entry.stop,
        leave: () => {
          entries.delete(entry);
          client.removeEventListener('abort', giveUp);
        },
      };
    },
    close: unfollow,
  };
}
