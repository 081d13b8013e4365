/**
 * One request to the API server over undici, with the credentials of the moment. An answer of 401 makes the credentials be read
 * anew and the request be sent once more. TLS material that changed gets connections of its own; the old ones end with
 * the requests that use them.
 */
import { Agent, type Dispatcher } from 'undici';
import { ApiError } from '../engine/api-error.ts';
import type { Connection, ConnectionSource } from './connection.ts';
import { failureOfAnswer, failureOfThrown } from './failure.ts';

export interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly contentType?: string;
}

export interface Http {
  /** The parsed body of a 2xx answer. `timeoutMs` bounds the whole exchange. */
  readonly json: (
    request: Request,
    limits: { readonly timeoutMs: number; readonly signal?: AbortSignal },
  ) => Promise<unknown>;
  /** The body of a 2xx answer as it comes. `timeoutMs` bounds the time to its head; the signal ends it at any time. */
  readonly stream: (
    request: Request,
    limits: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ) => Promise<AsyncIterable<Uint8Array>>;
  /** Ends all connections. */
  readonly close: () => Promise<void>;
}

/** Longest answer that is read, in bytes: a page of 500 objects of the largest size that a real object has. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
const MAX_ERROR_BYTES = 64 * 1024;

export function createHttp(source: ConnectionSource): Http {
  let agent: { readonly tls: string; readonly dispatcher: Agent } | undefined;
  let closed = false;

  async function dispatcher(connection: Connection): Promise<Agent> {
    const tls = JSON.stringify(connection.tls);
    if (agent?.tls === tls) return agent.dispatcher;
    const old = agent;
    agent = { tls, dispatcher: createAgent(connection) };
    // Lets running requests finish; a watch of ours ends by itself within ten minutes.
    void old?.dispatcher.close().catch(() => {});
    return agent.dispatcher;
  }

  async function send(request: Request, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    for (let attempt = 1; ; attempt++) {
      if (closed) throw new ApiError('aborted', 'The client was closed.');
      const connection = await source.current().catch((error: unknown) => {
        throw new ApiError('unauthorized', 'The credentials for the API server could not be read.', { cause: error });
      });
      const url = new URL(connection.server);
      const response = await (await dispatcher(connection)).request({
        origin: url.origin,
        path: `${url.pathname.replace(/\/+$/, '')}${request.path}`,
        ...(request.query === undefined ? {} : { query: request.query }),
        method: request.method,
        headers: {
          accept: 'application/json',
          'user-agent': 'oz0-operator',
          ...(request.body === undefined ? {} : { 'content-type': request.contentType ?? 'application/json' }),
          ...(connection.authorization === undefined ? {} : { authorization: connection.authorization }),
        },
        ...(request.body === undefined ? {} : { body: request.body }),
        signal,
      });
      if (response.statusCode >= 200 && response.statusCode < 300) return response;
      const failure = failureOfAnswer(
        response.statusCode,
        await read(response.body, MAX_ERROR_BYTES, 'cut'),
        header(response.headers['retry-after']),
      );
      if (failure.code !== 'unauthorized' || attempt > 1) throw failure;
      source.refused();
    }
  }

  return {
    json: (request, limits) =>
      within(limits.timeoutMs, limits.signal, async (signal) => {
        const response = await send(request, signal);
        const text = await read(response.body, MAX_ANSWER_BYTES, 'refuse');
        try {
          return JSON.parse(text);
        } catch (error) {
          throw new ApiError('malformed', 'The API server answered something that is not JSON.', { cause: error });
        }
      }),
    stream: async (request, limits) => {
      // The signal given to undici must live as long as the body, the time limit only until the head is there.
      const ending = new AbortController();
      const end = () => ending.abort(limits.signal.reason);
      limits.signal.addEventListener('abort', end, { once: true });
      try {
        const response = await within(limits.timeoutMs, limits.signal, (signal) => {
          signal.addEventListener('abort', () => ending.abort(signal.reason), { once: true });
          return send(request, ending.signal);
        });
        return failingKindly(response.body, () => limits.signal.removeEventListener('abort', end));
      } catch (error) {
        limits.signal.removeEventListener('abort', end);
        throw error;
      }
    },
    close: async () => {
      closed = true;
      await agent?.dispatcher.destroy();
    },
  };
}

function createAgent(connection: Connection): Agent {
  const { ca, cert, key, serverName, verify } = connection.tls;
  return new Agent({
    // One connection a watch: what silences one of them then silences no other, and is seen by its own reader.
    allowH2: false,
    keepAliveTimeout: 30_000,
    // Time limits are ours, for the whole exchange; a watch may be quiet for long.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: {
      timeout: 10_000,
      keepAlive: true,
      keepAliveInitialDelay: 15_000,
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
      ...(serverName === undefined ? {} : { servername: serverName }),
      rejectUnauthorized: verify,
    },
  });
}

/** Runs `work` with a signal that ends with the caller's or after `timeoutMs`; whatever is thrown becomes an `ApiError`. */
async function within<T>(
  timeoutMs: number,
  outer: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  if (outer?.aborted) throw aborted(outer.reason);
  const inner = new AbortController();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    inner.abort();
  }, timeoutMs);
  const onAbort = () => inner.abort();
  outer?.addEventListener('abort', onAbort, { once: true });
  try {
    return await work(inner.signal);
  } catch (error) {
    if (error instanceof ApiError) throw error;
    if (outer?.aborted) throw aborted(outer.reason);
    if (late) {
      throw new ApiError('timeout', `The API server did not answer within ${timeoutMs} ms.`, { cause: error });
    }
    throw failureOfThrown(error);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener('abort', onAbort);
  }
}

function aborted(reason: unknown): ApiError {
  return new ApiError('aborted', 'The call was given up.', { cause: reason });
}

async function* failingKindly(body: AsyncIterable<Uint8Array>, done: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (error) {
    throw failureOfThrown(error);
  } finally {
    done();
  }
}

async function read(body: AsyncIterable<Uint8Array>, maxBytes: number, beyond: 'cut' | 'refuse'): Promise<string> {
  const parts: Uint8Array[] = [];
  let held = 0;
  for await (const part of body) {
    held += part.length;
    if (held > maxBytes) {
      if (beyond === 'cut') break;
      throw new ApiError('malformed', `An answer of the API server is longer than ${maxBytes} bytes.`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function header(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}
