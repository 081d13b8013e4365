import { generateKeyPairSync, sign, X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { certificateRequest, verifyCertificateRequest } from './csr.ts';
import { der, readDer, TAG, toPem } from './der.ts';
import { identityOfSubjectAltName } from './peerIdentity.ts';
import { createTestAuthority, TRUST_DOMAIN } from './testing/authority.ts';

const newKeys = () => generateKeyPairSync('ec', { namedCurve: 'prime256v1' });

describe('certificate requests', () => {
  test('a request proves possession of its key', () => {
    const keys = newKeys();
    expect(verifyCertificateRequest(certificateRequest(keys))?.equals(keys.publicKey)).toBe(true);
  });

  test.each([
    ['nothing', ''],
    ['no PEM', 'hello'],
    ['another label', certificateRequest(newKeys()).replaceAll('CERTIFICATE REQUEST', 'CERTIFICATE')],
    ['signed by another key', certificateRequest({ publicKey: newKeys().publicKey, privateKey: newKeys().privateKey })],
    ['another curve', certificateRequest(generateKeyPairSync('ec', { namedCurve: 'secp384r1' }))],
    ['two of them', certificateRequest(newKeys()) + certificateRequest(newKeys())],
    ['names in it', withSubject()],
  ])('refused: %s', (_name, pem) => {
    expect(verifyCertificateRequest(pem)).toBeUndefined();
  });

  test('any flipped bit is refused, and none throws', () => {
    const bytes = Buffer.from(certificateRequest(newKeys()).split('\n').slice(1, -2).join(''), 'base64');
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed[at] = (changed[at] ?? 0) ^ 0x01;
      expect(verifyCertificateRequest(toPem('CERTIFICATE REQUEST', changed)), `byte ${at}`).toBeUndefined();
    }
  });
});

describe('DER', () => {
  test.each([
    ['a long form that could be short', '3081020500'],
    ['an indefinite length', '30800000'],
    ['too short', '3005'],
    ['a length of three bytes', '3083000001'],
  ])('refused: %s', (_name, hex) => {
    expect(() => readDer(Buffer.from(hex, 'hex'))).toThrow('DER');
  });

  test.each([0, 1, 127, 128, 255, 256, 65_535])('reads what it writes, %i bytes', (length) => {
    const content = Buffer.alloc(length, 7);
    expect(readDer(der(TAG.octetString, content))[0]?.content.equals(content)).toBe(true);
  });
});

describe('certificates', () => {
  test('OpenSSL reads what was written: names, usage, validity, chain', () => {
    const ca = createTestAuthority();
    const identity = { kind: 'gateway', node: 'node-1.example' } as const;
    const issued = ca.issue(identity, 60_000, ['oz0-gateway.oz0-system.svc']);
    const leaf = new X509Certificate(issued.certificatePem);
    const authority = new X509Certificate(ca.authority.certificatePem);
    expect(leaf.subjectAltName).toBe(
      'URI:spiffe://oz0.test/gateway/node/node-1.example, DNS:oz0-gateway.oz0-system.svc',
    );
    expect(identityOfSubjectAltName(TRUST_DOMAIN, leaf.subjectAltName)).toEqual(identity);
    expect(leaf.checkHost('oz0-gateway.oz0-system.svc')).toBe('oz0-gateway.oz0-system.svc');
    expect(leaf.ca).toBe(false);
    expect(authority.ca).toBe(true);
    expect(leaf.keyUsage).toEqual(['1.3.6.1.5.5.7.3.1', '1.3.6.1.5.5.7.3.2']);
    expect(leaf.checkIssued(authority) && leaf.verify(authority.publicKey)).toBe(true);
    expect(Math.abs(leaf.validToDate.getTime() - Date.now() - 60_000)).toBeLessThan(5_000);
  });
});

test.each([
  ['none', undefined],
  ['of another trust domain', 'URI:spiffe://other.test/egress'],
  ['two', 'URI:spiffe://oz0.test/egress, URI:spiffe://oz0.test/edge'],
  ['quoted', 'URI:"spiffe://oz0.test/egress, URI:x"'],
  ['a DNS name only', 'DNS:spiffe://oz0.test/egress'],
  ['unknown', 'URI:spiffe://oz0.test/egress/more'],
])('an identity that is %s names nobody', (_name, subjectAltName) => {
  expect(identityOfSubjectAltName(TRUST_DOMAIN, subjectAltName)).toBeUndefined();
});

/** A request that is valid but for the subject that it asks for. */
function withSubject(): string {
  const keys = newKeys();
  const request = readDer(Buffer.from(certificateRequest(keys).split('\n').slice(1, -2).join(''), 'base64'))[0];
  const [info, algorithm] = readDer(request?.content ?? Buffer.alloc(0));
  const [version, , spki, attributes] = readDer(info?.content ?? Buffer.alloc(0));
  const name = der(
    TAG.sequence,
    der(TAG.set, der(TAG.sequence, Buffer.from('0603550403', 'hex'), der(TAG.utf8String, Buffer.from('edge')))),
  );
  const parts = [version?.whole, name, spki?.whole, attributes?.whole].map((part) => part ?? Buffer.alloc(0));
  const changed = der(TAG.sequence, ...parts);
  const signature = der(TAG.bitString, Buffer.of(0), sign('sha256', changed, keys.privateKey));
  return toPem('CERTIFICATE REQUEST', der(TAG.sequence, changed, algorithm?.whole ?? Buffer.alloc(0), signature));
}
