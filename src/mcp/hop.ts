/**
 * The client of the hop from a gateway to a tool pod: 2026-07-28 over a dispatcher (undici's, or one like it).
 * Every request is sent at most once, and its outcome says how far it came: not sent, refused before it started,
 * answered, or lost after its first byte may have left.
 */
import type { Holding, Reservation } from './heldBytes.ts';
import { INVALID_REQUEST } from './wire/errorCode.ts';
import { encodeHeaderValue, mirroredName } from './wire/header.ts';
import {
  encodeRequest,
  isObject,
  type JsonObject,
  parseMessage,
  type RequestId,
  type RpcError,
} from './wire/jsonrpc.ts';
import { MAX_ANSWER_DEPTH, parseJson } from './wire/jsonText.ts';
import { META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_OUTCOME, META_VERSION } from './wire/meta.ts';
import { createSseDecoder } from './wire/sse.ts';
import { MODERN_VERSION } from './wire/version.ts';

/** The part of undici's Dispatcher that is used; a structural type, so that this folder imports no HTTP client. */
export interface HopDispatcher {
  dispatch(options: HopRequest, handler: HopHandler): boolean;
}

export interface HopRequest {
  readonly path: string;
  readonly method: 'POST' | 'GET';
  readonly headers: Record<string, string>;
  readonly body?: string;
  readonly idempotent: false;
}

