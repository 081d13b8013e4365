/** Turns what went wrong into an `ApiError`: answers of the API server, broken connections, and time that ran out. */
import { ApiError, type ApiErrorCode } from '../engine/api-error.ts';

interface StatusBody {
  readonly code?: unknown;
  readonly reason?: unknown;
  readonly message?: unknown;
  readonly details?: {
    readonly retryAfterSeconds?: unknown;
    readonly causes?: readonly { readonly field?: unknown }[];
  };
}

/** `body` is what the server sent, a Status object in the good case; `retryAfter` the header. */
export function failureOfAnswer(status: number, body: string, retryAfter: string | undefined): ApiError {
  const parsed = parseStatus(body);
  return failureOfStatus(parsed ?? {}, status, retryAfter);
}

/** For a Status object, from an answer or from within a watch. */
export function failureOfStatus(value: unknown, httpStatus?: number, retryAfter?: string): ApiError {
  const body: StatusBody = typeof value === 'object' && value !== null ? value : {};
  const status = typeof body.code === 'number' ? body.code : (httpStatus ?? 500);
  const reason = typeof body.reason === 'string' ? body.reason : undefined;
  const retryAfterMs = retryMs(retryAfter, body.details?.retryAfterSeconds);
  const fields = (Array.isArray(body.details?.causes) ? body.details.causes : [])
    .map((cause) => cause?.field)
    .filter((field) => typeof field === 'string')
    .slice(0, 20);
  const message =
    typeof body.message === 'string' && body.message !== ''
      ? body.message
      : `The API server answered ${status}${reason ? ` ${reason}` : ''}.`;
  return new ApiError(codeOf(status, reason), message, {
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    fields,
  });
}

/** For what `fetch`-like code throws. An `ApiError` stays what it is. */
export function failureOfThrown(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const code = codeProperty(error);
  if (code === 'UND_ERR_HEADERS_TIMEOUT' || code === 'UND_ERR_BODY_TIMEOUT' || code === 'UND_ERR_CONNECT_TIMEOUT') {
    return new ApiError('timeout', 'The API server did not answer in time.', { cause: error });
  }
  return new ApiError('network', `The connection to the API server failed${code ? ` (${code})` : ''}.`, {
    cause: error,
  });
}

function codeOf(status: number, reason: string | undefined): ApiErrorCode {
  switch (status) {
    case 400:
    case 413:
    case 422:
      return 'invalid';
    case 401:
      return 'unauthorized';
    case 403:
      return 'forbidden';
    case 404:
      return 'notFound';
    case 409:
      return reason === 'AlreadyExists' ? 'exists' : 'conflict';
    case 410:
      return 'gone';
    case 429:
      return 'tooManyRequests';
    case 504:
      return 'timeout';
    default:
      if (reason === 'Expired' || reason === 'Gone') return 'gone';
      return status >= 500 ? 'server' : 'malformed';
  }
}

/** At most an hour: a wrong header must not put us to sleep for ever. */
function retryMs(header: string | undefined, detail: unknown): number | undefined {
  const seconds = header !== undefined && /^\d{1,9}$/.test(header.trim()) ? Number(header) : detail;
  return typeof seconds === 'number' && seconds >= 0 ? Math.min(seconds, 3600) * 1000 : undefined;
}

function parseStatus(body: string): StatusBody | undefined {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

function codeProperty(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const code = (error as { readonly code?: unknown }).code;
  if (typeof code === 'string') return code;
  return codeProperty((error as { readonly cause?: unknown }).cause);
}
