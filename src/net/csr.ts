/**
 * PKCS #10 certificate requests for EC P-256 keys: an empty subject and no attributes, so that nothing is claimed but
 * possession of the key. Edge takes nothing else, which keeps its reader this small.
 */
import { createPublicKey, type KeyObject, sign, verify } from 'node:crypto';
import { der, objectIdentifier, readDer, TAG, toPem } from './der.ts';

const ATTRIBUTES = 0xa0;
const LABEL = 'CERTIFICATE REQUEST';
const ECDSA_WITH_SHA256 = der(TAG.sequence, objectIdentifier('1.2.840.10045.4.3.2'));

/** PEM of a request signed by the key it asks a certificate for. */
export function certificateRequest(keys: { publicKey: KeyObject; privateKey: KeyObject }): string {
  const info = requestInfo(keys.publicKey);
  const signature = der(TAG.bitString, Buffer.of(0), sign('sha256', info, keys.privateKey));
  return toPem(LABEL, der(TAG.sequence, info, ECDSA_WITH_SHA256, signature));
}

/**
 * The public key of a request whose signature proves possession of the private one.
 * @returns undefined for anything but a request as above
 */
export function verifyCertificateRequest(pem: string): KeyObject | undefined {
  const match =
    /^-----BEGIN CERTIFICATE REQUEST-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END CERTIFICATE REQUEST-----\s*$/.exec(pem);
  if (match?.[1] === undefined) return undefined;
  try {
    const [request, ...none] = readDer(Buffer.from(match[1], 'base64'));
    if (request?.tag !== TAG.sequence || none.length > 0) return undefined;
    const [info, algorithm, signature, ...more] = readDer(request.content);
    if (info?.tag !== TAG.sequence || signature?.tag !== TAG.bitString || more.length > 0) return undefined;
    if (!algorithm?.whole.equals(ECDSA_WITH_SHA256) || signature.content[0] !== 0) return undefined;
    const spki = readDer(info.content)[2];
    if (spki === undefined) return undefined;
    const publicKey = createPublicKey({ key: spki.whole, format: 'der', type: 'spki' });
    if (publicKey.asymmetricKeyType !== 'ec' || publicKey.asymmetricKeyDetails?.namedCurve !== 'prime256v1') {
      return undefined;
    }
    // Whatever else could stand there, it is the one form that we write, or it is refused.
    if (!requestInfo(publicKey).equals(info.whole)) return undefined;
    return verify('sha256', info.whole, publicKey, signature.content.subarray(1)) ? publicKey : undefined;
  } catch {
    return undefined;
  }
}

function requestInfo(publicKey: KeyObject): Buffer {
  return der(
    TAG.sequence,
    der(TAG.integer, Buffer.of(0)),
    der(TAG.sequence),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(ATTRIBUTES),
  );
}
