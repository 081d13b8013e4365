/**
 * Keeps a set of objects as the API server has it: list in pages, then watch, for ever, whatever breaks. It never stops by
 * itself; it ends with its signal. What it must never do: show a half-read list, miss a deletion, or hammer the server.
 */
import { ApiError } from '../engine/api-error.ts';
import { type BackoffLimits, backoffMs } from '../engine/backoff.ts';
import { type Clock, type Random, sleep } from '../engine/clock.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { Change, ListQuery, ObjectView } from '../engine/door.ts';
import type { Log } from '../engine/log.ts';
import { silentLog } from '../engine/log.ts';
import type { KubeClient } from './client.ts';
import { createStore } from './object-store.ts';
import { systemClock } from './system-clock.ts';

export interface ReflectorOptions<T extends KubeObject = KubeObject> {
  readonly client: Pick<KubeClient, 'listPage' | 'watch'>;
  readonly resource: Resource;
  /** Undefined: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** What to keep of an object, to save memory; metadata's name, namespace, uid and resourceVersion must stay. managedFields are gone before. */
  readonly slim?: (object: KubeObject) => T;
  /** Called after the store has changed, once a change and in order; what it throws is logged and goes no further. */
  readonly onChange?: (change: Change<T>) => void;
  /** Called once, when the first list is whole and its changes were told. */
  readonly onSynced?: () => void;
  readonly signal: AbortSignal;
  readonly log?: Log;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly limits?: Partial<ReflectorLimits>;
}

export interface ReflectorLimits {
  readonly pageSize: number;
  readonly backoff: BackoffLimits;
  /** A watch lasts a random time between these, in seconds; then the server ends it and a new one resumes. */
  readonly watchSeconds: { readonly min: number; readonly max: number };
  /** No byte for this long: the connection is taken for dead. A living server sends a bookmark about each minute. */
  readonly silenceMs: number;
  /** A watch that lasted this long was healthy: failures are counted from zero again. */
  readonly healthyMs: number;
  readonly listTimeoutMs: number;
  readonly maxLineBytes: number;
}

export const REFLECTOR_LIMITS: ReflectorLimits = {
  pageSize: 500,
  backoff: { firstMs: 800, maxMs: 30_000 },
  watchSeconds: { min: 300, max: 600 },
  silenceMs: 90_000,
  healthyMs: 5_000,
  listTimeoutMs: 60_000,
  // etcd takes objects of 1.5 MiB; as JSON with everything escaped they can be several times that.
  maxLineBytes: 16 * 1024 * 1024,
};

export interface Reflector<T extends KubeObject = KubeObject> {
  readonly store: ObjectView<T>;
  /** Resolves when the first list is whole and its changes were told; rejects when the signal comes first. */
  readonly synced: Promise<void>;
  /** When the API server was last heard, on the clock's monotonic scale; 0: never. */
  readonly lastSeenMs: () => number;
  /** Resolves when nothing runs any more, after the signal. */
  readonly ended: Promise<void>;
}

