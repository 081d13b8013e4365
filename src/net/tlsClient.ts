/**
 * A TLS 1.3 connection to a peer of ours: the chain is verified against the trust bundle, and the peer's identity instead
 * of a host name, since pods have no names. Never resumes a session: node:tls does not check a resumed peer's names.
 */
import type { Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { type ExpectedPeer, identityOfSubjectAltName, isExpected } from './peerIdentity.ts';

export interface TlsClientOptions {
  /** An address to dial, or a connection to speak TLS inside of (which this then owns). */
  readonly over: { readonly host: string; readonly port: number } | Socket;
  readonly trustBundlePem: string;
  readonly trustDomain: string;
  readonly expected: ExpectedPeer;
  /** Shown to the peer; both or neither. */
  readonly certificatePem?: string;
  readonly keyPem?: string;
  /** Name in the handshake; nothing is checked against it. */
  readonly servername?: string;
  /** For dialling and handshake together. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** The peer's certificate is valid but names someone else. Nothing was sent. */
export class WrongPeerError extends Error {
  readonly code = 'OZ0_WRONG_PEER';
}

/** Dialling and handshake together took too long. Nothing was sent. */
export class TlsConnectTimeoutError extends Error {
  readonly code = 'OZ0_CONNECT_TIMEOUT';
}

/**
 * @returns a connected socket whose peer was verified; the caller owns it
 * @throws WrongPeerError, TlsConnectTimeoutError, the socket's own error, or the signal's reason; nothing stays open
 */
export function connectTls(options: TlsClientOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const { over, signal } = options;
    if (signal?.aborted) {
      if (!('host' in over)) over.destroy();
      reject(signal.reason);
      return;
    }
    const socket = connect({
      ...('host' in over ? { host: over.host, port: over.port } : { socket: over }),
      ca: options.trustBundlePem,
      ...(options.certificatePem === undefined ? {} : { cert: options.certificatePem }),
      ...(options.keyPem === undefined ? {} : { key: options.keyPem }),
      // An address may not be a server name, and an unset one would be the host.
      servername: options.servername ?? '',
      minVersion: 'TLSv1.3',
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: true,
      checkServerIdentity(_name, certificate) {
        const identity = identityOfSubjectAltName(options.trustDomain, certificate.subjectaltname);
        if (identity !== undefined && isExpected(options.trustDomain, options.expected, identity)) return undefined;
        return new WrongPeerError(`peer is ${certificate.subjectaltname ?? 'unnamed'}`);
      },
    });
    const fail = (error: unknown) => {
      settle();
      socket.on('error', () => {});
      socket.destroy();
      if (!('host' in over)) over.destroy();
      reject(error);
    };
    const timer = setTimeout(
      () => fail(new TlsConnectTimeoutError(`no TLS connection within ${options.timeoutMs} ms`)),
      options.timeoutMs,
    );
    const abort = () => fail(signal?.reason);
    const closed = () => fail(new Error('connection closed during the handshake'));
    const settle = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
      socket.removeListener('error', fail);
      socket.removeListener('close', closed);
    };
    signal?.addEventListener('abort', abort, { once: true });
    socket.once('error', fail);
    socket.once('close', closed);
    socket.once('secureConnect', () => {
      settle();
      socket.setNoDelay(true);
      resolve(socket);
    });
  });
}
