/**
 * Runs reconcilers: watches what they declare, wakes the parents that a change concerns, and makes one pass for each, many
 * parents at a time. A pass is the whole story of how the cluster changes; it is read from top to bottom in `pass`.
 */
import { ApiError, isAmbiguous, oneLine } from './api-error.ts';
import type { Applied } from './applied.ts';
import { apply } from './apply.ts';
import type { BackoffLimits } from './backoff.ts';
import { hashOf } from './canonical.ts';
import type { Clock, Random } from './clock.ts';
import {
  type Fact,
  type Facts,
  type KubeObject,
  type Observed,
  type Outcome,
  type Resource,
  resourceKey,
} from './contract.ts';
import type { ApiDoor, Change, ObjectView, WatchDoor } from './door.ts';
import { createRecorder } from './events.ts';
import { createFreshness } from './freshness.ts';
import { createInterest, type KindSelection } from './interest.ts';
import type { Log } from './log.ts';
import { type Plan, plan } from './plan.ts';
import { createQueue } from './queue.ts';
import { type AnyReconciler, NAMESPACES, watchesFor } from './rules.ts';
import { createSensors } from './sensors.ts';
import {
  composeStatus,
  isSameStatus,
  REASON_API_UNAVAILABLE,
  REASON_APPLY_FAILED,
  REASON_CHILD_LEAVING,
  REASON_CHILD_REFUSED,
  REASON_INTERNAL_ERROR,
  REASON_UNREADABLE,
  type Trouble,
  transitions,
} from './status.ts';
import { controllerUid, createIndexedStore, type IndexedStore, nameKey } from './store.ts';

export interface EngineOptions {
  readonly reconcilers: readonly AnyReconciler[];
  /** Guarded by leadership (`guardWrites`) where there can be two of us. */
  readonly door: ApiDoor;
  readonly watch: WatchDoor;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly fieldManager: string;
  /** Annotation of children that holds a hash of what was applied last. */
  readonly annotation: string;
  /** Named in events. */
  readonly controller: string;
  readonly instance: string;
  /** Ends everything. */
  readonly signal: AbortSignal;
  /** Narrows what is watched of a kind (`v1/ConfigMap`) to objects with these labels: those of ours, where reads allow it. */
  readonly labelSelectors?: Readonly<Record<string, string>>;
  readonly limits?: Partial<EngineLimits>;
  /** Told after each pass, for metrics. */
  readonly onPass?: (report: PassReport) => void;
}

export interface EngineLimits {
  /** Passes at a time. */
  readonly concurrency: number;
  readonly sensorConcurrency: number;
  readonly backoff: BackoffLimits;
  readonly callTimeoutMs: number;
}

export const ENGINE_LIMITS: EngineLimits = {
  concurrency: 8,
  sensorConcurrency: 16,
  backoff: { firstMs: 500, maxMs: 120_000 },
  callTimeoutMs: 30_000,
};

export interface PassReport {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
  /** `waiting`: our own last write is not seen yet. `idle`: the parent is gone, going, or not to be looked at. */
  readonly result: 'unchanged' | 'changed' | 'held' | 'waiting' | 'idle' | 'failed';
  readonly writes: number;
  readonly ms: number;
}

export interface Engine {
  /** Begin to act; until then only views are filled. */
  readonly lead: () => void;
  /** All views are whole. */
  readonly synced: () => boolean;
  readonly load: () => { readonly ready: number; readonly delayed: number; readonly working: number };
  /** Resolves when no pass runs any more, after the signal. */
  readonly ended: Promise<void>;
}

interface Watched {
  readonly store: IndexedStore;
  readonly view: ObjectView;
}

type PassResult = Pick<PassReport, 'result' | 'writes'>;

/** To look again although nothing may wake us: a watch that is late, or a child on its way out. */
const SOON_MS = 2_000;
/** Failures in a row before one that may pass by itself is shown in the status. */
const SHOWN_AFTER = 4;