/** Starts at once. */
export function startReflector<T extends KubeObject = KubeObject>(options: ReflectorOptions<T>): Reflector<T> {
  const { client, signal, clock = systemClock, random = Math.random, log = silentLog } = options;
  const limits = { ...REFLECTOR_LIMITS, ...options.limits };
  const query: ListQuery = {
    resource: options.resource,
    ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
    ...(options.labelSelector === undefined ? {} : { labelSelector: options.labelSelector }),
    ...(options.fieldSelector === undefined ? {} : { fieldSelector: options.fieldSelector }),
  };
  const about = {
    kind: options.resource.kind,
    ...(query.namespace === undefined ? {} : { namespace: query.namespace }),
  };
  const store = createStore<T>();
  const synced = Promise.withResolvers<void>();
  // Whoever does not wait for it must not crash the process at its end.
  synced.promise.catch(() => {});
  let lastSeenMs = 0;
  let failures = 0;
  let toldSynced = false;

  const seen = () => {
    lastSeenMs = clock.monotonicMs();
  };

  function tell(changes: readonly Change<T>[]): void {
    for (const change of changes) guarded(change.object.metadata.name, () => options.onChange?.(change));
  }

  function guarded(name: string, listener: () => void): void {
    try {
      listener();
    } catch (error) {
      log.error({ ...about, err: error, name }, 'a listener of a watch failed');
    }
  }

  async function list(): Promise<void> {
    const objects: T[] = [];
    let next: string | undefined;
    let version = '';
    do {
      const page = await client.listPage(
        query,
        { limit: limits.pageSize, continue: next },
        { signal, timeoutMs: limits.listTimeoutMs },
      );
      seen();
      for (const item of page.items) objects.push(kept(item));
      next = page.continue;
      version = page.resourceVersion;
    } while (next !== undefined);
    tell(store.replaceAll(objects, version));
    if (!toldSynced) {
      toldSynced = true;
      synced.resolve();
      guarded('', () => options.onSynced?.());
    }
  }

  /** Reads one watch to its end; what ended it early, if anything. The store's version is where to resume. */
  async function watchFrom(start: string): Promise<ApiError | undefined> {
    const ending = new AbortController();
    const end = () => ending.abort();
    signal.addEventListener('abort', end, { once: true });
    let silent = false;
    let heardMs = clock.monotonicMs();
    let cancel = () => {};
    const check = () => {
      const quietMs = clock.monotonicMs() - heardMs;
      if (quietMs >= limits.silenceMs) {
        silent = true;
        ending.abort();
      } else {
        cancel = clock.after(limits.silenceMs - quietMs, check);
      }
    };
    check();
    try {
      const events = client.watch(query, {
        resourceVersion: start,
        timeoutSeconds: watchSeconds(),
        signal: ending.signal,
        maxLineBytes: limits.maxLineBytes,
        onBytes: () => {
          heardMs = clock.monotonicMs();
          seen();
        },
      });
      for await (const event of events) {
        if (event.type === 'BOOKMARK') {
          store.reach(event.resourceVersion);
          continue;
        }
        const object = kept(event.object);
        const changes = event.type === 'DELETED' ? store.remove(object) : store.put(object);
        store.reach(event.object.metadata.resourceVersion);
        tell(changes);
      }
      return undefined;
    } catch (error) {
      if (silent) return new ApiError('timeout', `Nothing was heard for ${limits.silenceMs} ms.`);
      if (error instanceof ApiError) return error;
      throw error;
    } finally {
      cancel();
      signal.removeEventListener('abort', end);
    }
  }

  function watchSeconds(): number {
    const { min, max } = limits.watchSeconds;
    return Math.round(min + random() * (max - min));
  }

  function kept(item: KubeObject): T {
    const { managedFields: _, ...metadata } = item.metadata;
    const bare: KubeObject = { ...item, metadata: metadata as KubeObject['metadata'] };
    return options.slim ? options.slim(bare) : (bare as T);
  }

  async function pause(failure: ApiError | undefined): Promise<void> {
    failures += 1;
    const ms = Math.max(backoffMs(failures, limits.backoff, random), failure?.retryAfterMs ?? 0);
    if (failure) {
      const fields = { ...about, code: failure.code, problem: failure.message, retryMs: Math.round(ms) };
      if (failures > 3) log.warn(fields, 'a watch is interrupted');
      else log.debug(fields, 'a watch is interrupted');
    }
    await sleep(clock, ms, signal);
  }

  async function run(): Promise<void> {
    let listed = false;
    while (!signal.aborted) {
      try {
        if (!listed) await list();
        listed = true;
        const startedMs = clock.monotonicMs();
        const failure = await watchFrom(store.version() ?? '0');
        if (signal.aborted) return;
        const healthy = clock.monotonicMs() - startedMs >= limits.healthyMs;
        if (healthy) failures = 0;
        if (failure && mustList(failure)) listed = false;
        // A watch that ended in good order after a while is resumed at once; one that ends at once is not.
        if (failure || !healthy) await pause(failure);
      } catch (error) {
        if (signal.aborted) return;
        // A continue token that ran out, or anything unexpected: from the start.
        await pause(error instanceof ApiError ? error : unexpected(error));
      }
    }
  }

  function unexpected(error: unknown): ApiError {
    log.error({ ...about, err: error }, 'a watch failed in an unexpected way');
    return new ApiError('malformed', 'The watch failed in an unexpected way.', { cause: error });
  }

  const ended = run()
    .catch((error: unknown) => {
      if (!signal.aborted) log.error({ ...about, err: error }, 'a watch ended in an unexpected way');
    })
    .finally(() => synced.reject(signal.reason));

  return { store, synced: synced.promise, lastSeenMs: () => lastSeenMs, ended };
}

/**
 * Whether to list anew rather than resume: the server no longer (or not yet: a restored backup) knows the version, or what
 * it sends from there cannot be read and would not be the next time either.
 */
function mustList(failure: ApiError): boolean {
  if (failure.code === 'gone' || failure.code === 'invalid' || failure.code === 'malformed') return true;
  return failure.status === 504 && failure.reason === 'Timeout';
}
