/**
 * What an HTTP request to an MCP endpoint is: the one place that tells the two eras apart and refuses what is neither.
 * Pure. The body decides; headers only confirm (2026-07-28), and a disagreement is refused before anything else is asked.
 * Order of the checks: shape, envelope, headers against body, version, method (as the protocol's validation ladder).
 */
import {
  HEADER_MISMATCH,
  INVALID_PARAMS,
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  UNSUPPORTED_VERSION,
} from './errorCode.ts';
import { headerMismatch, type MirroredHeaders } from './header.ts';
import {
  echoableId,
  type JsonObject,
  parseMessage,
  type RequestId,
  type RpcError,
  type RpcNotification,
  type RpcRequest,
} from './jsonrpc.ts';
import { claimsModern, readEnvelope, requestMeta } from './meta.ts';
import { isLegacyVersion, isModern, LEGACY_VERSIONS, MODERN_VERSION, MODERN_VERSIONS } from './version.ts';

export interface InboundRequest {
  /** GET, POST, ... */
  readonly httpMethod: string;
  readonly headers: MirroredHeaders;
  readonly sessionId?: string | undefined;
  /** The parsed body of a POST. */
  readonly body?: unknown;
}

export interface Rejection {
  readonly kind: 'reject';
  readonly status: 400 | 404 | 405;
  readonly id: RequestId | null;
  readonly error: RpcError;
}

export type Inbound =
  | { readonly kind: 'modern'; readonly method: ModernMethod; readonly request: RpcRequest; readonly meta: JsonObject }
  /** A notification of the stateless era: accepted and dropped, since closing the stream is what cancels there. */
  | { readonly kind: 'modern-notification' }
  | { readonly kind: 'initialize'; readonly request: RpcRequest; readonly requestedVersion: string | undefined }
  | {
      readonly kind: 'legacy';
      readonly sessionId: string;
      readonly request: RpcRequest;
      readonly version: string | undefined;
    }
  | {
      readonly kind: 'legacy-notification';
      readonly sessionId: string;
      readonly notification: RpcNotification;
      readonly version: string | undefined;
    }
  /** A client's answer to a question that we never ask: accepted and dropped. */
  | { readonly kind: 'legacy-response'; readonly sessionId: string; readonly version: string | undefined }
  | { readonly kind: 'legacy-stream'; readonly sessionId: string; readonly version: string | undefined }
  | { readonly kind: 'legacy-end'; readonly sessionId: string; readonly version: string | undefined }
  | Rejection;

export type ModernMethod = 'server/discover' | 'tools/list' | 'tools/call' | 'subscriptions/listen';

const MODERN_METHODS: ReadonlySet<string> = new Set<ModernMethod>([
  'server/discover',
  'tools/list',
  'tools/call',
  'subscriptions/listen',
]);

function isModernMethod(method: string): method is ModernMethod {
  return MODERN_METHODS.has(method);
}

/** `eras`: a tool pod's sidecar speaks `modern` alone, a gateway `both`. */
export function classifyInbound(request: InboundRequest, eras: 'modern' | 'both'): Inbound {
  if (request.httpMethod !== 'POST') return classifyBodyless(request, eras);
  const parsed = parseMessage(request.body);
  if (!parsed.ok) return reject(400, echoableId(request.body), INVALID_REQUEST, `Invalid request: ${parsed.problem}`);
  const { message } = parsed;
  const headerIsModern = request.headers.version !== undefined && isModern(request.headers.version);

  if (message.kind === 'request') {
    if (claimsModern(message.params)) return classifyModern(request, message);
    if (headerIsModern) {
      return message.method === 'initialize'
        ? mismatch(message.id, `initialize does not exist in ${request.headers.version}`)
        : reject(400, message.id, INVALID_PARAMS, 'Invalid params: _meta does not name the protocol version');
    }
    if (eras === 'modern') return unsupported(message.id, request.headers.version);
    if (message.method === 'initialize') {
      const requested = message.params?.['protocolVersion'];
      return {
        kind: 'initialize',
        request: message,
        requestedVersion: typeof requested === 'string' ? requested : undefined,
      };
    }
    return withSession(request, message.id, (session) => ({ kind: 'legacy', request: message, ...session }));
  }

  if (message.kind === 'notification') {
    const claims = claimsModern(message.params) || headerIsModern;
    if (claims && request.headers.method !== undefined && request.headers.method !== message.method) {
      return mismatch(null, 'Mcp-Method differs from the method in the body');
    }
    if (claims || eras === 'modern') return { kind: 'modern-notification' };
    return withSession(request, null, (session) => ({
      kind: 'legacy-notification',
      notification: message,
      ...session,
    }));
  }

  if (eras === 'modern' || headerIsModern) {
    return reject(400, null, INVALID_REQUEST, 'Invalid request: answers cannot be posted');
  }
  return withSession(request, null, (session) => ({ kind: 'legacy-response', ...session }));
}

