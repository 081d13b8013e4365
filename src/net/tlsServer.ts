/**
 * An HTTPS server (HTTP/1.1, TLS 1.3) whose certificate follows a credential source and whose handlers learn who calls.
 * Every read is limited; closing is total. What is served, and to whom, is the handler's decision.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { Identity } from '../domain/identity/identity.ts';
import { createInFlight } from '../domain/inFlight.ts';
import { type CredentialSource, type TlsCredentials, untilCredentials } from './credentials.ts';
import { identityOfSubjectAltName } from './peerIdentity.ts';

export interface TlsServerLimits {
  readonly maxConnections: number;
  /** Of these, those from one address; unset, all of them. */
  readonly maxConnectionsPerAddress?: number;
  readonly maxHeaderBytes: number;
  readonly handshakeTimeoutMs: number;
  /** From a request's first byte to the end of its head, and to the end of its body. */
  readonly headersTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** How long an idle connection is kept. */
  readonly idleTimeoutMs: number;
}

export const DEFAULT_LIMITS: TlsServerLimits = {
  maxConnections: 2_000,
  maxHeaderBytes: 16 * 1024,
  handshakeTimeoutMs: 5_000,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  idleTimeoutMs: 60_000,
};

export interface TlsServerOptions {
  readonly host?: string;
  readonly port: number;
  readonly credentials: CredentialSource;
  readonly trustDomain: string;
  /** `optional`: a client may show none; one that does not verify, or names nobody of ours, is cut off all the same. */
  readonly clientCertificate: 'required' | 'optional' | 'none';
  /** `peer` is undefined for a client that showed no certificate. */
  readonly handler: (request: IncomingMessage, response: ServerResponse, peer: Identity | undefined) => void;
  /** CONNECT; unset, such connections are closed. The socket is the callee's to end. */
  readonly onConnect?: (request: IncomingMessage, socket: Duplex, head: Buffer, peer: Identity | undefined) => void;
  /** Judges a new connection before the handshake; false drops it. */
  readonly acceptAddress?: (remoteAddress: string) => boolean;
  readonly limits?: Partial<TlsServerLimits>;
  /** Aborted while it waits for credentials: nothing is opened. Afterwards, it closes at once. */
  readonly signal: AbortSignal;
}

export interface TlsServer {
  readonly address: AddressInfo;
  /** Open connections, tunnels included. */
  connections(): number;
  /** Takes nothing new, waits for running requests (and tunnels) up to the grace, then cuts the rest. */
  close(graceMs: number): Promise<void>;
}

interface Client {
  readonly peer: Identity | undefined;
  /** When its certificate runs out; a connection must not outlive what proved it. */
  readonly notAfter: number;
}

/** Listens once there are credentials. @throws the signal's reason, or the error of listening */
export async function startTlsServer(options: TlsServerOptions): Promise<TlsServer> {
  const limits = { ...DEFAULT_LIMITS, ...options.limits };
  const first = await untilCredentials(options.credentials, options.signal);
  const clients = new WeakMap<Duplex, Client>();
  const sockets = new Set<Duplex>();
  const perAddress = createInFlight(limits.maxConnectionsPerAddress ?? limits.maxConnections);
  let closing = false;

  const server = createServer(
    {
      ...secureContext(first),
      requestCert: options.clientCertificate !== 'none',
      // An optional certificate is judged below: node:tls would refuse a client without one, too.
      rejectUnauthorized: options.clientCertificate === 'required',
      handshakeTimeout: limits.handshakeTimeoutMs,
      ALPNProtocols: ['http/1.1'],
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headersTimeoutMs,
      requestTimeout: limits.requestTimeoutMs,
      keepAliveTimeout: limits.idleTimeoutMs,
      connectionsCheckingInterval: Math.min(limits.headersTimeoutMs, 5_000),
      noDelay: true,
    },
    (request, response) => {
      const client = clientOf(request.socket);
      if (client === undefined) {
        response.writeHead(403, { connection: 'close', 'content-length': 0 }).end();
        return;
      }
      if (closing) response.setHeader('connection', 'close');
      response.on('close', () => closing && server.closeIdleConnections());
      options.handler(request, response, client.peer);
    },
  );
  server.maxConnections = limits.maxConnections;

  function clientOf(socket: Duplex): Client | undefined {
    const client = clients.get(socket);
    return client !== undefined && client.notAfter > Date.now() ? client : undefined;
  }

  server.on('connection', (socket: Socket) => {
    const address = socket.remoteAddress ?? '';
    const leave = perAddress.enter(address);
    if (leave === undefined || options.acceptAddress?.(address) === false) socket.destroy();
    // A half-made connection counts, so that closing cuts it too.
    sockets.add(socket);
    socket.once('close', () => {
      sockets.delete(socket);
      leave?.();
    });
  });
  server.on('secureConnection', (socket) => {
    socket.on('error', () => {});
    const client = identify(socket, options.trustDomain, options.clientCertificate);
    if (client === undefined || closing) socket.destroy();
    else clients.set(socket, client);
  });
  server.on('tlsClientError', (_error, socket) => socket.destroy());
  server.on('clientError', (_error, socket) => {
    if (!socket.writable) socket.destroy();
    else
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n', () => socket.destroy());
  });
  const { onConnect } = options;
  if (onConnect !== undefined) {
    server.on('connect', (request, socket, head) => {
      const client = clientOf(socket);
      if (client === undefined || closing) socket.destroy();
      else onConnect(request, socket, head, client.peer);
    });
  }

  const stopFollowing = options.credentials.onChange(() => {
    const credentials = options.credentials.current();
    if (credentials !== undefined) server.setSecureContext(secureContext(credentials));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: options.host, port: options.port }, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });

  let ended: Promise<void> | undefined;
  const close = (graceMs: number): Promise<void> => {
    ended ??= new Promise((resolve) => {
      closing = true;
      stopFollowing();
      options.signal.removeEventListener('abort', closeNow);
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, graceMs);
      server.close(() => {
        clearTimeout(cut);
        resolve();
      });
      server.closeIdleConnections();
    });
    return ended;
  };
  const closeNow = () => void close(0);
  options.signal.addEventListener('abort', closeNow, { once: true });
  if (options.signal.aborted) closeNow();

  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no address');
  return { address, connections: () => sockets.size, close };
}

function secureContext(credentials: TlsCredentials) {
  return {
    cert: credentials.certificatePem,
    key: credentials.keyPem,
    ca: credentials.trustBundlePem,
    minVersion: 'TLSv1.3',
  } as const;
}

/** Who is at the other end; undefined for one that must be cut off. */
function identify(
  socket: TLSSocket,
  trustDomain: string,
  clientCertificate: TlsServerOptions['clientCertificate'],
): Client | undefined {
  const nobody: Client = { peer: undefined, notAfter: Number.POSITIVE_INFINITY };
  if (clientCertificate === 'none') return nobody;
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return clientCertificate === 'optional' ? nobody : undefined;
  if (!socket.authorized) return undefined;
  const peer = identityOfSubjectAltName(trustDomain, certificate.subjectAltName);
  return peer === undefined ? undefined : { peer, notAfter: certificate.validToDate.getTime() };
}
