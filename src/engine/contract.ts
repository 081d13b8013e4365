/**
 * What a reconciler sees and says. The engine knows no kind of ours; reconcilers know no queue, cache, clock or API call.
 *
 * A reconciler is a pure function from everything observed to everything wanted. It never says "create" or "update",
 * never sets a time, and never answers from a view that it knows to be partial: then it holds.
 */

/** Any object of the API server, as JSON. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
  readonly [field: string]: unknown;
}

export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly [field: string]: unknown;
}

export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** A kind of object, as the API server serves it. */
export interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
}

/** Objects beside the parent's children that a reconciler looks at; a change of one wakes the parents that selected it. */
export interface Read<P> {
  readonly resource: Resource;
  /** Which objects: by name, by labels, or all of a namespace (undefined namespace: of the cluster). One hop, no chains. */
  readonly select: (parent: P) => Selection | undefined;
}

export interface Selection {
  readonly namespace?: string;
  readonly name?: string;
  readonly labels?: Readonly<Record<string, string>>;
}

/**
 * A fact from outside the API server, such as a tool's listing. The engine runs sensors off the worker path, no more than
 * one at a time for a parent, and shows the last result with its age. The subject changes what must be asked anew.
 */
export interface Sensor<P, T = unknown> {
  readonly name: string;
  /** What to ask now, from what is observed; undefined: nothing to ask. A changed `key` is asked at once. */
  readonly subject: (observed: Observed<P>) => { readonly key: string; readonly input: unknown } | undefined;
  readonly everyMs: number;
  readonly timeoutMs: number;
  readonly run: (input: unknown, signal: AbortSignal) => Promise<T>;
}

export type Sensed<T = unknown> =
  | { readonly state: 'none' }
  | { readonly state: 'ok'; readonly key: string; readonly value: T; readonly ageMs: number }
  | { readonly state: 'failed'; readonly key: string; readonly problem: string; readonly ageMs: number };

/** Everything known about one parent at one moment. `children` and `reads` have an entry for each declared name, even when empty. */
export interface Observed<P> {
  readonly parent: P;
  /** Live objects whose controller owner is this parent's uid, by kind (`apps/v1/DaemonSet`). */
  readonly children: Readonly<Record<string, readonly KubeObject[]>>;
  readonly reads: Readonly<Record<string, readonly KubeObject[]>>;
  readonly sensed: Readonly<Record<string, Sensed>>;
}

export type ConditionStatus = 'True' | 'False' | 'Unknown';

/** What is the case, not when: the engine adds times and generations. */
export interface Fact {
  readonly type: string;
  readonly status: ConditionStatus;
  /** A constant in UpperCamelCase, with a comment where it is defined that a user can act on. */
  readonly reason: string;
  readonly message: string;
  /** Nothing but a person's change can mend this: the engine adds the condition Stalled. */
  readonly stalled?: boolean;
}

export interface Facts {
  /** One fact for each condition type that this reconciler declares; one left out is reported Unknown, a mark left out not at all. */
  readonly conditions: readonly Fact[];
  /** The other fields of status, whole. Volatile values (ages, counters) do not belong here. */
  readonly status?: Readonly<Record<string, unknown>>;
}

/** A child by its name. */
export interface ChildRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace?: string;
}

/**
 * `converge`: make the children be exactly these, and leave those in `keep` as they are: not applied, not deleted, and not made where
 * they are not there. `hold`: too little is known; change nothing, delete nothing.
 */
export type Outcome =
  | {
      readonly do: 'converge';
      readonly children: readonly KubeObject[];
      readonly keep?: readonly ChildRef[];
      readonly facts: Facts;
    }
  | { readonly do: 'hold'; readonly facts: Facts };

export interface Reconciler<P extends KubeObject = KubeObject> {
  readonly resource: Resource;
  /** Reads a stored object leniently (it may be older or newer than this schema). */
  readonly parse: (
    raw: KubeObject,
  ) => { readonly ok: true; readonly value: P } | { readonly ok: false; readonly problem: string };
  /** Kinds of children; the engine watches them, and prunes only these. Applied in this order, deleted in reverse. */
  readonly owns: readonly Resource[];
  readonly reads: Readonly<Record<string, Read<P>>>;
  readonly sensors: readonly Sensor<P>[];
  /** Condition types; Ready is computed from them: any False wins, then any Unknown, else True. */
  readonly conditions: readonly string[];
  /** Condition types that are there only while they are true, and that Ready does not sum up: which of some states the object is in. */
  readonly marks?: readonly string[];
  /**
   * Fields of status that are a record and not a view: nothing else knows what they say. They stay as they are stored where this
   * reconciler cannot be asked, as for an object that cannot be read.
   */
  readonly records?: readonly string[];
  readonly reconcile: (observed: Observed<P>) => Outcome;
}

/** Key of `Observed.children`. */
export function resourceKey(resource: Pick<Resource, 'apiVersion' | 'kind'>): string {
  return `${resource.apiVersion}/${resource.kind}`;
}
