/**
 * X.509 certificates of our own authority, EC P-256 throughout: what is in one comes from these arguments alone, never
 * from a request.
 */
import { createHash, createPublicKey, type KeyObject, randomBytes, sign } from 'node:crypto';
import { der, objectIdentifier, TAG, toPem } from './der.ts';

const ECDSA_WITH_SHA256 = der(TAG.sequence, objectIdentifier('1.2.840.10045.4.3.2'));
const TRUE = der(TAG.boolean, Buffer.of(0xff));
const VERSION_3 = der(0xa0, der(TAG.integer, Buffer.of(2)));
const SERVER = objectIdentifier('1.3.6.1.5.5.7.3.1');
const CLIENT = objectIdentifier('1.3.6.1.5.5.7.3.2');
/** keyCertSign, cRLSign; digitalSignature. */
const CA_USAGE = der(TAG.bitString, Buffer.of(1, 0x06));
const LEAF_USAGE = der(TAG.bitString, Buffer.of(7, 0x80));

export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export interface Authority {
  readonly certificatePem: string;
  readonly privateKey: KeyObject;
  readonly name: string;
}

/**
 * A self-signed certificate of an authority that may sign leaves only.
 * @param options.onlyHosts names that its leaves may have, with what is below them (as RFC 5280 has it), and no address; unset: any
 */
export function authorityCertificate(
  options: Validity & { name: string; privateKey: KeyObject; onlyHosts?: readonly string[] },
): string {
  const publicKey = createPublicKey(options.privateKey);
  return signed(options.privateKey, {
    ...options,
    issuer: options.name,
    subject: options.name,
    publicKey,
    extensions: [
      extension('2.5.29.19', true, der(TAG.sequence, TRUE, der(TAG.integer, Buffer.of(0)))),
      extension('2.5.29.15', true, CA_USAGE),
      extension('2.5.29.14', false, der(TAG.octetString, keyId(publicKey))),
      ...(options.onlyHosts === undefined ? [] : [extension('2.5.29.30', true, nameConstraints(options.onlyHosts))]),
    ],
  });
}

/**
 * A leaf for both ends of TLS, or for a server alone where it has no identity.
 * @param options.uri the SPIFFE identity; `dnsNames` are for servers that clients of others know by name
 */
export function leafCertificate(
  authority: Authority,
  options: Validity & { subject: string; publicKey: KeyObject; uri?: string; dnsNames: readonly string[] },
): string {
  const { uri } = options;
  const names = [
    ...(uri === undefined ? [] : [der(0x86, Buffer.from(uri, 'ascii'))]),
    ...options.dnsNames.map(dnsName),
  ];
  const uses = uri === undefined ? [SERVER] : [SERVER, CLIENT];
  const authorityKeyId = der(TAG.sequence, der(0x80, keyId(createPublicKey(authority.privateKey))));
  return signed(authority.privateKey, {
    ...options,
    issuer: authority.name,
    extensions: [
      extension('2.5.29.19', true, der(TAG.sequence)),
      extension('2.5.29.15', true, LEAF_USAGE),
      extension('2.5.29.37', false, der(TAG.sequence, ...uses)),
      extension('2.5.29.17', false, der(TAG.sequence, ...names)),
      extension('2.5.29.14', false, der(TAG.octetString, keyId(options.publicKey))),
      extension('2.5.29.35', false, authorityKeyId),
    ],
  });
}

interface Content extends Validity {
  readonly issuer: string;
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

function signed(key: KeyObject, content: Content): string {
  const serial = randomBytes(16);
  // Positive, and of one length.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const info = der(
    TAG.sequence,
    VERSION_3,
    der(TAG.integer, serial),
    ECDSA_WITH_SHA256,
    commonName(content.issuer),
    der(TAG.sequence, time(content.notBefore), time(content.notAfter)),
    commonName(content.subject),
    content.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(TAG.sequence, ...content.extensions)),
  );
  const signature = der(TAG.bitString, Buffer.of(0), sign('sha256', info, key));
  return toPem('CERTIFICATE', der(TAG.sequence, info, ECDSA_WITH_SHA256, signature));
}

function extension(oid: string, critical: boolean, value: Buffer): Buffer {
  return der(TAG.sequence, objectIdentifier(oid), ...(critical ? [TRUE] : []), der(TAG.octetString, value));
}

function dnsName(host: string): Buffer {
  return der(0x82, Buffer.from(host, 'ascii'));
}

function nameConstraints(hosts: readonly string[]): Buffer {
  // An empty list would permit every name; `invalid` is nobody's.
  const permitted = (hosts.length === 0 ? ['invalid'] : hosts).map((host) => der(TAG.sequence, dnsName(host)));
  const excluded = [8, 32].map((bytes) => der(TAG.sequence, der(0x87, Buffer.alloc(bytes))));
  return der(TAG.sequence, der(0xa0, ...permitted), der(0xa1, ...excluded));
}

function commonName(name: string): Buffer {
  const attribute = der(TAG.sequence, objectIdentifier('2.5.4.3'), der(TAG.utf8String, Buffer.from(name, 'utf8')));
  return der(TAG.sequence, der(TAG.set, attribute));
}

/** RFC 5280: two digits of the year until 2049, four from then on. */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`;
  return date.getUTCFullYear() < 2050
    ? der(TAG.utcTime, Buffer.from(digits.slice(2), 'ascii'))
    : der(TAG.generalizedTime, Buffer.from(digits, 'ascii'));
}

function keyId(publicKey: KeyObject): Buffer {
  return createHash('sha1')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest();
}
