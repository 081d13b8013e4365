/** A gateway on loopback with everything around it faked: the API server's objects, reviews of tokens, and tool pods. */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Pool } from 'undici';
import type { Review } from '../../../../src/gateway/authenticate.ts';
import { type Catalog, type CatalogKind, createCatalog } from '../../../../src/gateway/catalog/catalog.ts';
import type { CompiledTool } from '../../../../src/gateway/catalog/tool.ts';
import {
  createGateway,
  type Gateway,
  type GatewayLimits,
  type GatewayOptions,
} from '../../../../src/gateway/gateway.ts';
import type { CallRecord } from '../../../../src/gateway/record.ts';
import { type CallRecords, createCallRecords } from './callRecords.ts';
import type { FakeTool } from './fakeTool.ts';

export const OWN_NODE = 'node1';

export interface World {
  readonly origin: string;
  readonly url: URL;
  readonly gateway: Gateway;
  readonly records: CallRecord[];
  /** What is on record of calls. */
  readonly toolCalls: CallRecords;
  readonly problems: unknown[];
  readonly reviews: string[];
  /** What the API server answers for a token; throws to fail. */
  review: (token: string) => Review | Promise<Review>;
  synced: boolean;
  readonly sockets: () => number;
  readonly agent: (name: string, tools: readonly string[], options?: AgentOptions) => void;
  readonly removeAgent: (name: string, namespace?: string) => void;
  readonly tool: (name: string, options?: ToolOptions) => void;
  /** Any object of ours. */
  readonly put: (
    kind: Exclude<CatalogKind, 'Pod' | 'EndpointSlice'>,
    name: string,
    spec: object,
    options?: { namespace?: string; status?: object; deleted?: boolean },
  ) => void;
  readonly remove: (kind: Exclude<CatalogKind, 'Pod' | 'EndpointSlice'>, name: string, namespace?: string) => void;
  readonly removeTool: (name: string, namespace?: string) => void;
  /** A pod of a `node` tool on this node. */
  readonly pod: (tool: string, fake: FakeTool | undefined, options?: PodOptions) => string;
  /** The endpoints of an `any` tool. */
  readonly endpoints: (
    tool: string,
    pods: readonly { fake: FakeTool; node: string; uid: string }[],
    namespace?: string,
  ) => void;
  /** Waits until this caller's listing satisfies a condition. */
  readonly listed: (names: readonly string[], token?: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

interface AgentOptions {
  readonly namespace?: string;
  readonly serviceAccounts?: readonly string[];
}

interface ToolOptions {
  readonly namespace?: string;
  readonly affinity?: 'node' | 'any';
  readonly timeout?: string;
  readonly spec?: object;
}

interface PodOptions {
  readonly namespace?: string;
  readonly uid?: string;
  readonly ready?: boolean;
  readonly deleted?: boolean;
}

/** `token('acme', 'reviewer')` is the token of a pod of that ServiceAccount on this node. */
export function token(namespace = 'acme', serviceAccount = 'reviewer', node = OWN_NODE, pod = 'pod-1'): string {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part({ namespace, serviceAccount, node, pod })}.x`;
}

/** What a TokenReview says of such a token. */
export function reviewOf(written: string): Review {
  try {
    const { namespace, serviceAccount, node, pod } = JSON.parse(
      Buffer.from(written.split('.')[1] ?? '', 'base64url').toString('utf8'),
    );
    if (typeof namespace !== 'string') return { authenticated: false };
    return {
      authenticated: true,
      user: {
        username: `system:serviceaccount:${namespace}:${serviceAccount}`,
        extra: {
          ...(pod === '' ? {} : { 'authentication.kubernetes.io/pod-uid': pod }),
          ...(node === '' ? {} : { 'authentication.kubernetes.io/node-name': node }),
        },
      },
    };
  } catch {
    return { authenticated: false };
  }
}

export interface WorldOptions {
  readonly keys?: readonly { id: string; key: Uint8Array }[];
  readonly now?: () => number;
  /** `all`: every function is as its snapshot says. `status`: as the Tool's status says. */
  readonly approve?: 'all' | 'status';
  /** Left out: every kind of function runs. */
  readonly policy?: 'none';
  readonly apiSilent?: () => boolean;
  /** Shared by gateways of one cluster. */
  readonly toolCalls?: CallRecords;
  readonly gatewayPod?: string;
  /** Other tool pods than fakes. */
  readonly openConnections?: GatewayOptions['openConnections'];
  /** Whether the catalog counts as whole from the start. */
  readonly synced?: boolean;
  readonly record?: Omit<NonNullable<GatewayOptions['record']>, 'door' | 'podUid'>;
  readonly node?: string;
}

/** Metadata as the kind has it: an object of the cluster is in no namespace. */
function ofKind<T extends { namespace: string }>(kind: string, metadata: T): T | Omit<T, 'namespace'> {
  if (kind !== 'ClusterToolPolicy') return metadata;
  const { namespace: _, ...rest } = metadata;
  return rest;
}

/** A catalog for tests that are not of snapshots. */
function approving(catalog: Catalog, approve: 'all' | 'status'): Catalog {
  if (approve === 'status') return catalog;
  const every = { has: () => true } as unknown as ReadonlySet<string>;
  const seen = new WeakMap<CompiledTool, CompiledTool>();
  return {
    ...catalog,
    tool: (namespace, id) => {
      const tool = catalog.tool(namespace, id);
      if (tool === undefined) return undefined;
      const known = seen.get(tool) ?? { ...tool, approved: { listings: every, functions: every } };
      seen.set(tool, known);
      return known;
    },
  };
}

export async function startWorld(limits: Partial<GatewayLimits> = {}, shared: WorldOptions = {}): Promise<World> {
  const catalog = approving(createCatalog({ operatorNamespace: 'oz0-system' }), shared.approve ?? 'all');
  const ports = new Map<string, number>();
  const records: CallRecord[] = [];
  const problems: unknown[] = [];
  const reviews: string[] = [];
  const keys = shared.keys ?? [{ id: 'k1', key: randomBytes(32) }];
  const toolCalls = shared.toolCalls ?? createCallRecords();
  const ownNode = shared.node ?? OWN_NODE;
  const gateway = createGateway({
    ownNode,
    version: '0.0.0-test',
    catalog,
    synced: () => world.synced,
    review: async (written) => {
      reviews.push(written);
      return world.review(written);
    },
    openConnections: (pod) => {
      if (shared.openConnections !== undefined) return shared.openConnections(pod);
      const { route } = pod;
      const pool = new Pool(`http://127.0.0.1:${ports.get(route.podUid) ?? 1}`, {
        connections: 64,
        pipelining: 1,
        headersTimeout: 0,
        bodyTimeout: 0,
        connect: { timeout: 1_000 },
      });
      return { dispatcher: () => pool, close: () => pool.destroy() };
    },
    sessionKeys: () => keys,
    recorder: { called: (record) => records.push(record) },
    record: {
      door: toolCalls.door,
      podUid: shared.gatewayPod ?? 'gateway-1',
      timing: { recordMs: 400, tickMs: 20 },
      ...shared.record,
    },
    limits: { listingIntervalMs: 50, resultTokens: 0, ...limits },
    onProblem: (error) => problems.push(error),
    ...(shared.now === undefined ? {} : { now: shared.now }),
    ...(shared.apiSilent === undefined ? {} : { apiSilent: shared.apiSilent }),
  });
  const server = createServer((req, res) => gateway.handle(req, res));
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let pods = 0;
  let version = 0;
  const meta = (name: string, namespace: string, more: object = {}) => {
    version += 1;
    return { name, namespace, uid: `uid-${name}`, resourceVersion: String(version), ...more };
  };

  const world: World = {
    origin,
    url: new URL('/mcp', origin),
    gateway,
    records,
    toolCalls,
    problems,
    reviews,
    review: reviewOf,
    synced: shared.synced ?? true,
    sockets: () => sockets.size,
    agent: (name, tools, { namespace = 'acme', serviceAccounts = ['reviewer'] } = {}) =>
      catalog.put('Agent', {
        apiVersion: 'oz0.ai/v1alpha1',
        kind: 'Agent',
        metadata: meta(name, namespace),
        spec: { serviceAccounts, tools },
      }),
    removeAgent: (name, namespace = 'acme') =>
      catalog.remove('Agent', { apiVersion: 'oz0.ai/v1alpha1', kind: 'Agent', metadata: meta(name, namespace) }),
    tool: (name, { namespace = 'acme', affinity = 'node', timeout = '60s', spec } = {}) =>
      catalog.put('Tool', {
        apiVersion: 'oz0.ai/v1alpha1',
        kind: 'Tool',
        metadata: meta(name, namespace),
        spec: spec ?? {
          image: { reference: 'tools.example/tool:1', command: ['/tool'], transport: { stdio: {} } },
          affinity,
          timeout,
        },
      }),
    put: (kind, name, spec, { namespace = 'acme', status, deleted } = {}) =>
      catalog.put(kind, {
        apiVersion: 'oz0.ai/v1alpha1',
        kind,
        metadata: ofKind(kind, meta(name, namespace, deleted ? { deletionTimestamp: '2026-11-30T00:00:00Z' } : {})),
        spec,
        ...(status === undefined ? {} : { status }),
      }),
    remove: (kind, name, namespace = 'acme') =>
      catalog.remove(kind, {
        apiVersion: 'oz0.ai/v1alpha1',
        kind,
        metadata: ofKind(kind, meta(name, namespace)),
      }),
    removeTool: (name, namespace = 'acme') =>
      catalog.remove('Tool', { apiVersion: 'oz0.ai/v1alpha1', kind: 'Tool', metadata: meta(name, namespace) }),
    pod: (tool, fake, options = {}) => {
      const namespace = options.namespace ?? 'acme';
      pods += 1;
      const uid = options.uid ?? `pod-of-${tool}-${pods}`;
      const object = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: {
          ...meta(`oz0t-${tool}-${uid}`, namespace),
          uid,
          labels: { 'oz0.ai/tool': tool },
          ...(options.deleted ? { deletionTimestamp: '2026-11-30T00:00:00Z' } : {}),
        },
        spec: { nodeName: OWN_NODE },
        status: {
          podIP: '127.0.0.1',
          conditions: [{ type: 'Ready', status: options.ready === false ? 'False' : 'True' }],
        },
      };
      if (fake !== undefined) ports.set(uid, fake.port);
      if (fake === undefined) catalog.remove('Pod', object);
      else catalog.put('Pod', object);
      return uid;
    },
    endpoints: (tool, backends, namespace = 'acme') => {
      for (const { uid, fake } of backends) ports.set(uid, fake.port);
      catalog.put('EndpointSlice', {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: {
          ...meta(`oz0t-${tool}-abc`, namespace),
          labels: { 'kubernetes.io/service-name': `oz0t-${tool}`, 'oz0.ai/tool': tool },
        },
        endpoints: backends.map(({ node, uid }) => ({
          addresses: ['127.0.0.1'],
          nodeName: node,
          conditions: { ready: true },
          targetRef: { kind: 'Pod', name: uid, namespace, uid },
        })),
      });
    },
    listed: async (names, as = token()) => {
      const wanted = JSON.stringify([...names].sort());
      let seen = '';
      for (let tries = 0; tries < 200; tries += 1) {
        const { body } = await modern(world, 'tools/list', {}, { token: as });
        seen = JSON.stringify((body.result?.tools ?? []).map((tool: { name: string }) => tool.name).sort());
        if (seen === wanted) return;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      throw new Error(`listing is ${seen}, not ${wanted}`);
    },
    close: async () => {
      unfollow();
      await gateway.close(0);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
  if (shared.policy === undefined) {
    const kinds = { readOnly: 'run', additive: 'run', destructive: 'run', undeclared: 'run' };
    for (const namespace of ['acme', 'other']) world.put('ToolPolicy', 'all-run', { kinds }, { namespace });
  }
  const unfollow = toolCalls.follow((type, object) => {
    if (object.metadata.labels?.['oz0.ai/node'] === ownNode) gateway.upkeep[type](object);
  });
  return world;
}

// biome-ignore lint/suspicious/noExplicitAny: a test looks into answers of many shapes
export type Loose = any;

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The last JSON-RPC message: the whole body, or the last event of a stream. */
  readonly body: Loose;
  readonly messages: readonly Loose[];
}

