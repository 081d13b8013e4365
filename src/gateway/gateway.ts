/**
 * The gateway without its surroundings: an HTTP handler over a catalog, a reviewer of tokens and connections to tool pods.
 * Opens no port, reads no environment, knows no API server; whoever makes it gives these and closes it.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { createInFlight } from '../domain/inFlight.ts';
import { type Admission, createMcpEndpoint } from '../mcp/endpoint.ts';
import type { SessionKey } from '../mcp/sealedSession.ts';
import { type AuthenticateOptions, type Authentication, createAuthenticator } from './authenticate.ts';
import { createCalls } from './calls.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { CompiledTool } from './catalog/tool.ts';
import { createHops, type Hops, type OpenConnections } from './hops.ts';
import { createJobLabels } from './jobLabels.ts';
import { createListings } from './listing/listings.ts';
import { principalKey } from './principal.ts';
import type { Recorder } from './record.ts';
import { createKeptResults } from './results/keptResults.ts';
import { createRunningCalls, type RunningCalls } from './runningCalls.ts';
import { createBreaker } from './toolCalls/breaker.ts';
import { type CarrierOptions, createCarrier } from './toolCalls/carry.ts';
import { createToolCallStore, type ToolCallDoor } from './toolCalls/toolCallStore.ts';
import { createToolCalls, type ToolCallLimits } from './toolCalls/toolCalls.ts';
import { createUpkeep, type Upkeep } from './toolCalls/upkeep.ts';
import { type Caller, type Endpoint, hasEndpoint, type World } from './view.ts';

export interface GatewayLimits {
  readonly maxBodyBytes: number;
  readonly maxAnswerBytes: number;
  readonly bodyTimeoutMs: number;
  /** Bodies and answers in memory: of one agent, and of all. */
  readonly heldBytesPerAgent: number;
  readonly heldBytes: number;
  readonly callsPerAgent: number;
  readonly callsPerTool: number;
  readonly maxStreams: number;
  readonly streamsPerAgent: number;
  readonly keepAliveMs: number;
  readonly sessionLifetimeMs: number;
  readonly dialWindowMs: number;
  readonly listingIntervalMs: number;
  /** Of a result that a model is given at once, by estimate; 0: any. */
  readonly resultTokens: number;
}

export const GATEWAY_LIMITS: GatewayLimits = {
  maxBodyBytes: 4 * 1024 * 1024,
  // A tool's largest message and what a hop writes around it.
  maxAnswerBytes: 4 * 1024 * 1024 + 64 * 1024,
  bodyTimeoutMs: 30_000,
  heldBytesPerAgent: 32 * 1024 * 1024,
  heldBytes: 128 * 1024 * 1024,
  callsPerAgent: 128,
  callsPerTool: 512,
  maxStreams: 1_024,
  streamsPerAgent: 128,
  keepAliveMs: 15_000,
  sessionLifetimeMs: 24 * 3_600_000,
  dialWindowMs: 2_000,
  listingIntervalMs: 1_000,
  resultTokens: 25_000,
};

export interface GatewayOptions {
  readonly ownNode: string;
  readonly version: string;
  readonly catalog: Catalog;
  /** Whether the catalog is whole. Before that nobody is told that something does not exist. */
  readonly synced: () => boolean;
  readonly review: AuthenticateOptions['review'];
  readonly onReview?: AuthenticateOptions['onReview'];
  readonly openConnections: OpenConnections;
  readonly sessionKeys: () => readonly SessionKey[];
  /** Whether nothing was heard of the API server for so long that a Stop could have been missed. */
  readonly apiSilent?: () => boolean;
  readonly recorder: Recorder;
  /** Where calls are written down; unset: only those that are safe to repeat are made. */
  readonly record?: {
    readonly door: ToolCallDoor;
    /** Uid of this gateway's pod. */
    readonly podUid: string;
    readonly timing?: Pick<CarrierOptions, 'grantMs' | 'recordMs'> & {
      readonly requestMs?: number;
      readonly tickMs?: number;
    };
    readonly limits?: Partial<ToolCallLimits>;
  };
  readonly allowedOrigins?: ReadonlySet<string>;
  readonly limits?: Partial<GatewayLimits>;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  readonly onListingProblem?: (tool: CompiledTool, problem: string) => void;
  readonly onProblem?: (error: unknown) => void;
}

