/** Which parents look at which objects, so that a change wakes those and no others, at a cost that does not grow with all parents. */
import type { KubeObject, Selection } from './contract.ts';
import { isSelected } from './store.ts';

export interface Interest {
  /** What this key looks at from now on, in place of what it did; by kind. */
  readonly set: (key: string, selections: readonly KindSelection[]) => void;
  /** Keys that look at this object. */
  readonly of: (kind: string, object: KubeObject) => ReadonlySet<string>;
}

export interface KindSelection {
  readonly kind: string;
  readonly selection: Selection;
}

export function createInterest(): Interest {
  const buckets = new Map<string, Map<string, Selection[]>>();
  const bucketsOf = new Map<string, readonly string[]>();

  function clear(key: string): void {
    for (const bucket of bucketsOf.get(key) ?? []) {
      const held = buckets.get(bucket);
      held?.delete(key);
      if (held?.size === 0) buckets.delete(bucket);
    }
    bucketsOf.delete(key);
  }

  return {
    set: (key, selections) => {
      clear(key);
      if (selections.length === 0) return;
      for (const { kind, selection } of selections) {
        const bucket = bucketFor(kind, selection);
        const held = buckets.get(bucket) ?? new Map<string, Selection[]>();
        buckets.set(bucket, held);
        held.set(key, [...(held.get(key) ?? []), selection]);
      }
      bucketsOf.set(key, [...new Set(selections.map(({ kind, selection }) => bucketFor(kind, selection)))]);
    },
    of: (kind, object) => {
      const keys = new Set<string>();
      for (const bucket of bucketsThatMayMatch(kind, object)) {
        for (const [key, selections] of buckets.get(bucket) ?? []) {
          if (selections.some((selection) => isSelected(selection, object))) keys.add(key);
        }
      }
      return keys;
    },
  };
}

/** A selection is filed under the narrowest thing that it asks for; a changed object looks into each it could be filed under. */
function bucketFor(kind: string, selection: Selection): string {
  if (selection.name !== undefined) return `${kind}|name|${selection.name}`;
  const [label] = Object.entries(selection.labels ?? {});
  if (label) return `${kind}|label|${label[0]}=${label[1]}`;
  return selection.namespace === undefined ? `${kind}|all` : `${kind}|namespace|${selection.namespace}`;
}

function bucketsThatMayMatch(kind: string, object: KubeObject): readonly string[] {
  const { name, namespace, labels } = object.metadata;
  return [
    `${kind}|name|${name}`,
    ...Object.entries(labels ?? {}).map(([key, value]) => `${kind}|label|${key}=${value}`),
    `${kind}|namespace|${namespace}`,
    `${kind}|all`,
  ];
}
