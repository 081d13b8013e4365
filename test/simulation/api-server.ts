/**
 * An API server in memory: an ordered log of what was committed, integer versions, optimistic concurrency, server-side apply, uids,
 * generations, the status subresource, and garbage collection by owner. Synchronous; who calls it from afar goes through a `Client`.
 */
import { ApiError } from '../../src/engine/api-error.ts';
import { canonical } from '../../src/engine/canonical.ts';
import type { Clock } from '../../src/engine/clock.ts';
import { type KubeObject, type ObjectMeta, type Resource, resourceKey } from '../../src/engine/contract.ts';
import type { DeleteOptions, ObjectRef } from '../../src/engine/door.ts';
import { timestamp } from '../../src/engine/status.ts';
import { applyFields, type Json, type Managers, ownChanges } from './managed-fields.ts';

export interface Entry {
  readonly version: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly kind: string;
  readonly object: KubeObject;
  /** Who wrote it. */
  readonly by: string;
  readonly atMs: number;
}

export interface ApplyRequest {
  readonly by: string;
  readonly fieldManager: string;
  readonly force: boolean;
  readonly onlyCreate?: boolean;
  readonly subresource?: 'status';
}

export interface ApiServer {
  readonly log: readonly Entry[];
  readonly version: () => number;
  readonly get: (kind: string, name: string, namespace: string | undefined) => KubeObject | undefined;
  readonly list: (kind: string) => readonly KubeObject[];
  /** As it was when the log had come to that version. */
  readonly listAt: (kind: string, version: number) => readonly KubeObject[];
  readonly create: (object: KubeObject, by: string) => KubeObject;
  readonly apply: (object: KubeObject, request: ApplyRequest) => KubeObject;
  readonly replace: (object: KubeObject, by: string, subresource?: 'status') => KubeObject;
  readonly delete: (ref: ObjectRef, by: string, preconditions?: Partial<DeleteOptions>) => void;
  /** Changes an object as `kubectl edit` does; throws when it is not there. */
  readonly edit: (ref: ObjectRef, by: string, change: (object: KubeObject) => KubeObject) => KubeObject;
  /** Called after each entry of the log. */
  readonly onEntry: (listener: (entry: Entry) => void) => void;
  /** What the server or a webhook does to whatever is written. */
  readonly admit: (mutate: (object: KubeObject) => KubeObject) => void;
}

interface Stored {
  readonly object: KubeObject;
  readonly managers: Managers;
}

const GC_DELAY_MS = 40;

