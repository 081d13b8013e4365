/** Who the other end of a verified TLS connection is: the one SPIFFE URI of its certificate, or nobody. Pure. */
import { formatIdentity, type Identity, parseIdentity } from '../domain/identity/identity.ts';

/** The only peer to accept: one identity exactly, or what a predicate says of it. */
export type ExpectedPeer = Identity | ((identity: Identity) => boolean);

/**
 * The identity that a certificate names.
 * @param subjectAltName as node:tls and X509Certificate write it: `URI:…, DNS:…`; values with odd characters are quoted
 * @returns undefined unless there is exactly one URI, of this trust domain, and nothing was quoted
 */
export function identityOfSubjectAltName(
  trustDomain: string,
  subjectAltName: string | undefined,
): Identity | undefined {
  // Edge writes plain names only; a quote means a value that was made to be misread.
  if (subjectAltName === undefined || subjectAltName.includes('"')) return undefined;
  const uris = subjectAltName.split(', ').filter((name) => name.startsWith('URI:'));
  const [uri] = uris;
  if (uri === undefined || uris.length !== 1) return undefined;
  return parseIdentity(trustDomain, uri.slice('URI:'.length));
}

export function isExpected(trustDomain: string, expected: ExpectedPeer, identity: Identity): boolean {
  if (typeof expected === 'function') return expected(identity);
  return formatIdentity(trustDomain, expected) === formatIdentity(trustDomain, identity);
}