export function startEngine(options: EngineOptions): Engine {
  const { reconcilers, door, clock, random, log, signal } = options;
  const limits = { ...ENGINE_LIMITS, ...options.limits };
  const watched = new Map<string, Watched>();
  const needs = new Map(reconcilers.map((reconciler) => [reconciler, watchesFor([reconciler])]));
  const interest = createInterest();
  const freshness = createFreshness(clock.monotonicMs);
  const applied = new Map<string, Applied>();
  const statuses = new Map<string, { readonly wanted: string; readonly stored: string }>();
  const record = createRecorder({ ...options });
  const over = Promise.withResolvers<void>();
  let leads = false;
  let pumping = false;

  const queue = createQueue({ clock, random, backoff: limits.backoff, onReady: pump });
  const sensors = createSensors({
    clock,
    random,
    log,
    concurrency: limits.sensorConcurrency,
    onChange: (key) => queue.add(key),
  });

  for (const resource of watchesFor(reconcilers)) {
    const kind = resourceKey(resource);
    const store = createIndexedStore();
    const labelSelector = options.labelSelectors?.[kind];
    const view = options.watch({
      resource,
      ...(labelSelector === undefined ? {} : { labelSelector }),
      onChange: (change) => {
        store.change(change);
        if (change.type === 'deleted') forgetObject(change.object);
        wake(kind, change);
      },
      onSynced: wakeAll,
      signal,
    });
    watched.set(kind, { store, view });
  }

  signal.addEventListener('abort', close, { once: true });
  if (signal.aborted) close();

  function close(): void {
    queue.close();
    sensors.close();
    if (queue.size().working === 0) over.resolve();
  }

  function forgetObject(object: KubeObject): void {
    const { uid } = object.metadata;
    if (uid === undefined) return;
    applied.delete(uid);
    statuses.delete(uid);
  }

  function kindOf(resource: Pick<Resource, 'apiVersion' | 'kind'>): Watched {
    const found = watched.get(resourceKey(resource));
    if (!found) throw new Error(`${resourceKey(resource)} is not watched.`);
    return found;
  }

  function isSynced(reconciler: AnyReconciler): boolean {
    return (needs.get(reconciler) ?? []).every((resource) => kindOf(resource).view.synced());
  }

  function wakeAll(): void {
    if (!leads) return;
    for (const [index, reconciler] of reconcilers.entries()) {
      if (!isSynced(reconciler)) continue;
      for (const parent of kindOf(reconciler.resource).store.all()) queue.add(keyOf(index, parent));
    }
  }

  function wake(kind: string, change: Change): void {
    if (!leads) return;
    const objects = change.type === 'updated' ? [change.before, change.object] : [change.object];
    for (const object of objects) {
      const owner = controllerUid(object);
      for (const [index, reconciler] of reconcilers.entries()) {
        if (resourceKey(reconciler.resource) === kind) queue.add(keyOf(index, object));
        const parent = owner === undefined ? undefined : kindOf(reconciler.resource).store.byUid(owner);
        if (parent) queue.add(keyOf(index, parent));
      }
      for (const key of interest.of(kind, object)) queue.add(key);
    }
  }

  function pump(): void {
    // Called from within itself when a pass ends at once.
    if (!leads || pumping || signal.aborted) return;
    pumping = true;
    while (queue.size().working < limits.concurrency) {
      const key = queue.take();
      if (key === undefined) break;
      void work(key);
    }
    pumping = false;
  }

  async function work(key: string): Promise<void> {
    const startedMs = clock.monotonicMs();
    const { index, name, namespace } = parseKey(key);
    const reconciler = reconcilers[index];
    let outcome: PassResult = { result: 'failed', writes: 0 };
    try {
      // Unsynced: woken again when it is.
      outcome =
        reconciler && isSynced(reconciler)
          ? await pass(key, reconciler, name, namespace)
          : { result: 'idle', writes: 0 };
    } catch (error) {
      // A defect of ours. It concerns this one parent; the others go on.
      log.error({ key, err: error }, 'a pass failed in an unexpected way');
      queue.retry(key);
    }
    try {
      const kind = reconciler?.resource.kind ?? '';
      options.onPass?.({ kind, name, namespace, ...outcome, ms: clock.monotonicMs() - startedMs });
    } finally {
      queue.done(key);
      if (signal.aborted && queue.size().working === 0) over.resolve();
      pump();
    }
  }

  async function pass(
    key: string,
    reconciler: AnyReconciler,
    name: string,
    namespace: string | undefined,
  ): Promise<PassResult> {
    const raw = kindOf(reconciler.resource).store.get(name, namespace);
    const within = resourceKey(reconciler.resource) === resourceKey(NAMESPACES) ? name : namespace;
    // What is being deleted is the garbage collector's, and nothing can be made in a namespace that ends.
    if (!raw || raw.metadata.deletionTimestamp !== undefined || isEnding(within)) {
      forget(key);
      return { result: 'idle', writes: 0 };
    }
    if (!freshness.isFresh(key, look)) {
      queue.addAfter(key, SOON_MS);
      return { result: 'waiting', writes: 0 };
    }

    const parsed = reconciler.parse(raw);
    if (!parsed.ok) {
      const problem = { reason: REASON_UNREADABLE, message: parsed.problem, stalled: true };
      const accepted = { type: 'Accepted', status: 'False' as const, ...problem };
      const facts = {
        conditions: reconciler.conditions.includes('Accepted') ? [accepted] : [],
        status: recordsOf(raw['status'], reconciler.records ?? []),
      };
      return settle(key, reconciler, raw, facts, problem, { result: 'held', writes: 0 });
    }

    let outcome: Outcome;
    let observed: Observed<never>;
    let isRelearning = false;
    try {
      observed = observe(key, reconciler, raw, parsed.value);
      const sensing = sensors.update(key, reconciler.sensors, observed);
      // A new process has not asked yet what the one before it knew: it takes back nothing that was said or made on that.
      isRelearning = sensing.isRelearning && observedGeneration(raw) === raw.metadata.generation;
      outcome = reconciler.reconcile(observed);
    } catch (error) {
      log.error({ key, err: error }, 'a reconciler failed');
      const problem = { reason: REASON_INTERNAL_ERROR, message: 'The reconciler failed.', stalled: false };
      queue.retry(key);
      return settle(key, reconciler, raw, undefined, problem, { result: 'failed', writes: 0 });
    }
    if (outcome.do === 'hold') {
      if (isRelearning) return { result: 'held', writes: 0 };
      return settle(key, reconciler, raw, outcome.facts, undefined, { result: 'held', writes: 0 });
    }

    const planned = plan({
      parent: raw,
      owns: reconciler.owns,
      wanted: outcome.children,
      kept: outcome.keep ?? [],
      children: observed.children,
      live: (resource, child, where) => kindOf(resource).store.get(child, where),
      applied: (uid) => applied.get(uid),
      annotation: options.annotation,
      nowMs: clock.monotonicMs(),
    });
    watchFor(key, reconciler, parsed.value, outcome.children);
    if (planned.againInMs !== undefined) queue.addAfter(key, planned.againInMs);
    if (planned.steps.length > 0) log.debug({ key, plan: describe(planned) }, 'children are changed');
    const steps = isRelearning ? planned.steps.filter((step) => step.do !== 'delete') : planned.steps;
    const result = await apply(steps, {
      door,
      fieldManager: options.fieldManager,
      signal,
      timeoutMs: limits.callTimeoutMs,
      applied,
      onWritten: (written) => freshness.wrote(key, written),
      nowMs: clock.monotonicMs,
    });
    if (!result.ok) {
      const { step, error, writes } = result;
      const failures = queue.retry(key, error.retryAfterMs);
      log.debug(
        { key, do: step.do, kind: step.resource.kind, code: error.code, problem: error.message },
        'a write failed',
      );
      const trouble = troubleOf(`${step.resource.kind} ${stepName(step)}`, error, failures);
      if (!trouble) return { result: 'failed', writes };
      return settle(key, reconciler, raw, outcome.facts, trouble, { result: 'failed', writes });
    }
    // What was observed is no longer so. The next pass, woken by our own writes, says how it is.
    if (result.writes > 0) {
      queue.addAfter(key, SOON_MS);
      return { result: 'changed', writes: result.writes };
    }
    if (isRelearning) return { result: 'waiting', writes: 0 };
    return settle(key, reconciler, raw, outcome.facts, troubleOfPlan(planned), { result: 'unchanged', writes: 0 });
  }

  function look(kind: string, name: string, namespace: string | undefined) {
    const { store, view } = watched.get(kind) ?? {};
    return { object: store?.get(name, namespace), version: view?.version() };
  }

  /** Where namespaces are watched at all. */
  function isEnding(name: string | undefined): boolean {
    const namespace = name === undefined ? undefined : watched.get(resourceKey(NAMESPACES))?.store.get(name);
    if (!namespace) return false;
    const { phase } = (namespace['status'] ?? {}) as { readonly phase?: unknown };
    return namespace.metadata.deletionTimestamp !== undefined || phase === 'Terminating';
  }

  function observe(key: string, reconciler: AnyReconciler, raw: KubeObject, parent: KubeObject): Observed<never> {
    const uid = raw.metadata.uid ?? '';
    const children = reconciler.owns.map((owned) => [resourceKey(owned), kindOf(owned).store.ownedBy(uid)]);
    // From here on a change of what is read wakes this parent, also if this pass fails.
    watchFor(key, reconciler, parent, []);
    const reads = Object.entries(reconciler.reads).map(([name, read]) => {
      const selection = read.select(parent as never);
      return [name, selection ? kindOf(read.resource).store.select(selection) : []];
    });
    return {
      parent: parent as never,
      children: Object.fromEntries(children),
      reads: Object.fromEntries(reads),
      sensed: sensors.results(key, reconciler.sensors),
    };
  }

  /** Names of children too: whoever has one now may leave, and then it is ours to make. */
  function watchFor(key: string, reconciler: AnyReconciler, parent: KubeObject, children: readonly KubeObject[]): void {
    const selections: KindSelection[] = [];
    for (const read of Object.values(reconciler.reads)) {
      const selection = read.select(parent as never);
      if (selection) selections.push({ kind: resourceKey(read.resource), selection });
    }
    for (const child of children) {
      const { name, namespace } = child.metadata;
      selections.push({
        kind: resourceKey(child),
        selection: { name, ...(namespace === undefined ? {} : { namespace }) },
      });
    }
    interest.set(key, selections);
  }

  /** Ends a pass: the status, where it is not as stored. `facts` undefined: nothing is known but the trouble. */
  async function settle(
    key: string,
    reconciler: AnyReconciler,
    raw: KubeObject,
    facts: Facts | undefined,
    trouble: Trouble | undefined,
    report: PassResult,
  ): Promise<PassResult> {
    const failed = report.result === 'failed';
    const written = await writeStatus(key, reconciler, raw, facts, trouble);
    if (written instanceof ApiError) {
      queue.retry(key, written.retryAfterMs);
      return { ...report, result: 'failed' };
    }
    if (!failed) queue.forget(key);
    return { ...report, writes: report.writes + (written ? 1 : 0) };
  }

  async function writeStatus(
    key: string,
    reconciler: AnyReconciler,
    raw: KubeObject,
    facts: Facts | undefined,
    trouble: Trouble | undefined,
  ): Promise<boolean | ApiError> {
    const { name, namespace, uid, resourceVersion, generation } = raw.metadata;
    if (reconciler.conditions.length === 0 || uid === undefined) return false;
    const before = raw['status'];
    const status = composeStatus({
      before,
      facts: facts ?? keptFacts(before),
      declared: reconciler.conditions,
      marks: reconciler.marks ?? [],
      trouble,
      generation: generation ?? 0,
      nowMs: clock.wallMs(),
    });
    if (isSameStatus(before, status)) return false;
    const wanted = hashOf(withoutTimes(status));
    const known = statuses.get(uid);
    // The API server stores it in other words than ours: that was seen, and writing it again changes nothing.
    if (known?.wanted === wanted && known.stored === hashOf(before ?? null)) return false;
    const metadata = {
      name,
      uid,
      ...(namespace === undefined ? {} : { namespace }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    };
    const object = { apiVersion: raw.apiVersion, kind: raw.kind, metadata, status };
    try {
      const stored = await door.applyStatus(reconciler.resource, object, {
        fieldManager: options.fieldManager,
        // Nobody else writes conditions.
        force: true,
        signal,
        timeoutMs: limits.callTimeoutMs,
      });
      statuses.set(uid, { wanted, stored: hashOf(stored['status'] ?? null) });
      const kind = resourceKey(reconciler.resource);
      const version = stored.metadata.resourceVersion;
      freshness.wrote(key, { kind, name, namespace, uid, resourceVersion: version, atMs: clock.monotonicMs() });
      record(stored, transitions(before, status));
      return true;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      log.debug({ key, code: error.code, problem: error.message }, 'a status could not be written');
      return error;
    }
  }

  function forget(key: string): void {
    interest.set(key, []);
    freshness.forget(key);
    sensors.forget(key);
    queue.forget(key);
  }

  return {
    lead: () => {
      leads = true;
      wakeAll();
      pump();
    },
    synced: () => [...watched.values()].every(({ view }) => view.synced()),
    load: queue.size,
    ended: over.promise,
  };

  function keyOf(index: number, parent: KubeObject): string {
    return `${index}|${nameKey(parent.metadata.name, parent.metadata.namespace)}`;
  }
}

function parseKey(key: string): { index: number; name: string; namespace: string | undefined } {
  const [index = '', rest = ''] = key.split('|', 2);
  const [namespace = '', name = ''] = rest.split('/', 2);
  return { index: Number(index), name, namespace: namespace === '' ? undefined : namespace };
}

/**
 * What the API server said of a write, as users are told it. Undefined for what has not lasted: a view that is a moment
 * behind, or a server that is restarted, must not make Ready flap.
 */
function troubleOf(what: string, error: ApiError, failures: number): Trouble | undefined {
  const message = `${what}: ${error.message}`;
  const passing = error.code === 'conflict' || error.code === 'exists' || error.code === 'gone';
  const away = isAmbiguous(error.code) || error.code === 'tooManyRequests' || error.code === 'unauthorized';
  if (error.code === 'aborted' || ((passing || away) && failures < SHOWN_AFTER)) return undefined;
  if (away) return { reason: REASON_API_UNAVAILABLE, message, stalled: false };
  return { reason: REASON_APPLY_FAILED, message, stalled: !passing };
}

function troubleOfPlan(planned: Plan): Trouble | undefined {
  if (planned.refusals.length > 0) {
    const message = planned.refusals.map((refusal) => refusal.message).join(' ');
    return { reason: REASON_CHILD_REFUSED, message, stalled: true };
  }
  if (planned.leaving.length === 0) return undefined;
  const message = `Waiting until these are gone: ${planned.leaving.join(', ')}.`;
  return { reason: REASON_CHILD_LEAVING, message, stalled: false };
}

function describe(planned: Plan): readonly string[] {
  return planned.steps.map((step) =>
    step.do === 'update'
      ? `update ${step.resource.kind} ${stepName(step)} (${step.because})`
      : `${step.do} ${step.resource.kind} ${stepName(step)}`,
  );
}

function stepName(step: Plan['steps'][number]): string {
  return oneLine(step.do === 'delete' ? step.name : step.object.metadata.name, 253);
}

function observedGeneration(object: KubeObject): unknown {
  const status = object['status'];
  if (typeof status !== 'object' || status === null) return undefined;
  return (status as { readonly observedGeneration?: unknown }).observedGeneration;
}

/** A reconciler that failed said nothing: what was known stays as it is. */
function keptFacts(status: unknown): Facts {
  if (typeof status !== 'object' || status === null) return { conditions: [] };
  const { conditions, observedGeneration: _, ...rest } = status as Record<string, unknown>;
  return { conditions: Array.isArray(conditions) ? conditions.filter(isFact) : [], status: rest };
}

function recordsOf(status: unknown, names: readonly string[]): Record<string, unknown> {
  if (typeof status !== 'object' || status === null) return {};
  return Object.fromEntries(Object.entries(status).filter(([name]) => names.includes(name)));
}

function isFact(value: unknown): value is Fact {
  if (typeof value !== 'object' || value === null) return false;
  const { type, status, reason, message } = value as Record<string, unknown>;
  return [type, status, reason, message].every((field) => typeof field === 'string');
}

function withoutTimes(status: ReturnType<typeof composeStatus>): unknown {
  return { ...status, conditions: status.conditions.map(({ lastTransitionTime: _, ...rest }) => rest) };
}
