/**
 * A PKCS #12 file (RFC 7292) of certificates to trust, as Java reads one: nothing in it is secret, so nothing is encrypted and there is no MAC,
 * hence no password and no cryptography. Each certificate says that it is trusted, in the attribute that Java's own tools write.
 */
import { der, objectIdentifier, TAG } from '../../net/der.ts';

const DATA = objectIdentifier('1.2.840.113549.1.7.1');
const CERT_BAG = objectIdentifier('1.2.840.113549.1.12.10.1.3');
const X509_CERTIFICATE = objectIdentifier('1.2.840.113549.1.9.22.1');
/** Without it Java takes a certificate for one of a chain, and trusts it for nothing. */
const TRUSTED_FOR_ANY_USE = der(
  TAG.set,
  der(TAG.sequence, objectIdentifier('2.16.840.1.113894.746875.1.1'), der(TAG.set, objectIdentifier('2.5.29.37.0'))),
);
const VERSION = der(TAG.integer, Buffer.of(3));
const CERTIFICATE = /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/g;

/** @param pem any number of certificates */
export function trustStore(pem: string): Buffer {
  const bags = [...pem.matchAll(CERTIFICATE)].map(([, base64 = '']) => {
    const value = der(TAG.octetString, Buffer.from(base64, 'base64'));
    const bag = der(TAG.sequence, X509_CERTIFICATE, explicit(value));
    return der(TAG.sequence, CERT_BAG, explicit(bag), TRUSTED_FOR_ANY_USE);
  });
  const contents = data(der(TAG.sequence, ...bags));
  return der(TAG.sequence, VERSION, data(der(TAG.sequence, contents)));
}

function data(content: Buffer): Buffer {
  return der(TAG.sequence, DATA, explicit(der(TAG.octetString, content)));
}

function explicit(content: Buffer): Buffer {
  return der(0xa0, content);
}
