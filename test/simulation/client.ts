/**
 * One process' way to the simulated API server: calls take time, fail and are cut off as a test says, and watches see the log
 * late, not at all for a while, or with events merged.
 */
import { ApiError } from '../../src/engine/api-error.ts';
import { type Random, sleep } from '../../src/engine/clock.ts';
import { resourceKey } from '../../src/engine/contract.ts';
import type { ApiDoor, CallOptions, Change, WatchDoor, WatchRequest } from '../../src/engine/door.ts';
import { createStore } from '../../src/kube/object-store.ts';
import type { ApiServer, Entry } from './api-server.ts';
import type { ProcessClock } from './fake-clock.ts';

/** What happens to a write: it counts from 1 in each client. */
export type WriteFault = (write: number) =>
  | { readonly kind: 'crash-before' | 'crash-after' }
  /** The error is what the client sees, with or without the write having been done. */
  | { readonly kind: 'error'; readonly error: ApiError; readonly committed: boolean }
  | undefined;

export interface ClientOptions {
  readonly server: ApiServer;
  readonly clock: ProcessClock;
  readonly random: Random;
  readonly name: string;
  readonly fault?: WriteFault;
  /** How late watches are, at least and at most. */
  readonly lagMs?: readonly [number, number];
  readonly onCrash?: () => void;
}

export interface Client {
  readonly door: ApiDoor;
  readonly watch: WatchDoor;
  readonly writes: () => number;
  /** Views stay as they are, and new ones show the state of then: an API server that is behind. */
  readonly freeze: (version: number) => void;
  /** Views catch up: event by event, or by a new list, in which what came and went in between is not seen. */
  readonly thaw: (how: 'events' | 'list') => void;
}

const LATENCY_MS: readonly [number, number] = [1, 6];

export function createClient(options: ClientOptions): Client {
  const { server, clock, random, name } = options;
  const lagMs = options.lagMs ?? [1, 30];
  const catchUps = new Set<(how: 'events' | 'list') => void>();
  let frozenAt: number | undefined;
  let writes = 0;

  const between = ([min, max]: readonly [number, number]) => min + random() * (max - min);

  async function call<T>(work: () => T, given: CallOptions | undefined, isWrite: boolean): Promise<T> {
    const signal = given?.signal;
    if (signal?.aborted) throw new ApiError('aborted', 'The call was given up.');
    const half = () =>
      sleep(clock, between(LATENCY_MS), signal).catch(() => {
        throw new ApiError('aborted', 'The call was given up.');
      });
    await half();
    if (!isWrite) return work();
    writes += 1;
    const fault = options.fault?.(writes);
    if (fault?.kind === 'crash-before') return await crash();
    if (fault?.kind === 'error' && !fault.committed) {
      await half();
      throw fault.error;
    }
    let result: { readonly value: T } | { readonly error: unknown };
    try {
      result = { value: work() };
    } catch (error) {
      result = { error };
    }
    if (fault?.kind === 'crash-after') return await crash();
    await half();
    if (fault?.kind === 'error') throw fault.error;
    if ('error' in result) throw result.error;
    return result.value;
  }

  function crash(): Promise<never> {
    options.onCrash?.();
    // Nobody is there to read an answer.
    return new Promise(() => {});
  }

  const door: ApiDoor = {
    get: (ref, given) =>
      call(
        () => {
          const found = server.get(resourceKey(ref.resource), ref.name, ref.namespace);
          if (!found) throw new ApiError('notFound', `${ref.resource.kind} ${ref.name} not found`, { status: 404 });
          return found;
        },
        given,
        false,
      ),
    list: (query, given) =>
      call(
        () => ({ items: server.list(resourceKey(query.resource)), resourceVersion: String(server.version()) }),
        given,
        false,
      ),
    create: (_, object, given) => call(() => server.create(object, name), given, true),
    apply: (_, object, given) => call(() => server.apply(object, { ...given, by: name }), given, true),
    applyStatus: (_, object, given) =>
      call(() => server.apply(object, { ...given, by: name, subresource: 'status' }), given, true),
    replace: (_, object, given) => call(() => server.replace(object, name), given, true),
    replaceStatus: (_, object, given) => call(() => server.replace(object, name, 'status'), given, true),
    delete: (ref, given) => call(() => server.delete(ref, name, given), given, true),
  };

  function watch(request: WatchRequest) {
    const kind = resourceKey(request.resource);
    const store = createStore();
    // The index in the log from which events are still to be seen.
    let cursor = 0;
    let scheduled = false;

    const tell = (changes: readonly Change[]) => {
      for (const change of changes) request.onChange(change);
    };
    const list = (version: number) => {
      const first = !store.synced();
      tell(store.replaceAll(server.listAt(kind, version), String(version)));
      const next = server.log.findIndex((entry) => entry.version > version);
      cursor = next === -1 ? server.log.length : next;
      if (first) request.onSynced();
    };
    const see = (entry: Entry) => {
      if (entry.kind !== kind) return;
      const changes = entry.type === 'DELETED' ? store.remove(entry.object) : store.put(entry.object);
      store.reach(String(entry.version));
      tell(changes);
    };
    const drain = () => {
      scheduled = false;
      if (request.signal.aborted || frozenAt !== undefined) return;
      for (let entry = server.log[cursor]; entry; entry = server.log[cursor]) {
        cursor += 1;
        see(entry);
      }
    };
    const schedule = () => {
      if (scheduled || request.signal.aborted || frozenAt !== undefined || !store.synced()) return;
      scheduled = true;
      clock.after(between(lagMs), drain);
    };
    clock.after(between(LATENCY_MS), () => {
      if (request.signal.aborted) return;
      list(frozenAt ?? server.version());
      schedule();
    });
    server.onEntry(schedule);
    catchUps.add((how) => {
      if (request.signal.aborted || !store.synced()) return;
      if (how === 'list') list(server.version());
      schedule();
    });
    return store;
  }

  return {
    door,
    watch,
    writes: () => writes,
    freeze: (version) => {
      frozenAt = version;
    },
    thaw: (how) => {
      frozenAt = undefined;
      for (const catchUp of catchUps) catchUp(how);
    },
  };
}