interface HopController {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

export interface HopHandler {
  onRequestStart(controller: HopController): void;
  onResponseStart(controller: HopController, status: number, headers: Record<string, unknown>): void;
  onResponseData(controller: HopController, chunk: Uint8Array): void;
  onResponseEnd(): void;
  onResponseError(controller: unknown, error: Error): void;
}

/** Where a tool's sidecar answers. The dispatcher is bound to one pod and has proved it. */
export interface Hop {
  readonly dispatcher: HopDispatcher;
  readonly path: string;
  readonly client: { readonly name: string; readonly version: string };
}

const NOT_STARTED_REASONS = [
  'draining',
  'busy',
  'down',
  'not-ready',
  'definition-changed',
  'grant-expired',
  'fenced',
  'journal',
  'other-node',
] as const;
export type NotStartedReason = (typeof NOT_STARTED_REASONS)[number];
const LOST_REASONS = ['timeout', 'process-ended', 'connection', 'cancelled', 'forgotten'] as const;
export type LostReason = (typeof LOST_REASONS)[number] | 'unreadable' | 'too-large';

export type HopOutcome =
  | { readonly kind: 'result'; readonly result: JsonObject }
  /** An error that was answered: the request was read, and this is what came of it. */
  | { readonly kind: 'error'; readonly error: RpcError }
  /** The sidecar refused before anything reached the tool. */
  | { readonly kind: 'not-started'; readonly reason: NotStartedReason; readonly message: string }
  /** No byte of the request left: no connection, or given up while waiting for one. */
  | { readonly kind: 'not-sent'; readonly problem: string }
  /** Bytes left and no readable answer came: whether it acted is not known. */
  | { readonly kind: 'lost'; readonly reason: LostReason; readonly problem: string }
  /** It was ended by a stop, which whoever stopped it knows. */
  | { readonly kind: 'stopped'; readonly problem: string }
  /** The caller's signal ended it; `sent` says whether bytes had left. */
  | { readonly kind: 'cancelled'; readonly sent: boolean };

export interface HopCall {
  readonly id: RequestId;
  readonly method: string;
  readonly params: JsonObject;
  /** Goes into `_meta` beside the envelope. */
  readonly meta?: JsonObject;
  readonly signal: AbortSignal;
  /** From now to the whole answer. Progress does not extend it. */
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
  /** Asks for room for a large answer: it is not read on before there is some. */
  readonly reserve?: Holding['reserve'];
  /** Called for each notification on the stream, before the answer. */
  readonly onNotification?: (method: string, params: JsonObject) => void;
}

/** A finished stream that is not closed by its server within this time is closed by us. */
const LINGER_MS = 1_000;

/** An answer up to this size is read without asking: there are many, and they are small. */
const SMALL_ANSWER_BYTES = 64 * 1024;

/** Sends one request and tells what came of it. Never throws, never sends twice. */
export function callHop(hop: Hop, call: HopCall): Promise<HopOutcome> {
  const { promise, resolve } = Promise.withResolvers<HopOutcome>();
  let controller: HopController | undefined;
  let sent = false;
  let settled = false;
  let unread = 0;
  let room: Reservation | undefined;
  let answered: ReturnType<typeof readAnswer>;
  let reader: { push: (chunk: Uint8Array) => boolean; end: () => HopOutcome } | undefined;

  const settle = (outcome: HopOutcome): void => {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    call.signal.removeEventListener('abort', onAbort);
    room?.give();
    resolve(outcome);
  };
  const giveUp = (outcome: HopOutcome): void => {
    settle(outcome);
    controller?.abort(new Error('given up'));
  };
  const onAbort = (): void => giveUp({ kind: 'cancelled', sent });
  const timer = setTimeout(() => {
    if (sent) giveUp({ kind: 'lost', reason: 'timeout', problem: `no answer within ${call.timeoutMs} ms` });
    else giveUp({ kind: 'not-sent', problem: `no connection within ${call.timeoutMs} ms` });
  }, call.timeoutMs);
  if (call.signal.aborted) {
    settle({ kind: 'cancelled', sent: false });
    return promise;
  }
  call.signal.addEventListener('abort', onAbort, { once: true });

  const onMessage = (text: string): void => {
    if (settled) return;
    unread = 0;
    const message = readMessage(text);
    if (message?.kind === 'notification') {
      call.onNotification?.(message.method, message.params ?? {});
      return;
    }
    answered = readAnswer(message, call.id);
    if (answered === undefined) return;
    settle(answered);
    // Let the server end its stream, so that the connection can be used again.
    const linger = setTimeout(() => controller?.abort(new Error('stream not ended')), LINGER_MS);
    linger.unref();
    endLinger = () => clearTimeout(linger);
  };
  let endLinger: (() => void) | undefined;

  const handler: HopHandler = {
    onRequestStart: (started) => {
      controller = started;
      if (settled) started.abort(new Error('given up'));
      else sent = true;
    },
    onResponseStart: (_, status, headers) => {
      const type = String(headers['content-type'] ?? '');
      reader = type.startsWith('text/event-stream')
        ? readStream(call.maxAnswerBytes, onMessage)
        : readWhole(call, status, type);
    },
    onResponseData: (from, chunk) => {
      unread += chunk.length;
      if (reader?.push(chunk) !== false) {
        if (unread > SMALL_ANSWER_BYTES && room === undefined && !settled) room = waitForRoom(call, from);
        return;
      }
      settle({ kind: 'lost', reason: 'too-large', problem: `the answer is larger than ${call.maxAnswerBytes} bytes` });
      from.abort(new Error('answer too large'));
    },
    onResponseEnd: () => {
      endLinger?.();
      settle(reader?.end() ?? { kind: 'lost', reason: 'unreadable', problem: 'no answer' });
    },
    onResponseError: (_, error) => {
      endLinger?.();
      const problem = error.message;
      settle(sent ? { kind: 'lost', reason: 'connection', problem } : { kind: 'not-sent', problem });
    },
  };
  try {
    hop.dispatcher.dispatch(describeRequest(hop, call), handler);
  } catch (error) {
    // A dispatcher that is closed says so by throwing or by onResponseError; nothing was sent either way.
    settle({ kind: 'not-sent', problem: error instanceof Error ? error.message : 'dispatch failed' });
  }
  return promise;
}

/** Stops reading until there is room for the largest answer; what waits meanwhile is in the pod that wrote it. */
function waitForRoom({ reserve, maxAnswerBytes }: HopCall, from: HopController): Reservation | undefined {
  let granted = false;
  const room = reserve?.(maxAnswerBytes, () => {
    granted = true;
    // Not at once: this may be called while the client parses another connection, and it parses one at a time.
    setImmediate(() => from.resume());
  });
  if (room !== undefined && !granted) from.pause();
  return room;
}

function describeRequest(hop: Hop, call: HopCall): HopRequest {
  const { method, params } = call;
  const meta = {
    ...call.meta,
    [META_VERSION]: MODERN_VERSION,
    [META_CLIENT_INFO]: hop.client,
    [META_CLIENT_CAPABILITIES]: {},
  };
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': MODERN_VERSION,
    'mcp-method': method,
  };
  const name = mirroredName(method, params);
  if (name !== undefined) headers['mcp-name'] = encodeHeaderValue(name);
  const body = encodeRequest(call.id, method, { ...params, _meta: meta });
  return { path: hop.path, method: 'POST', headers, body, idempotent: false };
}

function readMessage(text: string): Extract<ReturnType<typeof parseMessage>, { ok: true }>['message'] | undefined {
  const json = parseJson(text, MAX_ANSWER_DEPTH);
  const parsed = json.ok ? parseMessage(json.value) : undefined;
  return parsed?.ok ? parsed.message : undefined;
}

