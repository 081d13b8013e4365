/**
 * The operator's certificate authority, in the Secret `oz0-edge`: made once by whichever replica comes first, read by all,
 * never replaced. The Secret also holds the keys by which gateways seal sessions.
 */
import { createPrivateKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import { ApiError } from '../engine/api-error.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Authority, authorityCertificate } from '../net/certificate.ts';
import type { SessionKey } from '../net/identity.ts';

export const AUTHORITY_SECRET = 'oz0-edge';
const AUTHORITY_NAME = 'oz0 authority';
const LIFE_MS = 10 * 365 * 86_400_000;
const SKEW_MS = 60_000;

export const SECRETS: Resource = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };

export interface EdgeKeys {
  readonly authority: Authority;
  /** Newest first. */
  readonly sessionKeys: readonly SessionKey[];
}

/**
 * Reads the Secret, or creates it. Two replicas that create at once: one loses, and reads the other's.
 * @throws ApiError; Error for a Secret that is not what we write, which is never overwritten
 */
export async function loadEdgeKeys(client: KubeClient, namespace: string, signal: AbortSignal): Promise<EdgeKeys> {
  const ref = { resource: SECRETS, namespace, name: AUTHORITY_SECRET };
  try {
    return readEdgeKeys(await client.get(ref, { signal }));
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'notFound') throw error;
  }
  try {
    return readEdgeKeys(await client.create(SECRETS, newSecret(namespace), { signal }));
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'exists') throw error;
    return readEdgeKeys(await client.get(ref, { signal }));
  }
}

export function readEdgeKeys(secret: KubeObject): EdgeKeys {
  const certificatePem = field(secret, 'ca.crt');
  const privateKey = createPrivateKey(field(secret, 'ca.key'));
  if (!new X509Certificate(certificatePem).checkPrivateKey(privateKey)) {
    throw new Error(`the Secret ${AUTHORITY_SECRET} holds a certificate and a key that do not belong together`);
  }
  const keys: unknown = JSON.parse(field(secret, 'session-keys.json'));
  if (!Array.isArray(keys) || keys.length === 0 || !keys.every(isSessionKey)) {
    throw new Error(`the Secret ${AUTHORITY_SECRET} holds no session keys`);
  }
  return { authority: { certificatePem, privateKey, name: AUTHORITY_NAME }, sessionKeys: keys };
}

function newSecret(namespace: string): KubeObject {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const notBefore = new Date(Date.now() - SKEW_MS);
  const certificate = authorityCertificate({
    name: AUTHORITY_NAME,
    privateKey,
    notBefore,
    notAfter: new Date(notBefore.getTime() + LIFE_MS),
  });
  const sessionKeys: SessionKey[] = [{ id: randomBytes(6).toString('hex'), key: randomBytes(32).toString('base64') }];
  const encode = (text: string) => Buffer.from(text).toString('base64');
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: AUTHORITY_SECRET, namespace },
    type: 'Opaque',
    data: {
      'ca.crt': encode(certificate),
      'ca.key': encode(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()),
      'session-keys.json': encode(JSON.stringify(sessionKeys)),
    },
  };
}

function field(secret: KubeObject, name: string): string {
  const { data } = secret;
  const value: unknown =
    typeof data === 'object' && data !== null ? (data as Readonly<Record<string, unknown>>)[name] : undefined;
  if (typeof value !== 'string') throw new Error(`the Secret ${AUTHORITY_SECRET} lacks ${name}`);
  return Buffer.from(value, 'base64').toString('utf8');
}

function isSessionKey(value: unknown): value is SessionKey {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    'key' in value &&
    typeof value.id === 'string' &&
    typeof value.key === 'string'
  );
}
