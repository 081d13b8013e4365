/**
 * A tool pod's one way out: mutual TLS to egress, which is asked to CONNECT to a host. What travels inside is the caller's
 * affair; egress reads none of it.
 */
import type { Duplex } from 'node:stream';
import { connectTunnel } from './connectTunnel.ts';
import type { CredentialSource } from './credentials.ts';
import { NoIdentityError } from './noIdentity.ts';
import { connectTls } from './tlsClient.ts';

export interface EgressTunnelOptions {
  /** Where egress is; read anew for each tunnel. */
  readonly egress: () => Promise<{ readonly host: string; readonly port: number; readonly name: string }>;
  readonly credentials: CredentialSource;
  readonly trustDomain: string;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;

/**
 * Opens a tunnel to a host by its name, which egress resolves and judges.
 * @throws TunnelRefusedError with egress' reason, or what went wrong on the way; nothing stays open
 */
export type OpenTunnel = (host: string, port: number, signal: AbortSignal) => Promise<Duplex>;

export function egressTunnel(options: EgressTunnelOptions): OpenTunnel {
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  return async (host, port, outer) => {
    const credentials = options.credentials.current();
    if (credentials === undefined) throw new NoIdentityError('no certificate to show yet');
    const signal = AbortSignal.any([outer, AbortSignal.timeout(timeoutMs)]);
    const { name, ...address } = await options.egress();
    const socket = await connectTls({
      over: address,
      ...credentials,
      trustDomain: options.trustDomain,
      expected: { kind: 'egress' },
      servername: name,
      timeoutMs,
      signal,
    });
    await connectTunnel(socket, `${host}:${port}`, signal);
    return socket;
  };
}
