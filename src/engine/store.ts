/** All watched objects of one kind, found by name, by the uid of their controller, and by a selection. */
import type { KubeObject, Selection } from './contract.ts';
import type { Change } from './door.ts';

export interface IndexedStore {
  readonly change: (change: Change) => void;
  readonly get: (name: string, namespace?: string) => KubeObject | undefined;
  readonly byUid: (uid: string) => KubeObject | undefined;
  /** Objects whose controller owner has this uid, by namespace and name. */
  readonly ownedBy: (uid: string) => readonly KubeObject[];
  /** By namespace and name. */
  readonly select: (selection: Selection) => readonly KubeObject[];
  readonly all: () => Iterable<KubeObject>;
}

export function createIndexedStore(): IndexedStore {
  const byName = new Map<string, KubeObject>();
  const byUid = new Map<string, KubeObject>();
  const byOwner = new Map<string, Map<string, KubeObject>>();
  const byNamespace = new Map<string, Map<string, KubeObject>>();

  function remove(object: KubeObject): void {
    const key = nameKey(object.metadata.name, object.metadata.namespace);
    const held = byName.get(key);
    if (!held) return;
    byName.delete(key);
    if (held.metadata.uid !== undefined) byUid.delete(held.metadata.uid);
    drop(byNamespace, held.metadata.namespace ?? '', key);
    const owner = controllerUid(held);
    if (owner !== undefined) drop(byOwner, owner, key);
  }

  function put(object: KubeObject): void {
    remove(object);
    const key = nameKey(object.metadata.name, object.metadata.namespace);
    byName.set(key, object);
    if (object.metadata.uid !== undefined) byUid.set(object.metadata.uid, object);
    within(byNamespace, object.metadata.namespace ?? '').set(key, object);
    const owner = controllerUid(object);
    if (owner !== undefined) within(byOwner, owner).set(key, object);
  }

  return {
    change: (change) => {
      if (change.type === 'deleted') remove(change.object);
      else put(change.object);
    },
    get: (name, namespace) => byName.get(nameKey(name, namespace)),
    byUid: (uid) => byUid.get(uid),
    ownedBy: (uid) => sorted(byOwner.get(uid)?.values() ?? []),
    select: (selection) => {
      if (selection.name !== undefined && selection.namespace !== undefined) {
        const object = byName.get(nameKey(selection.name, selection.namespace));
        return object && isSelected(selection, object) ? [object] : [];
      }
      const among = selection.namespace === undefined ? byName : byNamespace.get(selection.namespace);
      return sorted([...(among?.values() ?? [])].filter((object) => isSelected(selection, object)));
    },
    all: () => byName.values(),
  };
}

export function isSelected(selection: Selection, object: KubeObject): boolean {
  const { namespace, name, labels } = object.metadata;
  if (selection.namespace !== undefined && selection.namespace !== namespace) return false;
  if (selection.name !== undefined && selection.name !== name) return false;
  return Object.entries(selection.labels ?? {}).every(([key, value]) => labels?.[key] === value);
}

/** The uid of the one owner that controls the object. */
export function controllerUid(object: KubeObject): string | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller === true)?.uid;
}

export function nameKey(name: string, namespace: string | undefined): string {
  return `${namespace ?? ''}/${name}`;
}

/** Sorted, so that a reconciler that takes the first of many always takes the same. */
function sorted(objects: Iterable<KubeObject>): readonly KubeObject[] {
  return [...objects].sort((a, b) =>
    nameKey(a.metadata.name, a.metadata.namespace) < nameKey(b.metadata.name, b.metadata.namespace) ? -1 : 1,
  );
}

function within(index: Map<string, Map<string, KubeObject>>, key: string): Map<string, KubeObject> {
  const known = index.get(key);
  if (known) return known;
  const created = new Map<string, KubeObject>();
  index.set(key, created);
  return created;
}

function drop(index: Map<string, Map<string, KubeObject>>, key: string, name: string): void {
  const held = index.get(key);
  held?.delete(name);
  if (held?.size === 0) index.delete(key);
}
