/** Signs: from a decided identity to the answer that its owner gets. What the request asked for plays no part. */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { formatIdentity, type Identity } from '../domain/identity/identity.ts';
import { leafCertificate } from '../net/certificate.ts';
import type { SignedIdentity } from '../net/identity.ts';
import type { EdgeKeys } from './authority.ts';

export const CERTIFICATE_LIFE_MS = 3_600_000;
/** Clocks of nodes differ. */
const BACKDATE_MS = 60_000;

export interface IssueScope {
  readonly trustDomain: string;
  /** The operator's. */
  readonly namespace: string;
  readonly clusterDomain: string;
}

export function issue(
  keys: EdgeKeys,
  scope: IssueScope,
  identity: Identity,
  publicKey: KeyObject,
  nowMs: number,
  lifeMs = CERTIFICATE_LIFE_MS,
): SignedIdentity {
  const authorityEnd = new X509Certificate(keys.authority.certificatePem).validToDate.getTime();
  const notAfter = new Date(Math.min(nowMs + lifeMs, authorityEnd));
  const uri = formatIdentity(scope.trustDomain, identity);
  const certificate = leafCertificate(keys.authority, {
    notBefore: new Date(nowMs - BACKDATE_MS),
    notAfter,
    subject: `oz0 ${identity.kind}`,
    publicKey,
    uri,
    dnsNames: dnsNames(scope, identity),
  });
  return {
    certificate,
    trustBundle: keys.bundlePem,
    notAfter: notAfter.toISOString(),
    identity: uri,
    ...(identity.kind === 'gateway' ? { sessionKeys: keys.sessionKeys } : {}),
  };
}

/** Names of the Services through which a part is called by name; the others are known by identity alone. */
export function dnsNames(scope: IssueScope, identity: Identity): string[] {
  const services: Partial<Record<Identity['kind'], readonly string[]>> = {
    gateway: ['oz0-gateway', 'oz0-gateway-any'],
    egress: ['oz0-egress'],
    edge: ['oz0-edge'],
  };
  return (services[identity.kind] ?? []).flatMap((service) => {
    const name = `${service}.${scope.namespace}.svc`;
    return [name, `${name}.${scope.clusterDomain}`];
  });
}