export interface Gateway {
  readonly handle: (req: IncomingMessage, res: ServerResponse) => void;
  /** Why it should not be sent calls yet. */
  readonly notReady: () => string | undefined;
  readonly callsInFlight: () => number;
  /** Takes what is on record of open calls. */
  readonly upkeep: Pick<Upkeep, 'put' | 'remove' | 'sweep' | 'size'>;
  /** What it holds of the world outside, for tests of leaks and for metrics. */
  readonly holds: () => {
    readonly requests: number;
    readonly bytes: number;
    readonly pods: number;
    readonly tokens: number;
  };
  /** Ends listeners, lets calls run for so long, then makes what still runs an unknown outcome, and stops all it started. */
  readonly close: (graceMs: number) => Promise<void>;
}

const REALM = { 'www-authenticate': 'Bearer realm="oz0-gateway"' };
/** After the catalog was whole: how long readiness waits for tools that were never listed. */
const FIRST_LISTINGS_MS = 5_000;

export function createGateway(options: GatewayOptions): Gateway {
  const limits = { ...GATEWAY_LIMITS, ...options.limits };
  const { catalog, ownNode } = options;
  const serverInfo = { name: 'oz0-gateway', version: options.version };
  const hops = createHops(options.openConnections, serverInfo);
  const listings = createListings({
    catalog,
    hops,
    ownNode,
    minIntervalMs: limits.listingIntervalMs,
    ...(options.onListingProblem === undefined ? {} : { onProblem: options.onListingProblem }),
  });
  const world: World = {
    catalog,
    listings,
    ownNode,
    jobs: createJobLabels(),
    apiSilent: options.apiSilent ?? (() => false),
  };
  const running = createRunningCalls(catalog);
  const recording = createRecording(options, { world, hops, running, limits });
  const perAgent = createInFlight(limits.callsPerAgent);
  const authenticator = createAuthenticator({
    review: options.review,
    ...(options.now === undefined ? {} : { now: options.now }),
    ...(options.onReview === undefined ? {} : { onReview: options.onReview }),
  });

  const admit = (req: IncomingMessage): Admission<Caller> | Promise<Admission<Caller>> => {
    const endpoint = endpointOf(req.url ?? '');
    if (endpoint === undefined) return { ok: false, status: 404, message: 'Not found' };
    if (!options.synced()) return unavailable('The gateway is starting');
    const authentication = authenticator.authenticate(req.headers.authorization, req.socket.remoteAddress, req.socket);
    return authentication instanceof Promise
      ? authentication.then((known) => place(known, endpoint))
      : place(authentication, endpoint);
  };

  const place = (authentication: Authentication, endpoint: Endpoint): Admission<Caller> => {
    if (!authentication.ok) return turnAway(authentication.reason);
    const caller: Caller = { principal: authentication.principal, endpoint };
    const { namespace, serviceAccount } = caller.principal;
    if (catalog.access(namespace, serviceAccount) === undefined) {
      return { ok: false, status: 403, message: 'No Agent names this ServiceAccount' };
    }
    // A tool that is not there and one that was not granted are the same to the caller.
    if (!hasEndpoint(world, caller)) return { ok: false, status: 404, message: 'Not found' };
    return { ok: true, context: caller };
  };

  const endpoint = createMcpEndpoint<Caller>({
    handler: createCalls({
      world,
      hops,
      running,
      results: createKeptResults(),
      resultTokens: limits.resultTokens,
      ...(recording === undefined ? {} : { toolCalls: recording.toolCalls }),
      serverInfo,
      perAgent,
      perTool: createInFlight(limits.callsPerTool),
      recorder: options.recorder,
      maxAnswerBytes: limits.maxAnswerBytes,
      dialWindowMs: limits.dialWindowMs,
    }),
    admit,
    sessions: {
      keys: options.sessionKeys,
      binding: ({ principal, endpoint: at }) =>
        `${principalKey(principal)} ${at.kind === 'all' ? '/mcp' : `/tools/${at.toolName}/mcp`}`,
      lifetimeMs: limits.sessionLifetimeMs,
    },
    maxBodyBytes: limits.maxBodyBytes,
    held: {
      perKey: limits.heldBytesPerAgent,
      total: limits.heldBytes,
    },
    // By account, not by pod: more pods are not more memory.
    keyOf: ({ principal }) => `${principal.namespace}/${principal.serviceAccount}`,
    bodyTimeoutMs: limits.bodyTimeoutMs,
    keepAliveMs: limits.keepAliveMs,
    maxStreams: limits.maxStreams,
    maxStreamsPerKey: limits.streamsPerAgent,
    ...(options.allowedOrigins === undefined ? {} : { allowedOrigins: options.allowedOrigins }),
    ...(options.now === undefined ? {} : { now: options.now }),
    ...(options.onProblem === undefined ? {} : { onProblem: options.onProblem }),
  });

  let syncedAtMs: number | undefined;
  const notReady = (): string | undefined => {
    if (!options.synced()) return 'agents, tools and pods are not known yet';
    if (options.sessionKeys().length === 0) return 'there is no key for sessions yet';
    syncedAtMs ??= performance.now();
    const pending = listings.pending();
    if (pending.length === 0 || performance.now() - syncedAtMs > FIRST_LISTINGS_MS) return undefined;
    return `${pending.length} tools are not listed yet`;
  };

  return {
    handle: endpoint.handle,
    notReady,
    callsInFlight: perAgent.total,
    upkeep: recording?.upkeep ?? NO_UPKEEP,
    holds: () => ({
      requests: endpoint.open(),
      bytes: endpoint.heldBytes(),
      pods: hops.open(),
      tokens: authenticator.size(),
    }),
    close: async (graceMs) => {
      endpoint.endStreams();
      const untilMs = performance.now() + graceMs;
      while (perAgent.total() > 0 && performance.now() < untilMs) await sleep(20);
      recording?.carrier.close();
      const kept = recording?.upkeep.close();
      listings.close();
      running.close();
      await hops.close();
      // What it asks pods for has failed now.
      await kept;
      // What was cut is told as unknown; a moment to write that.
      const writtenMs = performance.now() + 1_000;
      while (endpoint.open() > 0 && performance.now() < writtenMs) await sleep(20);
      endpoint.close();
    },
  };
}

