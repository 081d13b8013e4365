/**
 * The client's side of MCP over a process's stdin and stdout: one process for many callers. Ids and progress tokens are
 * our own on this hop; what the process says that is no answer to us is counted and goes no further. Knows no process,
 * timer of restarts or policy: bytes come in by `push` and leave by `write`.
 */

import type { Progress } from './handler.ts';
import { splitLines } from './stdioLines.ts';
import { METHOD_NOT_FOUND } from './wire/errorCode.ts';
import {
  encodeError,
  encodeNotification,
  encodeRequest,
  encodeResult,
  type JsonObject,
  parseMessage,
  type RpcError,
  type RpcRequest,
} from './wire/jsonrpc.ts';
import { MAX_ANSWER_DEPTH, parseJson } from './wire/jsonText.ts';

export type StdioOutcome =
  | { readonly kind: 'result'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: RpcError }
  /** It was answered, with more bytes or levels than are allowed; the answer is gone. */
  | { readonly kind: 'too-large' }
  /** Nobody can say whether it acted. */
  | { readonly kind: 'unknown'; readonly reason: 'timeout' | 'process-ended' }
  /** The caller's signal ended it; the process was told. */
  | { readonly kind: 'cancelled' };

export interface StdioRequest {
  readonly method: string;
  readonly params: JsonObject;
  /** Unset: as long as the process lives. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Progress) => void;
}

export interface StdioClientOptions {
  readonly write: (bytes: Buffer) => void;
  /** Of one message, either way. */
  readonly maxMessageBytes: number;
  readonly onNotification?: (method: string, params: JsonObject | undefined) => void;
  /** Bytes that were no message of use: junk, half lines, answers to nobody. */
  readonly onNoise?: (bytes: number) => void;
  /** How long a call that was given up may go on before `onOverdue`. */
  readonly graceMs: number;
  /** A call that was given up is still unanswered after the grace. */
  readonly onOverdue: () => void;
}

export interface StdioClient {
  /** Never throws. Nothing is sent once `end` was called. */
  readonly request: (request: StdioRequest) => Promise<StdioOutcome>;
  readonly notify: (method: string, params?: JsonObject) => void;
  /** Bytes of the process's stdout. */
  readonly push: (chunk: Buffer) => void;
  /** The process has ended: whatever runs has an unknown outcome. */
  readonly end: () => void;
  /** Calls that the process still works on, for all we know; also those that were given up. */
  readonly running: () => number;
  /** Of these, the ones that someone still waits for. */
  readonly awaited: () => number;
}

/** Of each end of an answer, where its id is looked for. */
const END_CHARS = 512;

interface Pending {
  readonly settle: (outcome: StdioOutcome) => void;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  readonly counted: boolean;
  givenUp: boolean;
  timer: NodeJS.Timeout | undefined;
}

