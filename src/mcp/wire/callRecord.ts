/** What gateways ask a sidecar's journal (`POST /calls`), and what it answers. Pure. */
import { type CallKey, readCallKey, readTime } from './callOrders.ts';
import { isObject, type JsonObject, type RpcError } from './jsonrpc.ts';

/** How an attempt ended. */
export type CallEnd =
  | { readonly kind: 'result'; readonly result: JsonObject }
  /** It was answered; the answer is not kept any more, or never was. */
  | { readonly kind: 'result'; readonly lost: true; readonly isError: boolean }
  | { readonly kind: 'error'; readonly error: RpcError }
  | { readonly kind: 'error'; readonly lost: true }
  /** Nobody can say whether it acted. */
  | { readonly kind: 'unknown'; readonly reason: string }
  /** Nothing reached the tool. */
  | { readonly kind: 'not-started'; readonly reason: string }
  /** Ended by `stop`. */
  | { readonly kind: 'stopped' };

export interface JournalQuestion extends CallKey {
  /** Where it was never seen: make sure that it never will be. */
  readonly fence: boolean;
  /** Ends it where it runs, as `stopped`; where it was never seen, fences it. */
  readonly stop: boolean;
  /** Ends it where it runs, as `unknown` for the reason `cancelled`; where it was never seen, fences it. */
  readonly cancel: boolean;
  /** How long to wait for the end of what runs. */
  readonly waitMs: number;
  /** The attempt's own; with it a journal that had to forget others can still say that it never saw this one. */
  readonly notAfter?: number;
}

export type CallState =
  | { readonly state: 'never-seen' | 'fenced' | 'running' }
  | { readonly state: 'done'; readonly outcome: CallEnd };

export const MAX_WAIT_MS = 60_000;

/** The question in a body; undefined where it is none. */
export function readJournalQuestion(body: unknown): JournalQuestion | undefined {
  if (!isObject(body)) return undefined;
  const key = readCallKey(body);
  const { fence = false, stop = false, cancel = false, waitMs = 0 } = body;
  const notAfter = readTime(body['notAfter']);
  if (key === undefined || (body['notAfter'] !== undefined && notAfter === undefined)) return undefined;
  if (typeof fence !== 'boolean' || typeof stop !== 'boolean' || typeof cancel !== 'boolean') return undefined;
  if (!Number.isInteger(waitMs) || Number(waitMs) < 0 || Number(waitMs) > MAX_WAIT_MS) return undefined;
  return { ...key, fence, stop, cancel, waitMs: Number(waitMs), ...(notAfter === undefined ? {} : { notAfter }) };
}

/** The answer in a body; undefined where it is none. */
export function readCallState(body: unknown): CallState | undefined {
  if (!isObject(body)) return undefined;
  const { state, outcome } = body;
  if (state === 'never-seen' || state === 'fenced' || state === 'running') return { state };
  const end = state === 'done' ? readCallEnd(outcome) : undefined;
  return end === undefined ? undefined : { state: 'done', outcome: end };
}

export function readCallEnd(value: unknown): CallEnd | undefined {
  if (!isObject(value)) return undefined;
  const { kind, result, error, reason, lost, isError } = value;
  switch (kind) {
    case 'result':
      if (lost === true) return { kind, lost, isError: isError === true };
      return isObject(result) ? { kind, result } : undefined;
    case 'error':
      if (lost === true) return { kind, lost };
      return isRpcError(error) ? { kind, error } : undefined;
    case 'unknown':
    case 'not-started':
      return typeof reason === 'string' ? { kind, reason } : undefined;
    case 'stopped':
      return { kind };
    default:
      return undefined;
  }
}

function isRpcError(value: unknown): value is RpcError {
  return isObject(value) && Number.isSafeInteger(value['code']) && typeof value['message'] === 'string';
}
