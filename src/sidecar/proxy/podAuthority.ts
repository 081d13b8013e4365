/**
 * The pod's own certificate authority: an EC P-256 key that never leaves this process, made at its start, good for the bound
 * hosts only (name constraints), so that another pod's tool could do nothing with it. Certificates for a host are made when
 * asked for.
 */
import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { der, objectIdentifier, TAG, toPem } from '../../net/der.ts';

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

const ECDSA_WITH_SHA256 = der(TAG.sequence, objectIdentifier('1.2.840.10045.4.3.2'));
const TRUE = der(TAG.boolean, Buffer.of(0xff));
const NAME = 'oz0 tool pod';

export function createPodAuthority(hosts: readonly string[], now: () => number): PodAuthority {
  const keys = ecKeys();
  const certificatePem = signed(keys.privateKey, now(), {
    subject: NAME,
    lifeMs: AUTHORITY_LIFE_MS,
    publicKey: keys.publicKey,
    extensions: [
      extension('2.5.29.19', true, der(TAG.sequence, TRUE, der(TAG.integer, Buffer.of(0)))),
      // keyCertSign, cRLSign
      extension('2.5.29.15', true, der(TAG.bitString, Buffer.of(1, 0x06))),
      extension('2.5.29.14', false, der(TAG.octetString, keyId(keys.publicKey))),
      extension('2.5.29.30', true, nameConstraints(hosts)),
    ],
  });
  const known: ReadonlySet<string> = new Set(hosts);
  const made = new Map<string, { context: SecureContext; until: number }>();

  function make(host: string): SecureContext {
    const leaf = ecKeys();
    const cert = signed(keys.privateKey, now(), {
      subject: host.length <= 64 ? host : NAME,
      lifeMs: LEAF_LIFE_MS,
      publicKey: leaf.publicKey,
      extensions: [
        extension('2.5.29.19', true, der(TAG.sequence)),
        // digitalSignature
        extension('2.5.29.15', true, der(TAG.bitString, Buffer.of(7, 0x80))),
        extension('2.5.29.37', false, der(TAG.sequence, objectIdentifier('1.3.6.1.5.5.7.3.1'))),
        extension('2.5.29.17', false, der(TAG.sequence, dnsName(host))),
        extension('2.5.29.14', false, der(TAG.octetString, keyId(leaf.publicKey))),
        extension('2.5.29.35', false, der(TAG.sequence, der(0x80, keyId(keys.publicKey)))),
      ],
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

interface Content {
  readonly subject: string;
  readonly lifeMs: number;
  readonly publicKey: KeyObject;
  readonly extensions: readonly Buffer[];
}

function signed(key: KeyObject, now: number, content: Content): string {
  const serial = randomBytes(16);
  // Positive, and of one length.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const info = der(
    TAG.sequence,
    der(0xa0, der(TAG.integer, Buffer.of(2))),
    der(TAG.integer, serial),
    ECDSA_WITH_SHA256,
    commonName(NAME),
    der(TAG.sequence, time(now - BACKDATED_MS), time(now + content.lifeMs)),
    commonName(content.subject),
    content.publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, der(TAG.sequence, ...content.extensions)),
  );
  return toPem(
    'CERTIFICATE',
    der(TAG.sequence, info, ECDSA_WITH_SHA256, der(TAG.bitString, Buffer.of(0), sign('sha256', info, key))),
  );
}

function ecKeys(): { publicKey: KeyObject; privateKey: KeyObject } {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

function extension(oid: string, critical: boolean, value: Buffer): Buffer {
  return der(TAG.sequence, objectIdentifier(oid), ...(critical ? [TRUE] : []), der(TAG.octetString, value));
}

function commonName(name: string): Buffer {
  const attribute = der(TAG.sequence, objectIdentifier('2.5.4.3'), der(TAG.utf8String, Buffer.from(name, 'ascii')));
  return der(TAG.sequence, der(TAG.set, attribute));
}

function dnsName(host: string): Buffer {
  return der(0x82, Buffer.from(host, 'ascii'));
}

/** These host names (with what is below them, as RFC 5280 has it), and no address. */
function nameConstraints(hosts: readonly string[]): Buffer {
  // An empty list would permit every name; `invalid` is nobody's.
  const permitted = (hosts.length === 0 ? ['invalid'] : hosts).map((host) => der(TAG.sequence, dnsName(host)));
  const excluded = [8, 32].map((bytes) => der(TAG.sequence, der(0x87, Buffer.alloc(bytes))));
  return der(TAG.sequence, der(0xa0, ...permitted), der(0xa1, ...excluded));
}

/** RFC 5280: two digits of the year until 2049, four from then on. */
function time(ms: number): Buffer {
  const date = new Date(ms);
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
