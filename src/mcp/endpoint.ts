/**
 * An MCP endpoint over node:http: describes a request once, classifies it, and does what it asks of a handler.
 * Both eras, or the stateless one alone (no `sessions`). Authenticates before it reads a body; holds nothing of a client
 * but its open requests.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createInFlight } from '../domain/inFlight.ts';
import { acceptance, createExchange, type Exchange } from './exchange.ts';
import type { Answer, McpHandler, Progress } from './handler.ts';
import { createHeldBytes, type HeldLimits, type Holding } from './heldBytes.ts';
import { legacyListing, legacyResult } from './legacyShape.ts';
import { createSessionOpener, type Session, type SessionKey, sealSession } from './sealedSession.ts';
import { DEFAULT_MAX_BODY_BYTES, readBody } from './wire/body.ts';
import { classifyInbound, type Inbound, type InboundRequest } from './wire/classify.ts';
import { INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR } from './wire/errorCode.ts';
import {
  encodeError,
  encodeNotification,
  encodeResult,
  isObject,
  isRequestId,
  type JsonObject,
  type RequestId,
  type RpcRequest,
} from './wire/jsonrpc.ts';
import { META_SERVER_INFO, META_SUBSCRIPTION, progressToken, requestMeta } from './wire/meta.ts';
import { MODERN_VERSIONS, negotiateLegacy } from './wire/version.ts';

/** Who a request is from, or why it is not served. `headers` go on the response, such as `WWW-Authenticate`. */
export type Admission<Context> =
  | { readonly ok: true; readonly context: Context }
  | {
      readonly ok: false;
      readonly status: 401 | 403 | 404 | 429 | 503;
      readonly message: string;
      readonly headers?: Readonly<Record<string, string>>;
    };

export interface SessionOptions<Context> {
  /** Newest first; read anew for each use, since keys rotate. */
  readonly keys: () => readonly SessionKey[];
  /** Whose a session is, and at which endpoint: a session opens only for the same text. */
  readonly binding: (context: Context) => string;
  readonly lifetimeMs: number;
}

export interface EndpointOptions<Context> {
  readonly handler: McpHandler<Context>;
  readonly admit: (req: IncomingMessage) => Admission<Context> | Promise<Admission<Context>>;
  /** Present: the older era is served too. */
  readonly sessions?: SessionOptions<Context>;
  /** Origins of browsers that may call; a request with any other Origin is refused (DNS rebinding). */
  readonly allowedOrigins?: ReadonlySet<string>;
  readonly maxBodyBytes?: number;
  /** Whose share of what is bounded below a request takes. */
  readonly keyOf?: (context: Context) => string;
  /** Bodies and answers in memory, for each key of callers and for all; without it only counts and sizes are bounded. */
  readonly held?: HeldLimits;
  readonly bodyTimeoutMs?: number;
  /** Quiet time after which a stream gets a comment; a reader that takes nothing for two of them is hung up on. */
  readonly keepAliveMs?: number;
  /** Open event streams (listen, GET) at once. */
  readonly maxStreams?: number;
  /** Of these, those of one key. */
  readonly maxStreamsPerKey?: number;
  readonly now?: () => number;
  /** An error that no one else reports. */
  readonly onProblem?: (error: unknown) => void;
}

export interface McpEndpoint {
  readonly handle: (req: IncomingMessage, res: ServerResponse) => void;
  /** Ends the event streams of listeners gracefully, and from now on each new one at once; calls go on. */
  readonly endStreams: () => void;
  /** Takes listeners again: the end that was near did not come. */
  readonly takeStreams: () => void;
  /** Requests that are not answered yet. */
  readonly open: () => number;
  /** Bytes of bodies and answers, and room that is kept for answers. */
  readonly heldBytes: () => number;
  /** Stops the timer. */
  readonly close: () => void;
}

/** How long a listing may be kept by a client that listens for changes, in milliseconds. */
const LIST_TTL_MS = 5_000;
const DISCOVER_TTL_MS = 60_000;

