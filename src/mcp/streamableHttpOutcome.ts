/**
 * What an HTTP answer says of a request to a remote server: whether it was answered, surely not made, or nobody can say.
 * The whole decision, pure; the table is in the tests.
 */
import type { JsonObject, RpcError, RpcMessage } from './wire/jsonrpc.ts';

export type RemoteOutcome =
  | { readonly kind: 'result'; readonly result: JsonObject }
  /** An error that was answered to this request. */
  | { readonly kind: 'error'; readonly status: number; readonly error: RpcError }
  /** The server refused before it looked at what is asked: surely nothing was done. */
  | { readonly kind: 'refused'; readonly status: number; readonly problem: string; readonly error?: RpcError }
  /** No byte of the request left. */
  | { readonly kind: 'not-sent'; readonly cause: unknown }
  /** Bytes left and no readable answer came: whether it acted is not known. */
  | {
      readonly kind: 'unknown';
      readonly reason: 'timeout' | 'connection' | 'unreadable' | 'too-large';
      readonly problem: string;
      readonly status?: number;
      /** The server asks to be left alone for so long. */
      readonly retryAfterMs?: number;
    }
  /** The caller's signal ended it; `sent` says whether bytes had left. */
  | { readonly kind: 'cancelled'; readonly sent: boolean };

/** Statuses by which a server says that it did not read on: for who asks, where, or in which form. */
const REFUSING: ReadonlySet<number> = new Set([401, 403, 404, 405, 406, 407, 413, 414, 415, 431]);
/** Redirects before anything is done; 303 says that something was. */
const ELSEWHERE: ReadonlySet<number> = new Set([301, 302, 307, 308]);
/** By these an error that names the request is about who asks, not about the request. */
const REFUSING_ALWAYS: ReadonlySet<number> = new Set([401, 403, 407]);

export interface WholeAnswer {
  readonly status: number;
  /** Messages that could be read in the body. */
  readonly messages: readonly RpcMessage[];
  readonly retryAfter?: string | undefined;
}

/** @param id of the request that was sent */
export function outcomeOf(answer: WholeAnswer, id: number): RemoteOutcome {
  const { status } = answer;
  const own = answer.messages.find((each) => (each.kind === 'result' || each.kind === 'error') && each.id === id);
  const told = answer.messages.find((each) => each.kind === 'error')?.error;
  const problem = describeStatus(status, told);
  if (status === 200) {
    if (own?.kind === 'result') return { kind: 'result', result: own.result };
    if (own?.kind === 'error') return { kind: 'error', status, error: own.error };
    return { kind: 'unknown', reason: 'unreadable', status, problem: 'the server answered with what is no MCP answer' };
  }
  const about = told === undefined ? {} : { error: told };
  if (ELSEWHERE.has(status)) return { kind: 'refused', status, problem };
  if (own?.kind === 'error' && status >= 400 && status < 500 && status !== 429 && !REFUSING_ALWAYS.has(status)) {
    return { kind: 'error', status, error: own.error };
  }
  if (REFUSING.has(status) || (status === 400 && told !== undefined)) {
    return { kind: 'refused', status, problem, ...about };
  }
  // 429 and 503 normally mean that nothing was done, which nobody promises; 500, 502 and 504 do not even mean that.
  const retryAfterMs = status === 429 || status === 503 ? readRetryAfter(answer.retryAfter) : undefined;
  return {
    kind: 'unknown',
    reason: 'unreadable',
    status,
    problem,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  };
}

const LONGEST_RETRY_AFTER_MS = 3_600_000;

/** Seconds; a date is left aside, since clocks differ. */
function readRetryAfter(value: string | undefined): number | undefined {
  if (value === undefined || !/^[0-9]{1,6}$/.test(value)) return undefined;
  return Math.min(Number(value) * 1_000, LONGEST_RETRY_AFTER_MS);
}

const MAX_TOLD_CHARS = 200;

/** For a person; of the server's own words only an error's message. */
export function describeStatus(status: number, told?: RpcError): string {
  const words = told === undefined ? '' : `: ${told.message.slice(0, MAX_TOLD_CHARS)}`;
  return `${MEANING[status] ?? (status >= 300 && status < 400 ? REDIRECT : 'the server answered')} (HTTP status ${status})${words}`;
}

const REDIRECT = 'the server answered with a redirect, and none is followed';
const MEANING: Readonly<Record<number, string>> = {
  400: 'the server could not read the request',
  401: 'the server refused the token, or wants one',
  403: 'the server forbids it',
  404: 'the server knows no MCP endpoint at this path',
  405: 'the server takes no MCP requests at this path',
  406: 'the server does not answer in a form that MCP knows',
  407: 'a proxy before the server wants to know who asks',
  413: 'the server takes no request of this size',
  415: 'the server does not take JSON',
  429: 'the server is asked too often',
  500: 'the server failed',
  502: 'what stands before the server cannot reach it',
  503: 'the server is not available',
  504: 'what stands before the server had no answer from it in time',
};
