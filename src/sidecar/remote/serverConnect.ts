/** The way to a remote server: a tunnel through egress, and TLS to the URL's host inside. Its errors are for a person. */
import type { Duplex } from 'node:stream';
import type { SecureContext } from 'node:tls';
import { TunnelRefusedError } from '../../net/connectTunnel.ts';
import type { OpenTunnel } from '../../net/egressTunnel.ts';
import { connectOriginTls } from '../../net/originTls.ts';

/** The server could not be reached; the message says why. Nothing was sent. */
export class UnreachableError extends Error {
  readonly code = 'OZ0_UNREACHABLE';
}

export interface ServerConnectOptions {
  readonly openTunnel: OpenTunnel;
  readonly host: string;
  readonly port: number;
  readonly trust: SecureContext;
  readonly handshakeMs?: number;
}

const HANDSHAKE_MS = 10_000;

/** A function as a RemoteServer wants it. It rejects with UnreachableError. */
export function serverConnect(options: ServerConnectOptions): (signal: AbortSignal) => Promise<Duplex> {
  const { host, port } = options;
  return async (signal) => {
    let over: Duplex;
    try {
      over = await options.openTunnel(host, port, signal);
    } catch (error) {
      throw new UnreachableError(describeTunnelError(error, `${host}:${port}`), { cause: error });
    }
    try {
      const timeoutMs = options.handshakeMs ?? HANDSHAKE_MS;
      return await connectOriginTls({ over, host, trust: options.trust, timeoutMs, signal });
    } catch (error) {
      throw new UnreachableError(describeTlsError(error, host), { cause: error });
    }
  };
}

function describeTunnelError(error: unknown, target: string): string {
  if (error instanceof TunnelRefusedError && error.status > 0) {
    return `egress does not connect to ${target}: ${error.message}`;
  }
  return `egress cannot be reached: ${messageOf(error)}`;
}

/** What node:tls says of a certificate, in a reader's words. */
const CERTIFICATE: Readonly<Record<string, string>> = {
  CERT_HAS_EXPIRED: 'has run out',
  CERT_NOT_YET_VALID: 'is not valid yet',
  ERR_TLS_CERT_ALTNAME_INVALID: 'is for another host',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'is signed by no authority',
  SELF_SIGNED_CERT_IN_CHAIN: 'is of an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT: 'is of an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'is of an authority that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'is of an authority that is not trusted',
  CERT_SIGNATURE_FAILURE: 'is not signed by the authority that it names',
  CERT_REVOKED: 'was revoked',
};

function describeTlsError(error: unknown, host: string): string {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  const fault = CERTIFICATE[code];
  if (fault !== undefined) return `the certificate of ${host} ${fault}`;
  return `no TLS with ${host}: ${messageOf(error)}`;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