export function createMcpEndpoint<Context>(options: EndpointOptions<Context>): McpEndpoint {
  const { handler, admit, sessions } = options;
  const maxBodyBytes = options.maxBodyBytes ?? DEFAULT_MAX_BODY_BYTES;
  const bodyTimeoutMs = options.bodyTimeoutMs ?? 30_000;
  const maxStreams = options.maxStreams ?? 1024;
  const maxStreamsPerKey = options.maxStreamsPerKey ?? maxStreams;
  const keyOf = options.keyOf ?? (() => '');
  const now = options.now ?? Date.now;
  const held = options.held === undefined ? undefined : createHeldBytes(options.held);
  const eras = sessions === undefined ? 'modern' : 'both';
  const capabilities = { tools: { listChanged: true } };
  const identity = { [META_SERVER_INFO]: handler.serverInfo };
  const openSession = createSessionOpener();

  const exchanges = new Set<Exchange>();
  /** How to end each open event stream gracefully. */
  const streams = new Map<Exchange, () => void>();
  const streamsOf = createInFlight(maxStreamsPerKey);
  /** Running requests of sessions, for `notifications/cancelled`; held no longer than they run. */
  const running = new Map<string, Set<AbortController>>();

  let ending = false;
  const timer = setInterval(() => {
    for (const exchange of exchanges) exchange.tick();
  }, options.keepAliveMs ?? 15_000);
  timer.unref();

  const open = (req: IncomingMessage, res: ServerResponse, holding: Holding | undefined): Exchange => {
    const exchange = createExchange(req, res, holding, (ended) => {
      exchanges.delete(ended);
      streams.delete(ended);
    });
    exchanges.add(exchange);
    return exchange;
  };

  const serve = async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    const origin = req.headers.origin;
    if (origin !== undefined && options.allowedOrigins?.has(origin) !== true) {
      return refuse(req, res, 403, INVALID_REQUEST, 'Origin is not allowed');
    }
    const admission = await admit(req);
    // Who left meanwhile is told of by no event any more, and what is opened for it would stay.
    if (res.destroyed) return;
    if (!admission.ok) {
      const code = admission.status === 503 ? INTERNAL_ERROR : INVALID_REQUEST;
      return refuse(req, res, admission.status, code, admission.message, admission.headers);
    }
    if (!acceptance(req.headers.accept).json && req.method === 'POST') {
      return refuse(req, res, 406, INVALID_REQUEST, 'Accept must include application/json and text/event-stream');
    }
    const holding = held?.open(keyOf(admission.context));
    if (holding !== undefined) res.on('close', holding.release);
    let body: unknown;
    let inexact: string | undefined;
    if (req.method === 'POST') {
      const read = await readBody(req, maxBodyBytes, bodyTimeoutMs, holding?.tryAdd);
      if (!read.ok) return refuse(req, res, read.status, BODY_ERROR[read.status], read.problem, RETRY[read.status]);
      body = read.value;
      inexact = read.inexact;
    }
    const inbound = classifyInbound(describe(req, body), eras);
    if (inexact !== undefined && isCall(inbound)) {
      const message = `The number ${inexact} cannot be passed on as it is; if the tool takes it as text, write it in quotes`;
      return open(req, res, holding).answer(encodeError(inbound.request.id, { code: INVALID_PARAMS, message }));
    }
    await act(req, res, inbound, admission.context, holding);
  };

  const act = async (
    req: IncomingMessage,
    res: ServerResponse,
    inbound: Inbound,
    context: Context,
    holding: Holding | undefined,
  ): Promise<void> => {
    switch (inbound.kind) {
      case 'reject': {
        const headers = inbound.status === 405 ? { allow: eras === 'both' ? 'GET, POST, DELETE' : 'POST' } : {};
        return open(req, res, holding).answer(encodeError(inbound.id, inbound.error), inbound.status, headers);
      }
      case 'modern':
        return serveModern(req, open(req, res, holding), inbound, context);
      case 'modern-notification':
        return accept(res);
      case 'initialize':
        return initialize(open(req, res, holding), inbound.request.id, inbound.requestedVersion, context);
      default:
        return serveSession(req, res, inbound, context, holding);
    }
  };

  const serveModern = async (
    req: IncomingMessage,
    exchange: Exchange,
    inbound: Extract<Inbound, { kind: 'modern' }>,
    context: Context,
  ): Promise<void> => {
    const { request, method } = inbound;
    const complete = (result: JsonObject): JsonObject => {
      const meta = isObject(result['_meta']) ? result['_meta'] : {};
      return { ...result, resultType: 'complete', _meta: { ...meta, ...identity } };
    };
    switch (method) {
      case 'server/discover': {
        const { instructions } = handler;
        const result = {
          supportedVersions: MODERN_VERSIONS,
          capabilities,
          serverInfo: handler.serverInfo,
          ...(instructions === undefined ? {} : { instructions }),
          ttlMs: DISCOVER_TTL_MS,
          cacheScope: 'private',
        };
        return exchange.answer(encodeResult(request.id, complete(result)));
      }
      case 'tools/list':
        return list(exchange, request, context, (result) =>
          complete({ ...result, ttlMs: LIST_TTL_MS, cacheScope: 'private' }),
        );
      case 'tools/call': {
        const cancel = new AbortController();
        // In the stateless era closing the response is how a client cancels.
        exchange.onGone(() => cancel.abort());
        const paramHeader = (name: string): string | undefined => header(req, name);
        return call(exchange, request, context, cancel.signal, complete, paramHeader);
      }
      case 'subscriptions/listen':
        return listen(exchange, request, context);
    }
  };

  const initialize = (
    exchange: Exchange,
    id: RequestId,
    requestedVersion: string | undefined,
    context: Context,
  ): void => {
    if (sessions === undefined) throw new Error('no sessions here');
    const version = negotiateLegacy(requestedVersion);
    const session = { version, expiresAtMs: now() + sessions.lifetimeMs };
    const { instructions, serverInfo } = handler;
    const result = {
      protocolVersion: version,
      capabilities,
      serverInfo,
      ...(instructions === undefined ? {} : { instructions }),
    };
    const sealed = sealSession(sessions.keys(), sessions.binding(context), session);
    exchange.answer(encodeResult(id, result), 200, { 'mcp-session-id': sealed });
  };

  const serveSession = async (
    req: IncomingMessage,
    res: ServerResponse,
    inbound: Exclude<Inbound, { kind: 'reject' | 'modern' | 'modern-notification' | 'initialize' }>,
    context: Context,
    holding: Holding | undefined,
  ): Promise<void> => {
    if (sessions === undefined) throw new Error('no sessions here');
    const id = inbound.kind === 'legacy' ? inbound.request.id : null;
    const session: Session | undefined = openSession(
      sessions.keys(),
      sessions.binding(context),
      inbound.sessionId,
      now(),
    );
    const exchange = open(req, res, holding);
    if (session === undefined) {
      return exchange.answer(encodeError(id, { code: INVALID_REQUEST, message: 'Session not found' }), 404);
    }
    if (inbound.version !== undefined && inbound.version !== session.version) {
      const message = `MCP-Protocol-Version differs from the session's, ${session.version}`;
      return exchange.answer(encodeError(id, { code: INVALID_REQUEST, message }), 400);
    }
    switch (inbound.kind) {
      case 'legacy':
        return serveLegacy(exchange, inbound.request, inbound.sessionId, context);
      case 'legacy-notification': {
        const { method, params } = inbound.notification;
        const target = params?.['requestId'];
        if (method === 'notifications/cancelled' && isRequestId(target)) {
          for (const cancel of running.get(runningKey(inbound.sessionId, target)) ?? []) cancel.abort();
        }
        return accept(res);
      }
      case 'legacy-response':
        return accept(res);
      case 'legacy-end':
        // Nothing is remembered, so nothing ends; the id dies by its own expiry.
        res.writeHead(204).end();
        return;
      case 'legacy-stream': {
        if (!acceptance(req.headers.accept).stream) {
          return exchange.answer(encodeError(null, { code: INVALID_REQUEST, message: 'Not acceptable' }), 406);
        }
        const changed = encodeNotification('notifications/tools/list_changed');
        return follow(exchange, null, context, changed, () => exchange.end());
      }
    }
  };

  const serveLegacy = async (
    exchange: Exchange,
    request: RpcRequest,
    sessionId: string,
    context: Context,
  ): Promise<void> => {
    switch (request.method) {
      case 'ping':
        return exchange.answer(encodeResult(request.id, {}));
      case 'tools/list':
        return list(exchange, request, context, legacyListing);
      case 'tools/call': {
        // A closed response is no cancellation in this era; `notifications/cancelled` is.
        const cancel = new AbortController();
        const key = runningKey(sessionId, request.id);
        const siblings = running.get(key) ?? new Set();
        running.set(key, siblings.add(cancel));
        try {
          return await call(exchange, request, context, cancel.signal, legacyResult, undefined);
        } finally {
          siblings.delete(cancel);
          if (siblings.size === 0) running.delete(key);
        }
      }
      default: {
        const message = request.method === 'initialize' ? 'Already initialized' : 'Method not found';
        return exchange.answer(encodeError(request.id, { code: METHOD_NOT_FOUND, message }));
      }
    }
  };

  const list = async (
    exchange: Exchange,
    request: RpcRequest,
    context: Context,
    shape: (result: JsonObject) => JsonObject,
  ): Promise<void> => {
    const cursor = request.params?.['cursor'];
    if (cursor !== undefined && typeof cursor !== 'string') {
      return exchange.answer(encodeError(request.id, { code: INVALID_PARAMS, message: 'cursor must be a string' }));
    }
    const answer = await handler.listTools(context, cursor);
    say(exchange, request.id, answer, shape);
  };

  const call = async (
    exchange: Exchange,
    request: RpcRequest,
    context: Context,
    signal: AbortSignal,
    shape: (result: JsonObject) => JsonObject,
    paramHeader: ((name: string) => string | undefined) | undefined,
  ): Promise<void> => {
    const name = request.params?.['name'];
    const args = request.params?.['arguments'] ?? {};
    if (typeof name !== 'string' || !isObject(args)) {
      const message = 'tools/call needs a name, and arguments that are an object';
      return exchange.answer(encodeError(request.id, { code: INVALID_PARAMS, message }));
    }
    const meta = requestMeta(request.params) ?? {};
    const token = progressToken(meta);
    const progress = (at: Progress): void => {
      exchange.notify(encodeNotification('notifications/progress', { progressToken: token, ...at }));
    };
    const answer = await handler.callTool(context, {
      name,
      arguments: args,
      meta,
      signal,
      ...(token === undefined ? {} : { progress }),
      ...(exchange.reserve === undefined ? {} : { reserve: exchange.reserve }),
      ...(paramHeader === undefined ? {} : { paramHeader }),
    });
    // What was cancelled is not answered.
    if (signal.aborted) exchange.end();
    else say(exchange, request.id, answer, shape);
  };

  const listen = (exchange: Exchange, request: RpcRequest, context: Context): void => {
    const asked = request.params?.['notifications'];
    if (!isObject(asked)) {
      const message = 'subscriptions/listen needs notifications';
      exchange.answer(encodeError(request.id, { code: INVALID_PARAMS, message }));
      return;
    }
    const meta = { [META_SUBSCRIPTION]: request.id };
    const notifications = asked['toolsListChanged'] === true ? { toolsListChanged: true } : {};
    const acknowledged = encodeNotification('notifications/subscriptions/acknowledged', { notifications, _meta: meta });
    const end = (): void => {
      exchange.answer(encodeResult(request.id, { resultType: 'complete', _meta: { ...meta, ...identity } }));
    };
    if (notifications.toolsListChanged !== true) {
      exchange.notify(acknowledged);
      end();
      return;
    }
    const changed = encodeNotification('notifications/tools/list_changed', { _meta: meta });
    follow(exchange, request.id, context, changed, end, acknowledged);
  };

  /** Keeps an event stream that says `changed` when the listing did; a slow reader gets one for many changes. */
  const follow = (
    exchange: Exchange,
    id: RequestId | null,
    context: Context,
    changed: string,
    end: () => void,
    first?: string,
  ): void => {
    const leave = streams.size < maxStreams ? streamsOf.enter(keyOf(context)) : undefined;
    if (leave === undefined) {
      const message = 'Too many event streams are open';
      exchange.answer(encodeError(id, { code: INTERNAL_ERROR, message }), 503, { 'retry-after': '10' });
      return;
    }
    exchange.stream();
    if (first !== undefined) exchange.notify(first);
    if (ending) {
      leave();
      end();
      return;
    }
    let owed = false;
    const tell = (): void => {
      owed = !exchange.notify(changed);
    };
    const stop = handler.subscribe(context, tell);
    const retry = setInterval(() => {
      if (exchange.ended()) clearInterval(retry);
      else if (owed) tell();
    }, 1_000);
    retry.unref();
    const finish = (): void => {
      clearInterval(retry);
      stop();
      leave();
    };
    exchange.onGone(finish);
    streams.set(exchange, () => {
      finish();
      end();
    });
  };

  const say = (exchange: Exchange, id: RequestId, answer: Answer, shape: (result: JsonObject) => JsonObject): void => {
    if (answer.kind === 'result') exchange.answer(encodeResult(id, shape(answer.result)));
    else exchange.answer(encodeError(id, answer.error), answer.status ?? 200);
  };

  return {
    handle: (req, res) => {
      serve(req, res).catch((error: unknown) => {
        options.onProblem?.(error);
        if (res.headersSent) res.destroy();
        else refuse(req, res, 500, INTERNAL_ERROR, 'Internal error');
      });
    },
    endStreams: () => {
      ending = true;
      for (const end of [...streams.values()]) end();
    },
    takeStreams: () => {
      ending = false;
    },
    open: () => exchanges.size - streams.size,
    heldBytes: () => held?.total() ?? 0,
    close: () => clearInterval(timer),
  };
}