export interface SendOptions {
  readonly token?: string | undefined;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
  readonly id?: string | number;
  readonly meta?: object;
}

/** One HTTP request, whatever it is. */
export async function send(
  world: { readonly origin: string },
  method: string,
  body: string | Uint8Array | undefined,
  options: SendOptions = {},
): Promise<Answered> {
  const bearer = 'token' in options ? options.token : token();
  const response = await fetch(new URL(options.path ?? '/mcp', world.origin), {
    method,
    headers: {
      accept: 'application/json, text/event-stream',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
      ...options.headers,
    },
    ...(body === undefined ? {} : { body }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const written = await response.text();
  const messages = readMessages(response.headers.get('content-type') ?? '', written);
  return { status: response.status, headers: response.headers, text: written, body: messages.at(-1), messages };
}

export function readMessages(type: string, written: string): Loose[] {
  if (type.startsWith('application/json')) return [JSON.parse(written)];
  if (!type.startsWith('text/event-stream')) return [];
  return written
    .split('\n\n')
    .flatMap((event) => event.split('\n').filter((line) => line.startsWith('data: ')))
    .map((line) => JSON.parse(line.slice(6)));
}

export const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** One request of 2026-07-28 with all that it needs. */
export function modern(
  world: { readonly origin: string },
  method: string,
  params: Record<string, unknown>,
  options: SendOptions = {},
): Promise<Answered> {
  const name = params['name'];
  const body = {
    jsonrpc: '2.0',
    id: options.id ?? 1,
    method,
    params: { ...params, _meta: { ...ENVELOPE, ...options.meta } },
  };
  return send(world, 'POST', JSON.stringify(body), {
    ...options,
    headers: {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': `=?base64?${Buffer.from(name).toString('base64')}?=` } : {}),
      ...options.headers,
    },
  });
}

/** `tools/call` of 2026-07-28. */
export function callTool(
  world: { readonly origin: string },
  name: string,
  args: object = {},
  options: SendOptions = {},
): Promise<Answered> {
  return modern(world, 'tools/call', { name, arguments: args }, options);
}

/** A session of the older era: its headers for later requests. */
export async function initialize(
  world: { readonly origin: string },
  options: SendOptions & { version?: string } = {},
): Promise<Record<string, string>> {
  const version = options.version ?? '2025-11-25';
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params });
  const answered = await send(world, 'POST', body, options);
  if (answered.status !== 200) throw new Error(`initialize: ${answered.status} ${answered.text}`);
  return { 'mcp-session-id': answered.headers.get('mcp-session-id') ?? '', 'mcp-protocol-version': version };
}

/** One request of a session. */
export function legacy(
  world: { readonly origin: string },
  session: Record<string, string>,
  method: string,
  params: object = {},
  options: SendOptions = {},
): Promise<Answered> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: options.id ?? 1, method, params });
  return send(world, 'POST', body, { ...options, headers: { ...session, ...options.headers } });
}

export async function until(condition: () => boolean | Promise<boolean>, what: string, ms = 5_000): Promise<void> {
  const end = performance.now() + ms;
  while (!(await condition())) {
    if (performance.now() > end) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
