/**
 * A PKCS #12 file (RFC 7292) of certificates to trust, as Java reads one: nothing in it is secret, so nothing is encrypted and there is no MAC,
 * hence no password and no cryptography. Each certificate says that it is trusted, in the attribute that Java's own tools write.
 */
import { der, derHead, objectIdentifier, TAG } from '../../net/der.ts';

const DATA = objectIdentifier('1.2.840.113549.1.7.1');
const CERT_BAG = objectIdentifier('1.2.840.113549.1.12.10.1.3');
const X509_CERTIFICATE = objectIdentifier('1.2.840.113549.1.9.22.1');
/** Without it Java takes a certificate for one of a chain, and trusts it for nothing. */
const TRUSTED_FOR_ANY_USE = der(
  TAG.set,
  der(TAG.sequence, objectIdentifier('2.16.840.1.113894.746875.1.1'), der(TAG.set, objectIdentifier('2.5.29.37.0'))),
);
const EXPLICIT = 0xa0;
const VERSION = der(TAG.integer, Buffer.of(3));
const CERTIFICATE = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g;

/** Bytes that are put together once, at the end: each sidecar makes such a file, and what is copied at each level it keeps for long. */
interface Pieces {
  readonly bytes: readonly Uint8Array[];
  readonly length: number;
}

/** @param pem any number of certificates */
export function trustStore(pem: string): Buffer {
  const bags = [...pem.matchAll(CERTIFICATE)].map(([, base64 = '']) => {
    const value = element(TAG.octetString, Buffer.from(base64, 'base64'));
    const bag = element(TAG.sequence, X509_CERTIFICATE, element(EXPLICIT, value));
    return element(TAG.sequence, CERT_BAG, element(EXPLICIT, bag), TRUSTED_FOR_ANY_USE);
  });
  const contents = data(element(TAG.sequence, ...bags));
  const whole = element(TAG.sequence, VERSION, data(element(TAG.sequence, contents)));
  return Buffer.concat(whole.bytes, whole.length);
}

function data(content: Pieces): Pieces {
  return element(TAG.sequence, DATA, element(EXPLICIT, element(TAG.octetString, content)));
}

function element(tag: number, ...parts: readonly (Pieces | Uint8Array)[]): Pieces {
  const content = parts.reduce((sum, { length }) => sum + length, 0);
  const head = derHead(tag, content);
  const bytes = parts.flatMap((part) => (part instanceof Uint8Array ? [part] : part.bytes));
  return { bytes: [head, ...bytes], length: head.length + content };
}