function describe(req: IncomingMessage, body: unknown): InboundRequest {
  return {
    httpMethod: req.method ?? '',
    headers: {
      version: header(req, 'mcp-protocol-version'),
      method: header(req, 'mcp-method'),
      name: header(req, 'mcp-name'),
    },
    sessionId: header(req, 'mcp-session-id'),
    body,
  };
}

/** node:http joins a repeated header with commas, so that it equals nothing a body says. */
function header(req: IncomingMessage, name: string): string | undefined {
  const value = req.headers[name];
  return typeof value === 'string' ? value : undefined;
}

function isCall(inbound: Inbound): inbound is Extract<Inbound, { kind: 'modern' | 'legacy' }> {
  return (inbound.kind === 'modern' || inbound.kind === 'legacy') && inbound.request.method === 'tools/call';
}

function runningKey(sessionId: string, id: RequestId): string {
  return `${sessionId} ${typeof id} ${id}`;
}

function accept(res: ServerResponse): void {
  res.writeHead(202, { 'content-length': 0 }).end();
}

/** By the status of a body that is refused: the error's code, and when to try again. */
const BODY_ERROR = {
  400: PARSE_ERROR,
  408: INVALID_REQUEST,
  413: INVALID_REQUEST,
  415: INVALID_REQUEST,
  503: INTERNAL_ERROR,
} as const;
const RETRY: { readonly [status: number]: Readonly<Record<string, string>> } = { 503: { 'retry-after': '1' } };

/** How long the rest of a refused body is thrown away, so that its sender reads the refusal and no reset. */
const DISCARD_MS = 2_000;

/** Refuses before (or while) the body was read: says so, discards what still comes for a moment, hangs up. */
function refuse(
  req: IncomingMessage,
  res: ServerResponse,
  status: number,
  code: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = Buffer.from(encodeError(null, { code, message }));
  const unread = !req.complete && (req.method === 'POST' || req.headers['content-length'] !== undefined);
  res.writeHead(status, {
    'content-type': 'application/json',
    'content-length': body.length,
    ...headers,
    ...(unread ? { connection: 'close' } : {}),
  });
  if (!unread) {
    res.end(body);
    return;
  }
  res.write(body);
  const finish = (): void => {
    clearTimeout(timer);
    res.end();
  };
  const timer = setTimeout(finish, DISCARD_MS);
  req.once('end', finish).once('close', finish).resume();
}
