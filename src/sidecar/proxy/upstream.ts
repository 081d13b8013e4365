/** One connection to a host, by way of egress; for https, TLS that is verified for the host's own name. */
import type { Duplex } from 'node:stream';
import type { SecureContext } from 'node:tls';
import type { Site } from '../../domain/credential/decideRequest.ts';
import { TunnelRefusedError } from '../../net/connectTunnel.ts';
import type { OpenTunnel } from '../../net/egressTunnel.ts';
import { connectOriginTls } from '../../net/originTls.ts';
import { type ByteReader, createByteReader } from './byteReader.ts';

export class UpstreamError extends Error {
  readonly problem: 'egress-refused' | 'upstream-unreachable' | 'upstream-not-trusted';

  constructor(problem: UpstreamError['problem'], cause: unknown) {
    super(problem, { cause });
    this.problem = problem;
  }

  /** Why, in egress' own words, where it was egress. */
  reason(): string | undefined {
    return this.cause instanceof TunnelRefusedError ? `${this.cause.code}: ${this.cause.message}` : undefined;
  }
}

export interface Upstream {
  readonly stream: Duplex;
  readonly reader: ByteReader;
}

export interface UpstreamOptions {
  readonly openTunnel: OpenTunnel;
  readonly trust: () => SecureContext;
  readonly connectMs: number;
  readonly signal: AbortSignal;
}

/** @throws UpstreamError; nothing stays open */
export async function openUpstream(
  site: Pick<Site, 'host' | 'port' | 'scheme'>,
  options: UpstreamOptions,
): Promise<Upstream> {
  const raw = await openWay(site, options);
  const stream = site.scheme === 'http' ? raw : await secured(raw, site.host, options);
  stream.on('error', () => stream.destroy());
  return { stream, reader: createByteReader(stream) };
}

/** The bare way to a host. @throws UpstreamError */
export async function openWay(
  site: Pick<Site, 'host' | 'port'>,
  { openTunnel, connectMs, signal }: Omit<UpstreamOptions, 'trust'>,
): Promise<Duplex> {
  try {
    return await openTunnel(site.host, site.port, AbortSignal.any([signal, AbortSignal.timeout(connectMs)]));
  } catch (error) {
    const refused = error instanceof TunnelRefusedError && error.status === 403;
    throw new UpstreamError(refused ? 'egress-refused' : 'upstream-unreachable', error);
  }
}

async function secured(raw: Duplex, host: string, options: UpstreamOptions): Promise<Duplex> {
  try {
    return await connectOriginTls({
      over: raw,
      host,
      trust: options.trust(),
      timeoutMs: options.connectMs,
      signal: options.signal,
    });
  } catch (error) {
    throw new UpstreamError(isCertificateError(error) ? 'upstream-not-trusted' : 'upstream-unreachable', error);
  }
}

function isCertificateError(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  return /CERT|ALTNAME|SIGNATURE|ISSUER|SELF_SIGNED|CRL|CA_/.test(code);
}
