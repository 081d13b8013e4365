/** For tests: an authority in memory, and credentials signed by it. */
import { generateKeyPairSync } from 'node:crypto';
import { formatIdentity, type Identity } from '../../domain/identity/identity.ts';
import { type Authority, authorityCertificate, leafCertificate } from '../certificate.ts';
import type { CredentialSource, TlsCredentials } from '../credentials.ts';
import { verifyCertificateRequest } from '../csr.ts';
import type { SignedIdentity } from '../identity.ts';

export const TRUST_DOMAIN = 'oz0.test';

export interface TestAuthority {
  readonly authority: Authority;
  /** @param lifeMs from now; negative for a certificate that has run out */
  issue(identity: Identity, lifeMs?: number, dnsNames?: readonly string[]): TlsCredentials;
  sign(csrPem: string, identity: Identity, lifeMs?: number): SignedIdentity;
}

export function createTestAuthority(name = 'test authority'): TestAuthority {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 86_400_000) };
  const certificatePem = authorityCertificate({ name, privateKey, ...validity });
  const authority = { certificatePem, privateKey, name };
  const leaf = (publicKey: Parameters<typeof leafCertificate>[1]['publicKey'], identity: Identity, lifeMs: number) => ({
    notBefore: new Date(Date.now() - 60_000 + Math.min(0, lifeMs)),
    notAfter: new Date(Date.now() + lifeMs),
    subject: identity.kind,
    publicKey,
    uri: formatIdentity(TRUST_DOMAIN, identity),
  });
  return {
    authority,
    issue(identity, lifeMs = 3_600_000, dnsNames = []) {
      const keys = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
      return {
        certificatePem: leafCertificate(authority, { ...leaf(keys.publicKey, identity, lifeMs), dnsNames }),
        keyPem: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
        trustBundlePem: certificatePem,
      };
    },
    sign(csrPem, identity, lifeMs = 3_600_000) {
      const publicKey = verifyCertificateRequest(csrPem);
      if (publicKey === undefined) throw new Error('not a request');
      const content = leaf(publicKey, identity, lifeMs);
      return {
        certificate: leafCertificate(authority, { ...content, dnsNames: [] }),
        trustBundle: certificatePem,
        notAfter: content.notAfter.toISOString(),
        identity: content.uri,
      };
    },
  };
}

/** A source whose credentials a test changes. */
export function changingCredentials(first?: TlsCredentials): CredentialSource & { set(next: TlsCredentials): void } {
  const listeners = new Set<() => void>();
  let held = first;
  return {
    current: () => held,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    set(next) {
      held = next;
      for (const listener of [...listeners]) listener();
    },
  };
}
