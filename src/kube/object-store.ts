/** Objects of one watch by namespace and name, and what a new list or event changes among them. Pure but for its own map. */
import type { KubeObject } from '../engine/contract.ts';
import type { Change, ObjectView } from '../engine/door.ts';
import { compareVersions } from '../engine/resource-version.ts';

export interface ObjectStore<T extends KubeObject> extends ObjectView<T> {
  /** Everything there is at that version; the changes against what was held, with deletions first. */
  readonly replaceAll: (objects: readonly T[], version: string) => readonly Change<T>[];
  /** All events up to this version were given. One that goes backwards is not followed. */
  readonly reach: (version: string | undefined) => void;
  /** An object was created or changed. */
  readonly put: (object: T) => readonly Change<T>[];
  /** An object was deleted; `object` is its last form. */
  readonly remove: (object: T) => readonly Change<T>[];
}

export function createStore<T extends KubeObject = KubeObject>(): ObjectStore<T> {
  let held = new Map<string, T>();
  let version: string | undefined;

  return {
    get: (name, namespace) => held.get(storeKey(name, namespace)),
    list: (namespace) => {
      const all = [...held.values()];
      return namespace === undefined ? all : all.filter((object) => object.metadata.namespace === namespace);
    },
    synced: () => version !== undefined,
    version: () => version,
    reach: (reached) => {
      if (reached !== undefined && (compareVersions(reached, version) ?? 1) > 0) version = reached;
    },
    replaceAll: (objects, listed) => {
      const next = new Map(objects.map((object) => [keyOf(object), object]));
      const gone = [...held].flatMap(([key, object]) =>
        sameObject(next.get(key), object) ? [] : [{ type: 'deleted' as const, object }],
      );
      const rest = [...next].flatMap(([key, object]) => difference(sameObject(held.get(key), object), object));
      held = next;
      version = listed;
      return [...gone, ...rest];
    },
    put: (object) => {
      const key = keyOf(object);
      const before = held.get(key);
      const same = sameObject(before, object);
      if (same && isOlder(object, same)) return [];
      // An event of a former object of this name, told late.
      if (before && !same && isOlder(object, before)) return [];
      held.set(key, object);
      const gone = before && !same ? [{ type: 'deleted' as const, object: before }] : [];
      return [...gone, ...difference(same, object)];
    },
    remove: (object) => {
      const before = held.get(keyOf(object));
      if (!before || !sameObject(before, object)) return [];
      held.delete(keyOf(object));
      return [{ type: 'deleted', object }];
    },
  };
}

function difference<T extends KubeObject>(before: T | undefined, object: T): readonly Change<T>[] {
  if (!before) return [{ type: 'added', object }];
  if (before.metadata.resourceVersion === object.metadata.resourceVersion) return [];
  return [{ type: 'updated', object, before }];
}

function sameObject<T extends KubeObject>(before: T | undefined, object: T): T | undefined {
  return before?.metadata.uid === object.metadata.uid ? before : undefined;
}

function isOlder(object: KubeObject, held: KubeObject): boolean {
  return (compareVersions(object.metadata.resourceVersion, held.metadata.resourceVersion) ?? 0) < 0;
}

function keyOf(object: KubeObject): string {
  return storeKey(object.metadata.name, object.metadata.namespace);
}

function storeKey(name: string, namespace: string | undefined): string {
  return `${namespace ?? ''}/${name}`;
}