const NO_UPKEEP: Gateway['upkeep'] = { put: () => {}, remove: () => {}, sweep: () => {}, size: () => 0 };

function createRecording(
  options: GatewayOptions,
  around: {
    readonly world: World;
    readonly hops: Hops;
    readonly running: RunningCalls;
    readonly limits: GatewayLimits;
  },
) {
  const { record } = options;
  if (record === undefined) return undefined;
  const { world, hops, running, limits } = around;
  const { timing } = record;
  const now = options.now ?? Date.now;
  const self = { pod: record.podUid, node: options.ownNode };
  const breaker = createBreaker();
  const store = createToolCallStore(record.door, breaker, timing?.requestMs);
  const carrier = createCarrier({
    store,
    self,
    newNonce: randomUUID,
    now,
    dialWindowMs: limits.dialWindowMs,
    ...timing,
  });
  const toolCalls = createToolCalls({
    world,
    hops,
    running,
    store,
    breaker,
    carrier,
    self,
    now,
    maxAnswerBytes: limits.maxAnswerBytes,
    dialWindowMs: limits.dialWindowMs,
    closing: carrier.closed,
    open: (namespace) => upkeep.open(namespace),
    newCallId: randomUUID,
    ...(record.limits === undefined ? {} : { limits: record.limits }),
  });
  const upkeep = createUpkeep({
    self: record.podUid,
    lookAfter: toolCalls.lookAfter,
    inFlight: carrier.inFlight,
    synced: options.synced,
    now,
    onProblem: (error) => options.onProblem?.(error),
    ...(timing?.tickMs === undefined ? {} : { tickMs: timing.tickMs }),
  });
  return { toolCalls, carrier, upkeep };
}

const TOOL_PATH = /^\/tools\/([a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?)\/mcp$/;

function endpointOf(url: string): Endpoint | undefined {
  const query = url.indexOf('?');
  const path = query === -1 ? url : url.slice(0, query);
  if (path === '/mcp') return { kind: 'all' };
  const toolName = TOOL_PATH.exec(path)?.[1];
  return toolName === undefined ? undefined : { kind: 'tool', toolName };
}

function turnAway(reason: Extract<Authentication, { ok: false }>['reason']): Admission<Caller> {
  switch (reason) {
    case 'unauthenticated':
      return { ok: false, status: 401, message: 'A valid token for this gateway is required', headers: REALM };
    case 'not-a-service-account':
      return { ok: false, status: 403, message: 'Only ServiceAccounts are served' };
    case 'unavailable':
      return unavailable('Tokens cannot be reviewed now');
    case 'overloaded':
      return unavailable('Too many tokens wait to be reviewed');
  }
}

function unavailable(message: string): Admission<Caller> {
  return { ok: false, status: 503, message, headers: { 'retry-after': '1' } };
}
