/**
 * Why a call to the API server failed, as a closed set that callers switch on. The message is short, of one line and
 * holds no body or header: it may go into a condition, an event or a log.
 */
export type ApiErrorCode =
  /** 409: a precondition, a resourceVersion or a field's owner did not match. */
  | 'conflict'
  /** 409 with reason AlreadyExists. */
  | 'exists'
  | 'notFound'
  /** 410, as a status or within a watch: what was asked for is no longer in the server's history. */
  | 'gone'
  | 'unauthorized'
  | 'forbidden'
  /** 400, 413 and 422: sending the same again will fail again. */
  | 'invalid'
  | 'tooManyRequests'
  /** No complete answer in time (ours, or 504). A write may have happened. */
  | 'timeout'
  /** No or a broken connection. A write may have happened. */
  | 'network'
  /** 5xx. A write may have happened. */
  | 'server'
  /** The caller's signal. A write may have happened. */
  | 'aborted'
  /** An answer that is none of the Kubernetes API's. */
  | 'malformed';

export interface ApiErrorDetails {
  readonly status?: number;
  /** The server's own `reason`, such as `Expired`. */
  readonly reason?: string;
  readonly retryAfterMs?: number;
  /** Fields at fault, for `invalid` and for a `conflict` over a field's owner. */
  readonly fields?: readonly string[];
  readonly cause?: unknown;
}

const LONGEST_MESSAGE = 400;

export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly code: ApiErrorCode;
  readonly status: number | undefined;
  readonly reason: string | undefined;
  readonly retryAfterMs: number | undefined;
  readonly fields: readonly string[];

  constructor(code: ApiErrorCode, message: string, details: ApiErrorDetails = {}) {
    super(oneLine(message, LONGEST_MESSAGE), details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.reason = details.reason;
    this.retryAfterMs = details.retryAfterMs;
    this.fields = details.fields ?? [];
  }
}

/** The code of an `ApiError`; undefined for any other value. */
export function apiErrorCode(error: unknown): ApiErrorCode | undefined {
  return error instanceof ApiError ? error.code : undefined;
}

/** Whether the server may have done what was asked although no success was seen: look before sending it again. */
export function isAmbiguous(code: ApiErrorCode): boolean {
  return code === 'timeout' || code === 'network' || code === 'server' || code === 'aborted';
}

/** Text on one line without control characters, cut at `limit` characters (UTF-16 units, pairs kept whole). */
export function oneLine(text: string, limit: number): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: taking them out is the purpose
  const flat = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, ' ').trim();
  if (flat.length <= limit) return flat;
  const cut = flat.slice(0, limit - 1);
  const last = cut.charCodeAt(cut.length - 1);
  return `${last >= 0xd800 && last <= 0xdbff ? cut.slice(0, -1) : cut}…`;
}
