/**
 * One HTTP/1.1 request over a connection of its own, sent at most once, and how far it came. A connection that is used
 * once has no race with a peer that closes it while it is idle, and nobody re-sends on it. Follows nothing.
 */
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

/** Where a remote server answers. */
export interface RemoteServer {
  /** A connection to the server, and to nobody else; nothing of a request has left while it is made. */
  readonly connect: (signal: AbortSignal) => Promise<Duplex>;
  /** As in the URL, with the port where it is not the scheme's own. */
  readonly authority: string;
  readonly path: string;
}

export interface HttpRequest {
  readonly method: 'POST' | 'GET' | 'DELETE';
  /** Lower-case names; of visible ASCII, as is checked by whoever made them. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal: AbortSignal;
  /** From now to the end of the answer. Unset: as long as both sides live. */
  readonly timeoutMs?: number;
  /** Milliseconds since 1970; nothing is sent later. */
  readonly sendBy?: number;
}

export interface HttpHead {
  readonly status: number;
  readonly header: (name: string) => string | undefined;
  readonly pause: () => void;
  readonly resume: () => void;
}

export interface HttpReader {
  readonly head: (head: HttpHead) => void;
  /** False: enough was read; the connection is closed. */
  readonly data: (chunk: Buffer) => boolean;
}

export type HttpEnd =
  /** The whole answer was read. */
  | { readonly kind: 'ended' }
  /** The reader had enough. */
  | { readonly kind: 'stopped' }
  /** No byte of the request left. */
  | { readonly kind: 'not-sent'; readonly cause: unknown }
  /** Bytes left, and the answer did not come whole. */
  | { readonly kind: 'lost'; readonly reason: 'timeout' | 'connection'; readonly problem: string }
  | { readonly kind: 'cancelled'; readonly sent: boolean };

const MAX_HEAD_BYTES = 32 * 1024;
/** For reaching the server, whatever the request's own bound. */
const CONNECT_TIMEOUT_MS = 15_000;

/** Never throws. The connection is closed when it resolves. */
export function runExchange(server: RemoteServer, request: HttpRequest, reader: HttpReader): Promise<HttpEnd> {
  const { promise, resolve } = Promise.withResolvers<HttpEnd>();
  const { signal, timeoutMs } = request;
  const dialling = new AbortController();
  let connection: Duplex | undefined;
  let outgoing: ClientRequest | undefined;
  let sent = false;
  let settled = false;

  const settle = (end: HttpEnd): void => {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    clearTimeout(connectTimer);
    signal.removeEventListener('abort', abort);
    dialling.abort(new Error('given up'));
    // What still comes is nobody's: the parser may be back with node:http, and at work for another connection.
    connection?.removeAllListeners('data');
    // Not from inside of the parser, which may be at work on this very chunk.
    setImmediate(() => {
      outgoing?.destroy();
      connection?.destroy();
    });
    resolve(end);
  };
  const lost = (error: Error): void => settle({ kind: 'lost', reason: 'connection', problem: error.message });
  const abort = (): void => settle({ kind: 'cancelled', sent });
  const expire = (): void =>
    sent
      ? settle({ kind: 'lost', reason: 'timeout', problem: `no answer within ${timeoutMs} ms` })
      : settle({ kind: 'not-sent', cause: new Error('no connection in time') });
  const timer = timeoutMs === undefined ? undefined : setTimeout(expire, timeoutMs);
  const connectTimer = setTimeout(expire, CONNECT_TIMEOUT_MS);
  if (signal.aborted) {
    abort();
    return promise;
  }
  signal.addEventListener('abort', abort, { once: true });

  const receive = (response: IncomingMessage): void => {
    response.on('error', lost);
    response.once('close', () => lost(new Error('the connection was closed in mid-answer')));
    response.once('end', () =>
      response.complete ? settle({ kind: 'ended' }) : lost(new Error('the answer broke off')),
    );
    response.on('data', (chunk: Buffer) => {
      if (!settled && !reader.data(chunk)) settle({ kind: 'stopped' });
    });
    reader.head({
      status: response.statusCode ?? 0,
      header(name) {
        const value = response.headers[name];
        return typeof value === 'string' ? value : undefined;
      },
      pause: () => void response.pause(),
      resume: () => void response.resume(),
    });
  };

  const send = (over: Duplex): void => {
    over.on('error', () => {});
    connection = over;
    if (settled) {
      over.destroy();
      return;
    }
    clearTimeout(connectTimer);
    if (over.destroyed) {
      settle({ kind: 'not-sent', cause: new Error('the connection was closed') });
      return;
    }
    const { body, sendBy } = request;
    if (sendBy !== undefined && Date.now() > sendBy) {
      settle({ kind: 'not-sent', cause: new Error('the server was reached too late') });
      return;
    }
    try {
      outgoing = httpRequest({
        method: request.method,
        path: server.path,
        createConnection: () => over,
        maxHeaderSize: MAX_HEAD_BYTES,
        setHost: false,
        headers: {
          ...request.headers,
          host: server.authority,
          ...(body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }),
          connection: 'close',
        },
      });
    } catch (cause) {
      settle({ kind: 'not-sent', cause });
      return;
    }
    outgoing.on('error', lost);
    outgoing.once('response', receive);
    outgoing.once('close', () => lost(new Error('the connection was closed before an answer')));
    sent = true;
    outgoing.end(body);
  };

  server.connect(dialling.signal).then(send, (cause: unknown) => settle({ kind: 'not-sent', cause }));
  return promise;
}
