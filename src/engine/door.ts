/**
 * What the engine asks of the API server. `kube/` implements it over HTTP, the simulation in memory.
 * Every function throws `ApiError`, and nothing else.
 */
import type { KubeObject, Resource } from './contract.ts';

export interface ObjectRef {
  readonly resource: Resource;
  /** Left out for a kind that is not namespaced. */
  readonly namespace?: string;
  readonly name: string;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** For the whole call, answer included. */
  readonly timeoutMs?: number;
}

export interface ListQuery {
  readonly resource: Resource;
  /** Undefined: of all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ApplyOptions extends CallOptions {
  readonly fieldManager: string;
  /** Take over fields that another manager owns; only ever for objects of our own. */
  readonly force: boolean;
  /** Fail with `conflict` when an object of this name exists already, whosever it is. */
  readonly onlyCreate?: boolean;
}

export interface DeleteOptions extends CallOptions {
  readonly uid: string;
  readonly resourceVersion?: string;
}

export interface ApiDoor {
  readonly get: (ref: ObjectRef, options?: CallOptions) => Promise<KubeObject>;
  /** Everything that matches, read in pages. */
  readonly list: (
    query: ListQuery,
    options?: CallOptions,
  ) => Promise<{ readonly items: readonly KubeObject[]; readonly resourceVersion: string }>;
  readonly create: (resource: Resource, object: KubeObject, options?: CallOptions) => Promise<KubeObject>;
  /**
   * Server-side apply. `metadata.uid` and `metadata.resourceVersion`, where present, are preconditions: another object of
   * that name, or none, is a `conflict`. Without a uid, an object that does not exist is created.
   */
  readonly apply: (resource: Resource, object: KubeObject, options: ApplyOptions) => Promise<KubeObject>;
  /** The same for the status subresource; never creates. */
  readonly applyStatus: (resource: Resource, object: KubeObject, options: ApplyOptions) => Promise<KubeObject>;
  /** PUT; `metadata.resourceVersion`, where present, must be the current one. */
  readonly replace: (resource: Resource, object: KubeObject, options?: CallOptions) => Promise<KubeObject>;
  readonly replaceStatus: (resource: Resource, object: KubeObject, options?: CallOptions) => Promise<KubeObject>;
  /** With background propagation. A uid that does not match is a `conflict`. */
  readonly delete: (ref: ObjectRef, options: DeleteOptions) => Promise<void>;
}

/** A change of one object in a watched set. A deleted and re-created name is `deleted`, then `added`. */
export type Change<T extends KubeObject = KubeObject> =
  | { readonly type: 'added'; readonly object: T }
  | { readonly type: 'updated'; readonly object: T; readonly before: T }
  | { readonly type: 'deleted'; readonly object: T };

/** What is known of a watched set. Absence means nothing before `synced()`. */
export interface ObjectView<T extends KubeObject = KubeObject> {
  readonly get: (name: string, namespace?: string) => T | undefined;
  /** Of one namespace, or of all; in no order. */
  readonly list: (namespace?: string) => readonly T[];
  readonly synced: () => boolean;
  /** Every change up to this resourceVersion is in the view; undefined before the first list. */
  readonly version: () => string | undefined;
}

export interface WatchRequest {
  readonly resource: Resource;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Called after the view changed; what it throws is logged and goes no further. */
  readonly onChange: (change: Change) => void;
  /** Called once, when the first list is whole and its changes were told. */
  readonly onSynced: () => void;
  readonly signal: AbortSignal;
}

/** Starts a watch that lasts until the signal. */
export type WatchDoor = (request: WatchRequest) => ObjectView;