export function createStdioClient(options: StdioClientOptions): StdioClient {
  const pending = new Map<number, Pending>();
  let counted = 0;
  let givenUp = 0;
  let lastId = 0;
  let ended = false;
  const noise = (bytes: number): void => options.onNoise?.(bytes);

  const send = (text: string): void => {
    if (!ended) options.write(Buffer.from(`${text}\n`));
  };

  const forget = (id: number): void => {
    const entry = pending.get(id);
    if (entry === undefined) return;
    clearTimeout(entry.timer);
    pending.delete(id);
    if (entry.counted) counted--;
    if (entry.counted && entry.givenUp) givenUp--;
  };

  const answer = (id: unknown, outcome: StdioOutcome, bytes: number): void => {
    const entry = typeof id === 'number' ? pending.get(id) : undefined;
    if (entry === undefined || typeof id !== 'number') {
      noise(bytes);
      return;
    }
    forget(id);
    entry.settle(outcome);
  };

  const serve = (request: RpcRequest, bytes: number): void => {
    noise(bytes);
    // Sampling, elicitation and roots were not declared; whatever else a server may ask of a client, neither.
    const refusal = encodeError(request.id, { code: METHOD_NOT_FOUND, message: 'Method not found' });
    send(request.method === 'ping' ? encodeResult(request.id, {}) : refusal);
  };

  const notified = (method: string, params: JsonObject | undefined, bytes: number): void => {
    noise(bytes);
    if (method !== 'notifications/progress') {
      options.onNotification?.(method, params);
      return;
    }
    const entry = typeof params?.['progressToken'] === 'number' ? pending.get(params['progressToken']) : undefined;
    const progress = readProgress(params);
    if (progress !== undefined) entry?.onProgress?.(progress);
  };

  /** An answer that cannot be read, by what its ends say of whose it is. */
  const lost = (head: string, tail: string, bytes: number, otherwise: number | undefined): void => {
    noise(bytes);
    const id = idOfOversize(head, tail) ?? otherwise;
    if (id !== undefined) answer(id, { kind: 'too-large' }, 0);
  };

  const lines = splitLines(options.maxMessageBytes, {
    line(text, bytes) {
      const json = parseJson(text, MAX_ANSWER_DEPTH);
      if (!json.ok) {
        // What is nested too deeply could not be passed on; the call that it answers need not wait for its timeout.
        lost(text.slice(0, END_CHARS), text.slice(-END_CHARS), bytes, undefined);
        return;
      }
      // Revisions before 2025-06-18 allowed batches.
      for (const each of Array.isArray(json.value) ? json.value : [json.value]) {
        const parsed = parseMessage(each);
        if (!parsed.ok) {
          noise(bytes);
          continue;
        }
        const { message } = parsed;
        if (message.kind === 'request') serve(message, bytes);
        else if (message.kind === 'notification') notified(message.method, message.params, bytes);
        else answer(message.id, message, bytes);
      }
    },
    broken: noise,
    oversize: (head, tail, bytes) => lost(head, tail, bytes, onlyId(pending)),
  });

  return {
    request({ method, params, timeoutMs, signal, onProgress }) {
      const { promise, resolve } = Promise.withResolvers<StdioOutcome>();
      if (ended) resolve({ kind: 'unknown', reason: 'process-ended' });
      else if (signal?.aborted) resolve({ kind: 'cancelled' });
      else {
        const id = ++lastId;
        const counts = method === 'tools/call';
        let settled = false;
        const settle = (outcome: StdioOutcome): void => {
          settled = true;
          signal?.removeEventListener('abort', abort);
          resolve(outcome);
        };
        const giveUp = (outcome: StdioOutcome, reason: string): void => {
          const entry = pending.get(id);
          if (entry === undefined || settled) return;
          if (!counts) {
            // What is no call holds no slot, and a handshake may not be cancelled.
            forget(id);
            settle(outcome);
            return;
          }
          clearTimeout(entry.timer);
          send(encodeNotification('notifications/cancelled', { requestId: id, reason }));
          entry.timer = setTimeout(options.onOverdue, options.graceMs);
          entry.givenUp = true;
          givenUp++;
          settle(outcome);
        };
        const abort = (): void => giveUp({ kind: 'cancelled' }, 'cancelled by the client');
        const timer =
          timeoutMs === undefined
            ? undefined
            : setTimeout(() => giveUp({ kind: 'unknown', reason: 'timeout' }, 'timed out'), timeoutMs);
        pending.set(id, { settle, onProgress, counted: counts, givenUp: false, timer });
        if (counts) counted++;
        signal?.addEventListener('abort', abort, { once: true });
        send(encodeRequest(id, method, onProgress === undefined ? params : withToken(params, id)));
      }
      return promise;
    },
    notify: (method, params) => send(encodeNotification(method, params)),
    push: lines.push,
    end() {
      if (ended) return;
      ended = true;
      noise(lines.rest());
      for (const [id, entry] of [...pending]) {
        forget(id);
        entry.settle({ kind: 'unknown', reason: 'process-ended' });
      }
    },
    running: () => counted,
    awaited: () => counted - givenUp,
  };
}

function withToken(params: JsonObject, token: number): JsonObject {
  const meta = params['_meta'];
  return { ...params, _meta: { ...(typeof meta === 'object' && meta !== null ? meta : {}), progressToken: token } };
}

/** The progress in a notification's params, where it is one. */
export function readProgress(params: JsonObject | undefined): Progress | undefined {
  const { progress, total, message } = params ?? {};
  if (typeof progress !== 'number') return undefined;
  return {
    progress,
    ...(typeof total === 'number' ? { total } : {}),
    ...(typeof message === 'string' ? { message: message.slice(0, 1_000) } : {}),
  };
}

/** The id that an answer too long to be read has at its start or its end, where servers write it. */
function idOfOversize(head: string, tail: string): number | undefined {
  const match =
    /^\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,/.exec(head) ??
    /[,}\]]\s*"id"\s*:\s*(\d{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$/.exec(tail);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/** Where one call alone runs, the answer is its own. */
function onlyId(pending: ReadonlyMap<number, Pending>): number | undefined {
  const counted = [...pending].filter(([, entry]) => entry.counted);
  return counted.length === 1 ? counted[0]?.[0] : undefined;
}
