/** The door to the Kubernetes API for every process of ours: typed calls, watches, and nothing of a client library. */
import { ApiError } from '../engine/api-error.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { ApiDoor, ApplyOptions, CallOptions, ListQuery } from '../engine/door.ts';
import { type ConnectionSource, loadConnection } from './connection.ts';
import { failureOfStatus } from './failure.ts';
import { createHttp, type Http, type Request } from './http.ts';
import { lines } from './lines.ts';
import { collectionPath, objectPath, selectorParameters } from './path.ts';

export interface KubeClient extends ApiDoor {
  /** Namespace of the kubeconfig's context, or of this pod. */
  readonly namespace: string | undefined;
  /** One page of a list; `continue` is undefined on the last. Items have their apiVersion and kind. */
  readonly listPage: (
    query: ListQuery,
    page: { readonly limit: number; readonly continue?: string | undefined },
    options?: CallOptions,
  ) => Promise<ListPage>;
  /** The events of one watch request until the server ends it. Throws `ApiError`; an ERROR event is thrown, not given. */
  readonly watch: (query: ListQuery, options: WatchOptions) => AsyncIterable<WatchEvent>;
  /** Whose token this is; `authenticated: false` for one that is not valid for the audience. */
  readonly reviewToken: (token: string, audience: string, options?: CallOptions) => Promise<TokenReview>;
  /** The user name by which the API server knows us. */
  readonly whoAmI: (options?: CallOptions) => Promise<string>;
  /** A GET outside the typed calls, such as `/version` or `/readyz?…`; the answer must be JSON. */
  readonly getPath: (path: string, options?: CallOptions) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

export interface ListPage {
  readonly items: readonly KubeObject[];
  readonly resourceVersion: string;
  readonly continue: string | undefined;
}

export interface WatchOptions {
  readonly resourceVersion: string;
  /** The server ends the watch after this. */
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal;
  /** Longest event, in bytes of JSON. */
  readonly maxLineBytes: number;
  /** Called for whatever arrives, also for bytes that are not a whole event yet. */
  readonly onBytes?: () => void;
}

export type WatchEvent =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: KubeObject }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

export type TokenReview =
  | { readonly authenticated: false; readonly problem: string }
  | {
      readonly authenticated: true;
      /** `system:serviceaccount:<namespace>:<name>` for pods. */
      readonly username: string;
      readonly uid: string;
      readonly groups: readonly string[];
      /** Such as `authentication.kubernetes.io/pod-name`; the first value of each. */
      readonly extra: Readonly<Record<string, string>>;
    };

const SELF_REVIEW: Resource = {
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'SelfSubjectReview',
  plural: 'selfsubjectreviews',
  namespaced: false,
};
const DEFAULT_TIMEOUT_MS = 30_000;
const PAGE_SIZE = 500;
const TOKEN_REVIEW: Resource = {
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenReview',
  plural: 'tokenreviews',
  namespaced: false,
};

/**
 * A version that no object has (etcd's first revision is empty), so that an apply to one that exists is a conflict, while one
 * that does not exist is created: apply has no other way to say "create only".
 */
const NEVER = { resourceVersion: '1' };