export function createApiServer(clock: Clock): ApiServer {
  const objects = new Map<string, Map<string, Stored>>();
  const log: Entry[] = [];
  const listeners: ((entry: Entry) => void)[] = [];
  let version = 100;
  let uids = 0;
  let mutate = (object: KubeObject) => object;

  const of = (kind: string) => {
    const held = objects.get(kind) ?? new Map<string, Stored>();
    objects.set(kind, held);
    return held;
  };
  const keyOf = (name: string, namespace: string | undefined) => `${namespace ?? ''}/${name}`;

  function commit(type: Entry['type'], object: KubeObject, managers: Managers, by: string): KubeObject {
    version += 1;
    const kind = resourceKey(object);
    const stamped = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
    const key = keyOf(object.metadata.name, object.metadata.namespace);
    if (type === 'DELETED') of(kind).delete(key);
    else of(kind).set(key, { object: stamped, managers });
    const entry = { version, type, kind, object: stamped, by, atMs: clock.monotonicMs() };
    log.push(entry);
    for (const listener of listeners) listener(entry);
    if (type === 'DELETED' || type === 'ADDED') clock.after(GC_DELAY_MS, collectGarbage);
    return stamped;
  }

  function collectGarbage(): void {
    const alive = new Set(
      [...objects.values()].flatMap((held) => [...held.values()].map((s) => s.object.metadata.uid)),
    );
    for (const held of objects.values()) {
      for (const { object, managers } of [...held.values()]) {
        const owners = object.metadata.ownerReferences ?? [];
        if (owners.length > 0 && owners.every((owner) => !alive.has(owner.uid))) {
          commit('DELETED', object, managers, 'garbage-collector');
        }
      }
    }
  }

  function required(object: { readonly metadata: ObjectMeta } & Pick<KubeObject, 'apiVersion' | 'kind'>): Stored {
    const stored = of(resourceKey(object)).get(keyOf(object.metadata.name, object.metadata.namespace));
    if (!stored) throw new ApiError('notFound', `${object.kind} ${object.metadata.name} not found`, { status: 404 });
    return stored;
  }

  function check(live: KubeObject, given: { readonly uid?: string; readonly resourceVersion?: string }): void {
    const { uid, resourceVersion } = live.metadata;
    if (given.uid !== undefined && given.uid !== uid) throw conflict(live, 'the uid is another');
    if (given.resourceVersion !== undefined && given.resourceVersion !== resourceVersion) {
      throw conflict(live, 'the object has been modified');
    }
  }

  function added(object: KubeObject, managers: (object: KubeObject) => Managers, by: string): KubeObject {
    uids += 1;
    const { status: _, ...rest } = mutate(object);
    const created = {
      ...rest,
      metadata: {
        ...rest.metadata,
        uid: `uid-${uids}`,
        generation: 1,
        creationTimestamp: timestamp(clock.wallMs()),
      },
    };
    return commit('ADDED', created, managers(created), by);
  }

  /** The new object with what the server keeps; undefined when nothing changed. */
  function changed(live: KubeObject, next: KubeObject, subresource: 'status' | undefined): KubeObject | undefined {
    const body = subresource === 'status' ? { ...live, status: next['status'] } : { ...next, status: live['status'] };
    const admitted = subresource === 'status' ? body : mutate(body);
    const { uid, creationTimestamp, generation, resourceVersion, deletionTimestamp } = live.metadata;
    const kept = { uid, creationTimestamp, generation, resourceVersion, deletionTimestamp };
    const whole = clean({ ...admitted, metadata: { ...admitted.metadata, ...kept } as ObjectMeta });
    if (canonical(whole) === canonical(live)) return undefined;
    const bumped = canonical(bare(whole)) !== canonical(bare(live));
    return bumped ? { ...whole, metadata: { ...whole.metadata, generation: (generation ?? 0) + 1 } } : whole;
  }

  const server: ApiServer = {
    log,
    version: () => version,
    get: (kind, name, namespace) => of(kind).get(keyOf(name, namespace))?.object,
    list: (kind) => [...of(kind).values()].map((stored) => stored.object),
    listAt: (kind, at) => {
      const then = new Map<string, KubeObject>();
      for (const entry of log) {
        if (entry.version > at) break;
        if (entry.kind !== kind) continue;
        const key = keyOf(entry.object.metadata.name, entry.object.metadata.namespace);
        if (entry.type === 'DELETED') then.delete(key);
        else then.set(key, entry.object);
      }
      return [...then.values()];
    },
    create: (object, by) => {
      if (of(resourceKey(object)).has(keyOf(object.metadata.name, object.metadata.namespace))) {
        throw new ApiError('exists', `${object.kind} ${object.metadata.name} already exists`, { status: 409 });
      }
      return added(object, (created) => ownChanges({}, fieldsOf(created), new Map(), by), by);
    },
    apply: (object, request) => {
      const { uid, resourceVersion, ...metadata } = object.metadata;
      const wanted = { ...object, metadata };
      const live = of(resourceKey(object)).get(keyOf(metadata.name, metadata.namespace));
      if (!live) {
        if (uid !== undefined) throw conflict(object, 'the uid is given, and there is no object');
        if (request.subresource) required(object);
        const outcome = applyFields({}, new Map(), request.fieldManager, fieldsOf(wanted), false);
        const managers = outcome.ok ? outcome.managers : new Map();
        return added(wanted, () => managers, request.by);
      }
      if (request.onlyCreate) throw conflict(object, 'the object has been modified');
      check(live.object, {
        ...(uid === undefined ? {} : { uid }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      });
      const manager = request.subresource ? `${request.fieldManager}/status` : request.fieldManager;
      const part = request.subresource ? { status: object['status'] } : fieldsOf(wanted);
      const outcome = applyFields(fieldsOf(live.object), live.managers, manager, part, request.force);
      if (!outcome.ok) throw conflict(object, `owned by others: ${outcome.conflicts.join(', ')}`);
      const merged = { ...outcome.object, apiVersion: object.apiVersion, kind: object.kind } as unknown as KubeObject;
      const next = changed(live.object, merged, request.subresource);
      if (next) return commit('MODIFIED', next, outcome.managers, request.by);
      of(resourceKey(object)).set(keyOf(metadata.name, metadata.namespace), { ...live, managers: outcome.managers });
      return live.object;
    },
    replace: (object, by, subresource) => {
      const live = required(object);
      const { uid, resourceVersion } = object.metadata;
      check(live.object, {
        ...(uid === undefined ? {} : { uid }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      });
      const next = changed(live.object, object, subresource);
      if (!next) return live.object;
      const managers = ownChanges(fieldsOf(live.object), fieldsOf(next), live.managers, by);
      return commit('MODIFIED', next, managers, by);
    },
    delete: (ref, by, preconditions = {}) => {
      const { apiVersion, kind } = ref.resource;
      const namespace = ref.namespace === undefined ? {} : { namespace: ref.namespace };
      const live = required({ apiVersion, kind, metadata: { name: ref.name, ...namespace } });
      check(live.object, preconditions);
      commit('DELETED', live.object, live.managers, by);
    },
    edit: (ref, by, change) => {
      const live = server.get(resourceKey(ref.resource), ref.name, ref.namespace);
      if (!live) throw new Error(`${ref.resource.kind} ${ref.name} is not there`);
      const next = change(live);
      const isStatus = canonical(next['status']) !== canonical(live['status']);
      return server.replace(next, by, isStatus ? 'status' : undefined);
    },
    onEntry: (listener) => {
      listeners.push(listener);
    },
    admit: (given) => {
      mutate = given;
    },
  };
  return server;
}

/** What can be owned: not what the server itself keeps. */
function fieldsOf(object: KubeObject): Json {
  const { apiVersion: _, kind: __, metadata, ...rest } = object;
  const {
    uid: ___,
    resourceVersion: ____,
    generation: _____,
    creationTimestamp: ______,
    deletionTimestamp: _______,
    ...kept
  } = metadata;
  return { ...rest, metadata: kept };
}

/** What a change of makes a new generation. */
function bare(object: KubeObject): Json {
  const { status: _, metadata: __, ...rest } = object;
  return rest;
}

function clean(object: KubeObject): KubeObject {
  return JSON.parse(JSON.stringify(object)) as KubeObject;
}

function conflict(object: KubeObject, why: string): ApiError {
  return new ApiError('conflict', `${object.kind} ${object.metadata.name}: ${why}`, {
    status: 409,
    reason: 'Conflict',
  });
}

/** For a reference in a test. */
export function refTo(resource: Resource, name: string, namespace = 'ns'): ObjectRef {
  return resource.namespaced ? { resource, name, namespace } : { resource, name };
}
