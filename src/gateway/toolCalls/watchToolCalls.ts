/** Follows open ToolCalls: those of the own node by a watch, the others by a list now and then. */
import { setTimeout as sleep } from 'node:timers/promises';
import { apiErrorCode } from '../../engine/api-error.ts';
import type { KubeObject } from '../../engine/contract.ts';
import type { Log } from '../../engine/log.ts';
import type { KubeClient } from '../../kube/client.ts';
import { startReflector } from '../../kube/reflector.ts';
import { LABEL_NODE, nodeLabel, OPEN_CALLS, TOOL_CALL } from './toolCallObject.ts';
import type { Upkeep } from './upkeep.ts';

export interface WatchToolCallsOptions {
  readonly client: KubeClient;
  readonly upkeep: Pick<Upkeep, 'put' | 'remove' | 'sweep'>;
  readonly ownNode: string;
  readonly signal: AbortSignal;
  readonly log: Log;
  readonly sweepMs?: number;
}

const SWEEP_MS = 60_000;
const PAGE = 500;
const MOST_PAGES = 10;

export function watchToolCalls(options: WatchToolCallsOptions): { readonly ended: Promise<void> } {
  const { client, upkeep, ownNode, signal, log } = options;
  const reflector = startReflector({
    client,
    resource: TOOL_CALL,
    labelSelector: `${LABEL_NODE}=${nodeLabel(ownNode)}`,
    fieldSelector: OPEN_CALLS,
    signal,
    log,
    onChange: (change) => {
      if (change.type === 'deleted') upkeep.remove(change.object);
      else upkeep.put(change.object);
    },
  });
  return { ended: Promise.all([reflector.ended, sweepOthers(options)]).then(() => {}) };
}

async function sweepOthers({ client, upkeep, ownNode, signal, log, sweepMs = SWEEP_MS }: WatchToolCallsOptions) {
  const query = {
    resource: TOOL_CALL,
    labelSelector: `${LABEL_NODE}!=${nodeLabel(ownNode)}`,
    fieldSelector: OPEN_CALLS,
  };
  while (!signal.aborted) {
    // Not all gateways at once.
    await sleep(sweepMs * (0.75 + Math.random() / 2), undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    try {
      const found: KubeObject[] = [];
      let next: string | undefined;
      for (let pages = 0; pages < MOST_PAGES; pages += 1) {
        const page = await client.listPage(query, { limit: PAGE, continue: next }, { signal });
        found.push(...page.items);
        next = page.continue;
        if (next === undefined) break;
      }
      upkeep.sweep(found);
    } catch (error) {
      if (!signal.aborted) log.warn({ code: apiErrorCode(error) }, 'cannot list calls that may have been left');
    }
  }
}
