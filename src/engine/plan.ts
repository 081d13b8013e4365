/**
 * From what is wanted and what is there to the writes that lead from one to the other: a value, to be printed, logged and carried
 * out. It never plans a write to an object that is not this parent's, and none where all is as wanted.
 */
import { type Applied, fingerprint, repairPauseMs } from './applied.ts';
import { hashOf, isContained } from './canonical.ts';
import { type ChildRef, type KubeObject, type Resource, resourceKey } from './contract.ts';
import { controllerUid, nameKey } from './store.ts';

export type Step =
  | {
      readonly do: 'create';
      readonly resource: Resource;
      readonly object: KubeObject;
      readonly wanted: string;
      /**
       * What our view shows of earlier kinds, and is to be confirmed before: a view that is behind must not let something be made
       * without what is to stand before it.
       */
      readonly after: readonly Standing[];
    }
  | {
      readonly do: 'update';
      readonly resource: Resource;
      readonly object: KubeObject;
      readonly wanted: string;
      /** Preconditions: the object that this was decided on. */
      readonly uid: string;
      readonly resourceVersion: string | undefined;
      readonly because: 'changed' | 'drifted';
    }
  | {
      readonly do: 'delete';
      readonly resource: Resource;
      readonly name: string;
      readonly namespace: string | undefined;
      readonly uid: string;
      readonly resourceVersion: string | undefined;
    };

export interface Standing {
  readonly resource: Resource;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly uid: string;
}

/** Something wanted that must not be written; nobody but a person or the reconciler's author can mend it. */
export interface Refusal {
  readonly because: 'undeclared kind' | 'duplicate' | 'foreign' | 'other namespace' | 'malformed';
  readonly message: string;
}

export interface Plan {
  /** In the order in which they are to be done: applies in the order of `owns`, then deletes in reverse. */
  readonly steps: readonly Step[];
  /** When not empty, no step may be done: half of what is wanted may be less safe than what is there. */
  readonly refusals: readonly Refusal[];
  /** Nothing to do now, but look again after this: a repair is being held back. */
  readonly againInMs: number | undefined;
  /** Names of kinds that are on their way out and come back only once they are gone. */
  readonly leaving: readonly string[];
}

export interface PlanInput {
  readonly parent: KubeObject;
  readonly owns: readonly Resource[];
  readonly wanted: readonly KubeObject[];
  /** Neither applied nor deleted. */
  readonly kept: readonly ChildRef[];
  /** Live objects controlled by this parent's uid, by kind. */
  readonly children: Readonly<Record<string, readonly KubeObject[]>>;
  /** Whatever has this name, whosever it is. */
  readonly live: (resource: Resource, name: string, namespace: string | undefined) => KubeObject | undefined;
  /** By the live object's uid. */
  readonly applied: (uid: string) => Applied | undefined;
  /** The annotation that holds the hash of what was applied last, which outlives our memory. */
  readonly annotation: string;
  /** On the monotonic scale. */
  readonly nowMs: number;
}

export function plan(input: PlanInput): Plan {
  const refusals: Refusal[] = [];
  const steps: Step[] = [];
  const leaving: string[] = [];
  const standing: Standing[] = [];
  let leavingKind: string | undefined;
  let againInMs: number | undefined;
  const owned = new Map(input.owns.map((resource) => [resourceKey(resource), resource]));
  const wantedKeys = new Set<string>();
  const parentUid = input.parent.metadata.uid ?? '';

  const wanted = input.wanted
    .flatMap((object) => {
      const problem = problemOf(object, input.parent, owned);
      if (problem) {
        refusals.push(problem);
        return [];
      }
      const key = `${resourceKey(object)}|${nameKey(object.metadata.name, object.metadata.namespace)}`;
      if (wantedKeys.has(key)) {
        refusals.push({ because: 'duplicate', message: `${label(object)} is wanted twice.` });
        return [];
      }
      wantedKeys.add(key);
      return [object];
    })
    .sort((a, b) => orderOf(input.owns, a) - orderOf(input.owns, b));

  const kept = input.kept.flatMap((ref) => {
    const { name, namespace } = ref;
    const key = `${resourceKey(ref)}|${nameKey(name, namespace)}`;
    const resource = owned.get(resourceKey(ref));
    if (!resource) {
      refusals.push({ because: 'undeclared kind', message: `${ref.kind} ${name} is of a kind that is not declared.` });
    } else if (wantedKeys.has(key)) {
      refusals.push({ because: 'duplicate', message: `${ref.kind} ${name} is wanted, and to be left as it is.` });
    }
    wantedKeys.add(key);
    const live = resource && input.live(resource, name, namespace);
    return resource && live && isHere(input.parent, live) ? [{ resource, live }] : [];
  });

  for (const bare of wanted) {
    const resource = owned.get(resourceKey(bare));
    if (!resource) continue;
    // The order of kinds is one of safety: nothing of a later kind before what is to stand before it is there again.
    if (leaving.length > 0 && resourceKey(resource) !== leavingKind) break;
    const { object, hash } = dressed(bare, input.parent, input.annotation);
    const live = input.live(resource, bare.metadata.name, bare.metadata.namespace);
    if (!live) {
      const before = kept.filter((other) => orderOf(input.owns, other.live) < orderOf(input.owns, bare));
      const after = [
        ...standing.filter((other) => resourceKey(other.resource) !== resourceKey(resource)),
        ...before.map(standingOf),
      ];
      steps.push({ do: 'create', resource, object, wanted: hash, after });
      continue;
    }
    if (isOfFormer(input.parent, live) || isLeaving(input.parent, live)) {
      leaving.push(label(bare));
      leavingKind = resourceKey(resource);
      continue;
    }
    if (controllerUid(live) !== parentUid || live.metadata.uid === undefined) {
      refusals.push({ because: 'foreign', message: `${label(bare)} exists and belongs to ${ownerName(live)}.` });
      continue;
    }
    const { uid, resourceVersion, name, namespace } = live.metadata;
    const applied = input.applied(uid);
    const noted = live.metadata.annotations?.[input.annotation] === hash;
    const isAsWanted =
      (applied?.wanted === hash && applied.stored === fingerprint(live)) || (noted && isContained(object, live));
    const pauseMs = isAsWanted ? 0 : repairPauseMs(applied, hash, input.nowMs);
    if (isAsWanted || pauseMs > 0) {
      standing.push({ resource, name, namespace, uid });
      if (pauseMs > 0) againInMs = Math.min(againInMs ?? pauseMs, pauseMs);
      continue;
    }
    steps.push({
      do: 'update',
      resource,
      object,
      wanted: hash,
      uid,
      resourceVersion,
      because: noted ? 'drifted' : 'changed',
    });
  }

  for (const resource of leaving.length > 0 ? [] : [...input.owns].reverse()) {
    for (const child of input.children[resourceKey(resource)] ?? []) {
      const { name, namespace, uid, resourceVersion, deletionTimestamp } = child.metadata;
      if (wantedKeys.has(`${resourceKey(resource)}|${nameKey(name, namespace)}`)) continue;
      // Told again here, though the view is indexed by it: nothing is deleted that is not ours.
      if (uid === undefined || deletionTimestamp !== undefined || controllerUid(child) !== parentUid) continue;
      steps.push({ do: 'delete', resource, name, namespace, uid, resourceVersion });
    }
  }
  return { steps: refusals.length > 0 ? [] : steps, refusals, againInMs, leaving };
}

