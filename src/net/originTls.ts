/**
 * TLS to a server that is not ours, inside of a connection that leads to it: its certificate is verified by the public
 * authorities (and what an admin adds) for the host's name. HTTP/1.1 alone is offered.
 */
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, createSecureContext, getCACertificates, type SecureContext, type TLSSocket } from 'node:tls';
import { TlsConnectTimeoutError } from './tlsClient.ts';

/** What a certificate of a server is verified by. Built once: the public authorities take a while to read. */
export function originTrust(extraAuthoritiesPem?: string): SecureContext {
  return createSecureContext({
    minVersion: 'TLSv1.2',
    ...(extraAuthoritiesPem === undefined ? {} : { ca: [...getCACertificates('default'), extraAuthoritiesPem] }),
  });
}

export interface OriginTlsOptions {
  /** Leads to the server; owned by this from now on. */
  readonly over: Duplex;
  readonly host: string;
  readonly trust: SecureContext;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** @throws the error of the handshake, TlsConnectTimeoutError or the signal's reason; nothing stays open */
export function connectOriginTls(options: OriginTlsOptions): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const { over, host, signal } = options;
    if (signal.aborted) {
      over.destroy();
      reject(signal.reason);
      return;
    }
    const socket = connect({
      socket: over,
      // Verified even where it is an address, which may not be sent as a name.
      host,
      servername: isIP(host) === 0 ? host : '',
      secureContext: options.trust,
      ALPNProtocols: ['http/1.1'],
      rejectUnauthorized: true,
    });
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      socket.removeListener('error', fail);
      socket.removeListener('close', closed);
    };
    const fail = (error: unknown) => {
      settle();
      socket.on('error', () => {});
      socket.destroy();
      over.destroy();
      reject(error);
    };
    const timer = setTimeout(
      () => fail(new TlsConnectTimeoutError(`no TLS connection within ${options.timeoutMs} ms`)),
      options.timeoutMs,
    );
    const abort = () => fail(signal.reason);
    const closed = () => fail(new Error('connection closed during the handshake'));
    signal.addEventListener('abort', abort, { once: true });
    socket.once('error', fail);
    socket.once('close', closed);
    socket.once('secureConnect', () => {
      settle();
      resolve(socket);
    });
  });
}