function classifyModern(request: InboundRequest, message: RpcRequest): Inbound {
  const meta = requestMeta(message.params) ?? {};
  const read = readEnvelope(meta);
  if (!read.ok) return reject(400, message.id, INVALID_PARAMS, `Invalid params: ${read.problem}`);
  const { version } = read.envelope;
  const disagreement = headerMismatch(request.headers, message, version);
  if (disagreement !== undefined) return mismatch(message.id, disagreement);
  if (!MODERN_VERSIONS.includes(version)) return unsupported(message.id, version);
  if (!isModernMethod(message.method)) return reject(404, message.id, METHOD_NOT_FOUND, 'Method not found');
  return { kind: 'modern', method: message.method, request: message, meta };
}

/** GET opens the event stream of a session, DELETE ends one; the stateless era has neither (405). */
function classifyBodyless(request: InboundRequest, eras: 'modern' | 'both'): Inbound {
  const { httpMethod, headers, sessionId } = request;
  const known = httpMethod === 'GET' || httpMethod === 'DELETE';
  const modern = eras === 'modern' || (headers.version !== undefined && isModern(headers.version));
  // Without a session id and a version this may be either era's client: 405 is right in both.
  if (!known || modern || (sessionId === undefined && headers.version === undefined)) {
    return reject(405, null, INVALID_REQUEST, 'Method not allowed');
  }
  return withSession(request, null, (session) => ({
    kind: httpMethod === 'GET' ? 'legacy-stream' : 'legacy-end',
    ...session,
  }));
}

interface SessionPart {
  readonly sessionId: string;
  readonly version: string | undefined;
}

function withSession(request: InboundRequest, id: RequestId | null, found: (part: SessionPart) => Inbound): Inbound {
  const { sessionId, headers } = request;
  if (headers.version !== undefined && !isLegacyVersion(headers.version)) {
    const speak = [...LEGACY_VERSIONS, ...MODERN_VERSIONS].join(', ');
    return reject(400, id, INVALID_REQUEST, `Unsupported protocol version; supported are ${speak}`);
  }
  if (sessionId === undefined) return reject(400, id, INVALID_REQUEST, 'Mcp-Session-Id is required: initialize first');
  return found({ sessionId, version: headers.version });
}

function reject(status: Rejection['status'], id: RequestId | null, code: number, message: string): Rejection {
  return { kind: 'reject', status, id, error: { code, message } };
}

function mismatch(id: RequestId | null, problem: string): Rejection {
  return reject(400, id, HEADER_MISMATCH, `Header mismatch: ${problem}`);
}

function unsupported(id: RequestId | null, requested: string | undefined): Rejection {
  const data = { supported: MODERN_VERSIONS, ...(requested === undefined ? {} : { requested }) };
  const message = `Unsupported protocol version: this endpoint speaks ${MODERN_VERSION}`;
  return { kind: 'reject', status: 400, id, error: { code: UNSUPPORTED_VERSION, message, data } };
}