/** The outcome that a message is for the request of this id, or undefined where it is none of ours. */
function readAnswer(message: ReturnType<typeof readMessage>, id: RequestId): HopOutcome | undefined {
  if (message === undefined || message.kind === 'request' || message.kind === 'notification') return undefined;
  if (message.id !== id) return undefined;
  if (message.kind === 'result') {
    const type = message.result['resultType'];
    if (type === undefined || type === 'complete') return { kind: 'result', result: message.result };
    return { kind: 'lost', reason: 'unreadable', problem: `a result of type ${JSON.stringify(type).slice(0, 64)}` };
  }
  return readError(message.error);
}

const NOT_STARTED: ReadonlySet<string> = new Set(NOT_STARTED_REASONS);
const LOST: ReadonlySet<string> = new Set(LOST_REASONS);

export function isNotStarted(reason: unknown): reason is NotStartedReason {
  return typeof reason === 'string' && NOT_STARTED.has(reason);
}

export function isLost(reason: unknown): reason is LostReason {
  return typeof reason === 'string' && LOST.has(reason);
}

function readError(error: RpcError): HopOutcome {
  const data = isObject(error.data) ? error.data : {};
  const outcome = data[META_OUTCOME];
  const reason = data['reason'];
  if (outcome === 'not-started' && isNotStarted(reason)) {
    return { kind: 'not-started', reason, message: error.message };
  }
  if (outcome === 'stopped') return { kind: 'stopped', problem: error.message };
  if (outcome === 'unknown') {
    return { kind: 'lost', reason: isLost(reason) ? reason : 'connection', problem: error.message };
  }
  return { kind: 'error', error };
}

/** Statuses by which an HTTP server says that it did not look at the request's meaning (spec of 2026-07-28, transport). */
const REFUSING: ReadonlySet<number> = new Set([400, 401, 403, 404, 405, 406, 413, 415, 431]);

interface AnswerReader {
  /** False: over the limit. */
  readonly push: (chunk: Uint8Array) => boolean;
  readonly end: () => HopOutcome;
}

function readStream(maxBytes: number, onMessage: (text: string) => void): AnswerReader {
  const decoder = createSseDecoder(maxBytes, onMessage);
  return {
    push: decoder.push,
    end: () => ({ kind: 'lost', reason: 'connection', problem: 'the stream ended without an answer' }),
  };
}

function readWhole(call: HopCall, status: number, type: string): AnswerReader {
  const chunks: Uint8Array[] = [];
  let size = 0;
  return {
    push: (chunk) => {
      size += chunk.length;
      chunks.push(chunk);
      return size <= call.maxAnswerBytes;
    },
    end: () => {
      const json = type.startsWith('application/json');
      const [first] = chunks;
      const bytes = first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, size);
      const message = json
        ? readMessage(Buffer.from(bytes.buffer, bytes.byteOffset, size).toString('utf8'))
        : undefined;
      const answer = readAnswer(message, call.id);
      if (answer !== undefined) return answer;
      const told = message?.kind === 'error' ? readError(message.error) : undefined;
      if (told !== undefined && told.kind !== 'error') return told;
      if (REFUSING.has(status)) {
        const text = told?.kind === 'error' ? told.error.message : `HTTP status ${status}`;
        return { kind: 'error', error: { code: INVALID_REQUEST, message: text } };
      }
      return { kind: 'lost', reason: 'unreadable', problem: `HTTP status ${status} with an answer that is none` };
    },
  };
}

export type HopListening = 'ended' | 'unsupported' | 'failed';

/**
 * Listens for changes of the tool's listing until the stream ends or the signal aborts. `onReady` is called once the
 * other side acknowledged: what changes after that is told by `onChange`.
 */
export async function listenHop(
  hop: Hop,
  id: RequestId,
  signal: AbortSignal,
  onReady: () => void,
  onChange: () => void,
): Promise<HopListening> {
  const outcome = await callHop(hop, {
    id,
    method: 'subscriptions/listen',
    params: { notifications: { toolsListChanged: true } },
    signal,
    // A listener stays for as long as both live.
    timeoutMs: 2 ** 31 - 1,
    maxAnswerBytes: 64 * 1024,
    onNotification: (method) => {
      if (method === 'notifications/subscriptions/acknowledged') onReady();
      else if (method === 'notifications/tools/list_changed') onChange();
    },
  });
  if (outcome.kind === 'result') return 'ended';
  return outcome.kind === 'error' ? 'unsupported' : 'failed';
}