function problemOf(object: KubeObject, parent: KubeObject, owned: ReadonlyMap<string, Resource>): Refusal | undefined {
  if (typeof object.metadata?.name !== 'string' || object.metadata.name === '') {
    return { because: 'malformed', message: `A ${object.kind} without a name is wanted.` };
  }
  const resource = owned.get(resourceKey(object));
  if (!resource) return { because: 'undeclared kind', message: `${label(object)} is of a kind that is not declared.` };
  const { namespace } = object.metadata;
  if (resource.namespaced !== (namespace !== undefined)) {
    return { because: 'malformed', message: `${label(object)}: its namespace is missing, or it has none.` };
  }
  // The garbage collector deletes what names an owner in another namespace.
  if (parent.metadata.namespace !== undefined && namespace !== parent.metadata.namespace) {
    return { because: 'other namespace', message: `${label(object)} is not in the namespace of its owner.` };
  }
  return undefined;
}

/** With the owner, and with the annotation that says what this is. */
function dressed(bare: KubeObject, parent: KubeObject, annotation: string): { object: KubeObject; hash: string } {
  const owner = {
    apiVersion: parent.apiVersion,
    kind: parent.kind,
    name: parent.metadata.name,
    uid: parent.metadata.uid ?? '',
    controller: true,
  };
  const owned = { ...bare, metadata: { ...bare.metadata, ownerReferences: [owner] } };
  const hash = hashOf(owned);
  const annotations = { ...bare.metadata.annotations, [annotation]: hash };
  return { object: { ...owned, metadata: { ...owned.metadata, annotations } }, hash };
}

/** Controlled by an object of this parent's name that is no more: the garbage collector is about to take it. */
function isOfFormer(parent: KubeObject, live: KubeObject): boolean {
  return (live.metadata.ownerReferences ?? []).some(
    ({ kind, name, uid, controller }) =>
      controller === true && kind === parent.kind && name === parent.metadata.name && uid !== parent.metadata.uid,
  );
}

/** Ours, and to stay. */
function isHere(parent: KubeObject, live: KubeObject): boolean {
  return live.metadata.deletionTimestamp === undefined && controllerUid(live) === parent.metadata.uid;
}

function standingOf({ resource, live }: { readonly resource: Resource; readonly live: KubeObject }): Standing {
  const { name, namespace, uid = '' } = live.metadata;
  return { resource, name, namespace, uid };
}

function isLeaving(parent: KubeObject, live: KubeObject): boolean {
  return live.metadata.deletionTimestamp !== undefined && controllerUid(live) === parent.metadata.uid;
}

function orderOf(owns: readonly Resource[], object: KubeObject): number {
  return owns.findIndex((resource) => resourceKey(resource) === resourceKey(object));
}

function ownerName(object: KubeObject): string {
  const owner = object.metadata.ownerReferences?.find((reference) => reference.controller === true);
  return owner ? `${owner.kind} ${owner.name}` : 'nobody we know';
}

function label(object: KubeObject): string {
  return `${object.kind} ${object.metadata.name}`;
}