/** `source` undefined: as `loadConnection()`. Nothing is dialled before the first call. */
export function createClient(source: ConnectionSource = loadConnection()): KubeClient {
  const http = createHttp(source);
  const call = (request: Request, options: CallOptions | undefined) => http.json(request, limits(options));
  const object = async (request: Request, options: CallOptions | undefined) => asObject(await call(request, options));

  const listPage: KubeClient['listPage'] = async (query, page, options) =>
    asPage(
      await call(
        {
          method: 'GET',
          path: collectionPath(query.resource, query.namespace),
          query: {
            ...selectorParameters(query),
            limit: String(page.limit),
            ...(page.continue === undefined ? {} : { continue: page.continue }),
          },
        },
        options,
      ),
      query.resource,
    );

  const write = (
    method: 'POST' | 'PUT',
    resource: Resource,
    value: KubeObject,
    options: CallOptions | undefined,
    subresource?: string,
  ) => {
    const path =
      method === 'POST'
        ? collectionPath(resource, namespaceOf(resource, value))
        : objectPath(refOf(resource, value), subresource);
    return object({ method, path, body: JSON.stringify(value) }, options);
  };

  const apply = (resource: Resource, value: KubeObject, options: ApplyOptions, subresource?: string) =>
    object(
      {
        method: 'PATCH',
        path: objectPath(refOf(resource, value), subresource),
        query: { fieldManager: options.fieldManager, force: String(options.force) },
        body: JSON.stringify(options.onlyCreate ? { ...value, metadata: { ...value.metadata, ...NEVER } } : value),
        contentType: 'application/apply-patch+yaml',
      },
      options,
    ).catch((error: unknown) => {
      // How the API server says that an apply's uid is not that of the object.
      if (error instanceof ApiError && error.code === 'invalid' && error.fields.includes('metadata.uid')) {
        throw new ApiError('conflict', error.message, { status: 409, reason: 'Conflict', cause: error });
      }
      throw error;
    });

  return {
    namespace: source.namespace,
    get: async (ref, options) => object({ method: 'GET', path: objectPath(ref) }, options),
    listPage,
    list: async (query, options) => {
      const items: KubeObject[] = [];
      let page = await listPage(query, { limit: PAGE_SIZE }, options);
      items.push(...page.items);
      while (page.continue !== undefined) {
        page = await listPage(query, { limit: PAGE_SIZE, continue: page.continue }, options);
        items.push(...page.items);
      }
      return { items, resourceVersion: page.resourceVersion };
    },
    create: async (resource, value, options) => write('POST', resource, value, options),
    replace: async (resource, value, options) => write('PUT', resource, value, options),
    replaceStatus: async (resource, value, options) => write('PUT', resource, value, options, 'status'),
    apply: async (resource, value, options) => apply(resource, value, options),
    applyStatus: async (resource, value, options) => apply(resource, value, options, 'status'),
    delete: async (ref, options) => {
      const preconditions = {
        uid: options.uid,
        ...(options.resourceVersion === undefined ? {} : { resourceVersion: options.resourceVersion }),
      };
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', preconditions };
      await call({ method: 'DELETE', path: objectPath(ref), body: JSON.stringify(body) }, options);
    },
    watch: (query, options) => watch(http, query, options),
    reviewToken: async (token, audience, options) => {
      const body = {
        apiVersion: TOKEN_REVIEW.apiVersion,
        kind: TOKEN_REVIEW.kind,
        spec: { token, audiences: [audience] },
      };
      const path = collectionPath(TOKEN_REVIEW, undefined);
      return asTokenReview(await call({ method: 'POST', path, body: JSON.stringify(body) }, options), audience);
    },
    whoAmI: async (options) => {
      const body = { apiVersion: SELF_REVIEW.apiVersion, kind: SELF_REVIEW.kind };
      const path = collectionPath(SELF_REVIEW, undefined);
      const review = record(await call({ method: 'POST', path, body: JSON.stringify(body) }, options));
      const username = record(record(review['status'])['userInfo'])['username'];
      if (typeof username === 'string') return username;
      throw new ApiError('malformed', 'The API server did not say who we are.');
    },
    getPath: async (path, options) => {
      const [pathname = '/', search = ''] = path.split('?', 2);
      return call({ method: 'GET', path: pathname, query: Object.fromEntries(new URLSearchParams(search)) }, options);
    },
    close: http.close,
  };
}

async function* watch(http: Http, query: ListQuery, options: WatchOptions): AsyncGenerator<WatchEvent> {
  const chunks = await http.stream(
    {
      method: 'GET',
      path: collectionPath(query.resource, query.namespace),
      query: {
        ...selectorParameters(query),
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion: options.resourceVersion,
        timeoutSeconds: String(options.timeoutSeconds),
      },
    },
    { timeoutMs: DEFAULT_TIMEOUT_MS, signal: options.signal },
  );
  options.onBytes?.();
  for await (const line of lines(tapped(chunks, options.onBytes), options.maxLineBytes)) {
    yield asEvent(line);
  }
}

