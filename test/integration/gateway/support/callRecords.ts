/**
 * ToolCalls as an API server keeps them: uids, versions, conflicts, and a status that is written by itself. Scriptable: a
 * request may fail before it was done, or after, or wait.
 */
import { randomUUID } from 'node:crypto';
import { judge } from '../../../../src/api/judge.ts';
import { toolCall } from '../../../../src/api/toolCall.ts';
import { ApiError } from '../../../../src/engine/api-error.ts';
import type { KubeObject } from '../../../../src/engine/contract.ts';
import type { ToolCallDoor } from '../../../../src/gateway/toolCalls/toolCallStore.ts';
import type { Loose } from './world.ts';

export type Operation = 'create' | 'read' | 'status';

export interface CallRecords {
  readonly door: ToolCallDoor;
  /** As they are now, oldest first. */
  readonly all: () => Loose[];
  readonly get: (name: string) => Loose;
  readonly requests: Operation[];
  /** Every status that was written, in order. */
  readonly written: Loose[];
  /** Asked before each request. */
  fault: (operation: Operation, object: Loose) => Fault | undefined | Promise<Fault | undefined>;
  /** A person's word, as admission would let it through. */
  readonly decide: (name: string, decision: 'approve' | 'deny', note?: string) => void;
  readonly answer: (name: string, outcome: 'happened' | 'runAgain' | 'stop') => void;
  readonly delete: (name: string) => void;
  /** Called with each object that changed, as a watch would tell it. */
  readonly follow: (listener: (type: 'put' | 'remove', object: KubeObject) => void) => () => void;
}

/** `before`: it is not done. `after`: it is done, and the answer is lost. */
export type Fault = {
  readonly when: 'before' | 'after';
  readonly code?: 'network' | 'server' | 'tooManyRequests' | 'forbidden';
};

export function createCallRecords(): CallRecords {
  const objects = new Map<string, KubeObject>();
  const listeners = new Set<(type: 'put' | 'remove', object: KubeObject) => void>();
  let version = 0;
  const put = (object: KubeObject): KubeObject => {
    version += 1;
    const stored = structuredClone({ ...object, metadata: { ...object.metadata, resourceVersion: String(version) } });
    objects.set(object.metadata.name, stored);
    for (const listener of [...listeners]) listener('put', structuredClone(stored));
    return structuredClone(stored);
  };
  const request = async (operation: Operation, object: Loose, act: () => KubeObject): Promise<KubeObject> => {
    records.requests.push(operation);
    const fault = await records.fault(operation, object);
    if (fault?.when === 'before') throw new ApiError(fault.code ?? 'network', 'a fault of the test');
    const done = act();
    if (fault?.when === 'after') throw new ApiError(fault.code ?? 'network', 'a fault of the test');
    return done;
  };
  const sound = (object: KubeObject): void => {
    const judged = judge(toolCall.schema, object);
    if (!judged.ok) throw new ApiError('invalid', JSON.stringify(judged.problems));
  };
  const current = (name: string): KubeObject => {
    const object = objects.get(name);
    if (object === undefined) throw new ApiError('notFound', `no ToolCall ${name}`);
    return object;
  };
  const add = (name: string, more: (uid: string) => object): void => {
    const object = current(name) as Loose;
    const next = { ...object, spec: { ...object.spec, ...more(object.metadata.uid) } };
    sound(next);
    put(next);
  };

  const records: CallRecords = {
    door: {
      create: (_, object) =>
        request('create', object, () => {
          if (objects.has(object.metadata.name)) throw new ApiError('exists', 'it exists');
          sound(object);
          const { status: _status, ...rest } = object as Loose;
          return put({ ...rest, metadata: { ...object.metadata, uid: randomUUID() } });
        }),
      get: ({ name }) => request('read', { metadata: { name } }, () => structuredClone(current(name))),
      replaceStatus: (_, object) =>
        request('status', object, () => {
          const stored = current(object.metadata.name);
          if (stored.metadata.resourceVersion !== object.metadata.resourceVersion) {
            throw new ApiError('conflict', 'another version');
          }
          sound(object);
          records.written.push(structuredClone(object['status']));
          return put({ ...stored, status: object['status'] });
        }),
    },
    all: () => structuredClone([...objects.values()]),
    get: (name) => structuredClone(objects.get(name)),
    requests: [],
    written: [],
    fault: () => undefined,
    decide: (name, verdict, note) =>
      add(name, (uid) => ({ decision: { verdict, by: 'jane', uid, ...(note === undefined ? {} : { note }) } })),
    answer: (name, outcome) => add(name, (uid) => ({ answer: { outcome, by: 'jane', uid } })),
    delete: (name) => {
      const object = current(name);
      objects.delete(name);
      for (const listener of [...listeners]) listener('remove', object);
    },
    follow: (listener) => {
      for (const object of objects.values()) listener('put', structuredClone(object));
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return records;
}
