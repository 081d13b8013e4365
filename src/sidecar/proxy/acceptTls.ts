/**
 * Ends a tool's TLS for one bound host. There is no default certificate: a client that names no host, or another one, gets
 * no handshake. HTTP/1.1 only.
 */
import type { Duplex } from 'node:stream';
import { createSecureContext, type SecureContext, TLSSocket } from 'node:tls';

const WITHOUT_CERTIFICATE = createSecureContext({ minVersion: 'TLSv1.2' });

/**
 * @param contextFor the certificate of a host
 * @returns undefined when there was no handshake within the time; the connection is then gone
 */
export function acceptTls(
  client: Duplex,
  host: string,
  contextFor: (host: string) => SecureContext | undefined,
  timeoutMs: number,
): Promise<TLSSocket | undefined> {
  return new Promise((resolve) => {
    const socket = new TLSSocket(client, {
      isServer: true,
      secureContext: WITHOUT_CERTIFICATE,
      ALPNProtocols: ['http/1.1'],
      requestCert: false,
      SNICallback(servername, callback) {
        // A throw in here would be nobody's (CVE-2026-21637).
        try {
          const context = servername === host ? contextFor(host) : undefined;
          if (context === undefined) callback(new Error('no such name here'));
          else callback(null, context);
        } catch (error) {
          callback(error instanceof Error ? error : new Error(String(error)));
        }
      },
    });
    const settle = (result: TLSSocket | undefined): void => {
      clearTimeout(timer);
      socket.removeListener('close', failed);
      socket.removeListener('secure', secure);
      if (result === undefined) {
        socket.destroy();
        client.destroy();
      }
      resolve(result);
    };
    const failed = (): void => settle(undefined);
    const secure = (): void => settle(socket.servername === host ? socket : undefined);
    const timer = setTimeout(failed, timeoutMs);
    socket.on('error', () => socket.destroy());
    socket.once('_tlsError', failed);
    socket.once('close', failed);
    socket.once('secure', secure);
  });
}