async function* tapped(chunks: AsyncIterable<Uint8Array>, onBytes: (() => void) | undefined) {
  for await (const chunk of chunks) {
    onBytes?.();
    yield chunk;
  }
}

function limits(options: CallOptions | undefined) {
  return {
    timeoutMs: options?.timeoutMs ?? DEFAULT_TIMEOUT_MS,
    ...(options?.signal === undefined ? {} : { signal: options.signal }),
  };
}

function namespaceOf(resource: Resource, value: KubeObject): string | undefined {
  if (!resource.namespaced) return undefined;
  if (value.metadata.namespace !== undefined) return value.metadata.namespace;
  throw new ApiError('invalid', `A ${resource.kind} is in a namespace, and none was given.`);
}

function refOf(resource: Resource, value: KubeObject) {
  return { resource, namespace: value.metadata.namespace, name: value.metadata.name };
}

function asEvent(line: string): WatchEvent {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (error) {
    throw new ApiError('malformed', 'An event of a watch is not JSON.', { cause: error });
  }
  const event = record(value);
  switch (event['type']) {
    case 'ERROR':
      throw failureOfStatus(event['object']);
    case 'BOOKMARK': {
      const version = record(record(event['object'])['metadata'])['resourceVersion'];
      if (typeof version === 'string') return { type: 'BOOKMARK', resourceVersion: version };
      throw new ApiError('malformed', 'A bookmark of a watch has no resourceVersion.');
    }
    case 'ADDED':
    case 'MODIFIED':
    case 'DELETED':
      return { type: event['type'], object: asObject(event['object']) };
    default:
      throw new ApiError('malformed', 'An event of a watch has an unknown type.');
  }
}

function asPage(value: unknown, resource: Resource): ListPage {
  const { items, metadata } = record(value);
  const version = record(metadata)['resourceVersion'];
  // A Go server sends null for an empty list of some kinds.
  const given: unknown = items ?? [];
  if (!Array.isArray(given) || typeof version !== 'string') {
    throw new ApiError('malformed', `The API server answered something that is not a list of ${resource.plural}.`);
  }
  const next = record(metadata)['continue'];
  return {
    items: given.map((item: unknown) =>
      // Items of a list come without the two.
      asObject({ ...record(item), apiVersion: resource.apiVersion, kind: resource.kind }),
    ),
    resourceVersion: version,
    continue: typeof next === 'string' && next !== '' ? next : undefined,
  };
}

function asObject(value: unknown): KubeObject {
  const object = record(value);
  const { apiVersion, kind } = object;
  const { name } = record(object['metadata']);
  if (typeof apiVersion !== 'string' || typeof kind !== 'string' || typeof name !== 'string') {
    throw new ApiError('malformed', 'The API server answered something that is not an object.');
  }
  return object as unknown as KubeObject;
}

function asTokenReview(value: unknown, audience: string): TokenReview {
  const status = record(record(value)['status']);
  const user = record(status['user']);
  const audiences: unknown = status['audiences'];
  if (status['authenticated'] !== true) {
    const problem = status['error'];
    return { authenticated: false, problem: typeof problem === 'string' ? problem.slice(0, 200) : 'not valid' };
  }
  // A server that knows no audiences returns none: then the token proves nothing for ours.
  if (!Array.isArray(audiences) || !audiences.includes(audience)) {
    return { authenticated: false, problem: 'the token is not for this audience' };
  }
  const extra = Object.entries(record(user['extra'])).flatMap(([name, values]) => {
    const first: unknown = Array.isArray(values) ? values[0] : undefined;
    return typeof first === 'string' ? [[name, first]] : [];
  });
  const groups: unknown = user['groups'];
  return {
    authenticated: true,
    username: typeof user['username'] === 'string' ? user['username'] : '',
    uid: typeof user['uid'] === 'string' ? user['uid'] : '',
    groups: Array.isArray(groups) ? groups.filter((group) => typeof group === 'string') : [],
    extra: Object.fromEntries(extra),
  };
}

function record(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
