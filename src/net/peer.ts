/**
 * A pool of mutual-TLS connections to one peer of ours at one address, proved by its identity. A renewed certificate of
 * ours serves new connections; calls on the old ones run to their end. Never retries, redirects or resolves names.
 */
import { type Dispatcher, Pool } from 'undici';
import type { CredentialSource } from './credentials.ts';
import { NoIdentityError } from './noIdentity.ts';
import type { ExpectedPeer } from './peerIdentity.ts';
import { connectTls } from './tlsClient.ts';

export interface PeerOptions {
  readonly address: { readonly host: string; readonly port: number };
  readonly expected: ExpectedPeer;
  readonly trustDomain: string;
  /** What we show; the peer asks for it. */
  readonly credentials: CredentialSource;
  /** Connections at most, hence requests at once: there is no pipelining. */
  readonly connections: number;
  readonly connectTimeoutMs?: number;
  /** Longest wait for an answer's head, and between two parts of its body; 0 leaves the bound to the caller's signal. */
  readonly headersTimeoutMs?: number;
  readonly bodyTimeoutMs?: number;
}

export interface Peer {
  /** For one request, then ask again: a renewed certificate brings a new one. Its `origin` is set. */
  dispatcher(): Dispatcher;
  /** Ends what runs, with an error. */
  close(): Promise<void>;
}

const CONNECT_TIMEOUT_MS = 2_000;
/** Shorter than any server of ours keeps an idle connection (`tlsServer.ts`), so that we are the side that closes. */
const IDLE_MS = 20_000;

export function openPeer(options: PeerOptions): Peer {
  const { host, port } = options.address;
  const origin = `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const retired = new Set<Pool>();
  let pool = openPool();
  let closed = false;

  function openPool(): Pool {
    return new Pool(origin, {
      connections: options.connections,
      pipelining: 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      headersTimeout: options.headersTimeoutMs ?? 0,
      bodyTimeout: options.bodyTimeoutMs ?? 0,
      maxHeaderSize: 16 * 1024,
      connect(_options, callback) {
        const credentials = options.credentials.current();
        if (credentials === undefined) {
          callback(new NoIdentityError('no certificate to show yet'), null);
          return;
        }
        connectTls({
          over: { host, port },
          ...credentials,
          trustDomain: options.trustDomain,
          expected: options.expected,
          timeoutMs: options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS,
        }).then(
          (socket) => callback(null, socket),
          (error: Error) => callback(error, null),
        );
      },
    });
  }

  const stop = options.credentials.onChange(() => {
    const old = pool;
    pool = openPool();
    retired.add(old);
    // Resolves when its last request has ended.
    old.close().then(
      () => retired.delete(old),
      () => retired.delete(old),
    );
  });

  return {
    dispatcher: () => pool,
    async close() {
      if (closed) return;
      closed = true;
      stop();
      const reason = new Error('peer closed');
      await Promise.all([pool, ...retired].map((each) => each.destroy(reason)));
    },
  };
}
