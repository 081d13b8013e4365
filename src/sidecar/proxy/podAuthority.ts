/**
 * The pod's own certificate authority: an EC P-256 key that never leaves this process, made at its start, good for the bound
 * hosts only (name constraints), so that another pod's tool could do nothing with it. Certificates for a host are made when
 * asked for.
 */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { authorityCertificate, leafCertificate, type Validity } from '../../net/certificate.ts';

export interface PodAuthority {
  readonly certificatePem: string;
  /** What a server shows for a bound host; undefined for any other name. */
  readonly contextFor: (host: string) => SecureContext | undefined;
}

const DAY_MS = 86_400_000;
/** The key ends with the process, long before. */
const AUTHORITY_LIFE_MS = 3_650 * DAY_MS;
const LEAF_LIFE_MS = 7 * DAY_MS;
const LEAF_RENEWAL_MS = 1 * DAY_MS;
/** A tool's clock may be this much behind. */
const BACKDATED_MS = 3_600_000;
const NAME = 'oz0 tool pod';

export function createPodAuthority(hosts: readonly string[], now: () => number): PodAuthority {
  const { privateKey } = ecKeys();
  const certificatePem = authorityCertificate({
    ...validity(AUTHORITY_LIFE_MS),
    name: NAME,
    privateKey,
    onlyHosts: hosts,
  });
  const authority = { certificatePem, privateKey, name: NAME };
  const known: ReadonlySet<string> = new Set(hosts);
  const made = new Map<string, { context: SecureContext; until: number }>();

  function validity(lifeMs: number): Validity {
    return { notBefore: new Date(now() - BACKDATED_MS), notAfter: new Date(now() + lifeMs) };
  }

  function make(host: string): SecureContext {
    const leaf = ecKeys();
    const cert = leafCertificate(authority, {
      ...validity(LEAF_LIFE_MS),
      subject: host.length <= 64 ? host : NAME,
      publicKey: leaf.publicKey,
      dnsNames: [host],
    });
    const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' });
    return createSecureContext({ cert, key, minVersion: 'TLSv1.2' });
  }

  return {
    certificatePem,
    contextFor(host) {
      if (!known.has(host)) return undefined;
      const at = now();
      const old = made.get(host);
      if (old !== undefined && old.until > at) return old.context;
      const context = make(host);
      made.set(host, { context, until: at + LEAF_RENEWAL_MS });
      return context;
    },
  };
}

function ecKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}
