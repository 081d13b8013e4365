/**
 * The operator's certificate authority, in the Secret `oz0-edge`: made once by whichever replica comes first, read by all, replaced by
 * steps (`rotation.ts`), each one write. The Secret also holds the keys by which gateways seal sessions.
 */
import { createPrivateKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import { ApiError } from '../engine/api-error.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Authority, authorityCertificate } from '../net/certificate.ts';
import type { SessionKey } from '../net/identity.ts';
import type { Phase, Rotation, Step } from './rotation.ts';

export const AUTHORITY_SECRET = 'oz0-edge';
/** On that Secret: another value asks for another authority. */
export const ROTATE_ANNOTATION = 'oz0.ai/rotate';
const AUTHORITY_NAME = 'oz0 authority';
const LIFE_MS = 10 * 365 * 86_400_000;
const SKEW_MS = 60_000;
/** The one that seals, and the one before: a session outlives one rotation. */
const SESSION_KEYS = 2;

export const SECRETS: Resource = { apiVersion: 'v1', kind: 'Secret', plural: 'secrets', namespaced: true };

export interface EdgeKeys {
  /** The one that signs. */
  readonly authority: Authority;
  /** What everybody is to trust: the one that signs first, beside it the next or the former. */
  readonly bundlePem: string;
  /** The one that seals first; the others open. */
  readonly sessionKeys: readonly SessionKey[];
  readonly rotation: Rotation;
  readonly request?: string;
}

/**
 * Reads the Secret, or creates it. Two replicas that create at once: one loses, and reads the other's.
 * @throws ApiError; Error for a Secret that is not what we write, which is never overwritten
 */
export async function loadEdgeSecret(client: KubeClient, namespace: string, signal: AbortSignal): Promise<KubeObject> {
  const ref = { resource: SECRETS, namespace, name: AUTHORITY_SECRET };
  try {
    return await client.get(ref, { signal });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'notFound') throw error;
  }
  try {
    return await client.create(SECRETS, newSecret(namespace), { signal });
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'exists') throw error;
    return client.get(ref, { signal });
  }
}

/** @throws Error for a Secret that is not what we write */
export function readEdgeKeys(secret: KubeObject): EdgeKeys {
  const certificatePem = field(secret, 'ca.crt');
  const privateKey = createPrivateKey(field(secret, 'ca.key'));
  const certificate = new X509Certificate(certificatePem);
  if (!certificate.checkPrivateKey(privateKey)) {
    throw new Error(`the Secret ${AUTHORITY_SECRET} holds a certificate and a key that do not belong together`);
  }
  const keys: unknown = JSON.parse(field(secret, 'session-keys.json'));
  if (!Array.isArray(keys) || keys.length === 0 || !keys.every(isSessionKey)) {
    throw new Error(`the Secret ${AUTHORITY_SECRET} holds no session keys`);
  }
  const others = ['next.crt', 'former.crt'].filter((name) => has(secret, name)).map((name) => field(secret, name));
  const request = secret.metadata.annotations?.[ROTATE_ANNOTATION];
  return {
    authority: { certificatePem, privateKey, name: certificate.subject.replace(/^CN=/, '') },
    bundlePem: [certificatePem, ...others].join(''),
    sessionKeys: keys,
    rotation: readRotation(secret),
    ...(request === undefined ? {} : { request }),
  };
}

/** Milliseconds since the epoch at which an authority begins and ends. */
export function validityOf(certificatePem: string): { readonly fromMs: number; readonly untilMs: number } {
  const { validFromDate, validToDate } = new X509Certificate(certificatePem);
  return { fromMs: validFromDate.getTime(), untilMs: validToDate.getTime() };
}

/** The Secret after a step, to be written in the place of the one that was read. */
export function advanced(secret: KubeObject, step: Step, nowMs: number): KubeObject {
  const keys = readEdgeKeys(secret);
  const data = { ...dataOf(secret) };
  const put = (fields: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(fields)) data[name] = encoded(text);
  };
  const move = (from: string, to: string) => {
    const value = data[from];
    if (value === undefined) throw new Error(`the Secret ${AUTHORITY_SECRET} lacks ${from}`);
    data[to] = value;
    delete data[from];
  };
  let { request } = keys.rotation;
  switch (step) {
    case 'make': {
      const { certificate, key } = newAuthority(`${AUTHORITY_NAME} ${randomBytes(4).toString('hex')}`, nowMs);
      // Known before it is used, as the authority is.
      const sessionKeys = [...keys.sessionKeys, newSessionKey()];
      put({ 'next.crt': certificate, 'next.key': key, 'session-keys.json': JSON.stringify(sessionKeys) });
      request = keys.request ?? request;
      break;
    }
    case 'publish':
      break;
    case 'use': {
      move('ca.crt', 'former.crt');
      move('next.crt', 'ca.crt');
      move('next.key', 'ca.key');
      const newest = keys.sessionKeys.slice(-1);
      put({ 'session-keys.json': JSON.stringify([...newest, ...keys.sessionKeys.slice(0, -1)]) });
      break;
    }
    case 'drop':
      delete data['former.crt'];
      put({ 'session-keys.json': JSON.stringify(keys.sessionKeys.slice(0, SESSION_KEYS)) });
  }
  const phase = AFTER[step];
  put({ 'rotation.json': JSON.stringify({ phase, since: new Date(nowMs).toISOString(), request }) });
  return { ...secret, data };
}

const AFTER: Readonly<Record<Step, Phase>> = { make: 'made', publish: 'published', use: 'used', drop: 'steady' };

/** A Secret without the field is one that was never rotated. */
function readRotation(secret: KubeObject): Rotation {
  if (!has(secret, 'rotation.json')) return { phase: 'steady', sinceMs: 0 };
  const value: unknown = JSON.parse(field(secret, 'rotation.json'));
  const { phase, since, request } = (value ?? {}) as Readonly<Record<string, unknown>>;
  const known = Object.values(AFTER).find((each) => each === phase);
  const sinceMs = typeof since === 'string' ? Date.parse(since) : Number.NaN;
  if (known === undefined || Number.isNaN(sinceMs)) {
    throw new Error(`the Secret ${AUTHORITY_SECRET} says nothing readable of its rotation`);
  }
  return { phase: known, sinceMs, ...(typeof request === 'string' ? { request } : {}) };
}

function newSecret(namespace: string): KubeObject {
  const { certificate, key } = newAuthority(AUTHORITY_NAME, Date.now());
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: AUTHORITY_SECRET, namespace },
    type: 'Opaque',
    data: {
      'ca.crt': encoded(certificate),
      'ca.key': encoded(key),
      'session-keys.json': encoded(JSON.stringify([newSessionKey()])),
    },
  };
}

function newAuthority(name: string, nowMs: number): { certificate: string; key: string } {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const notBefore = new Date(nowMs - SKEW_MS);
  const notAfter = new Date(notBefore.getTime() + LIFE_MS);
  const certificate = authorityCertificate({ name, privateKey, notBefore, notAfter });
  return { certificate, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

function newSessionKey(): SessionKey {
  return { id: randomBytes(6).toString('hex'), key: randomBytes(32).toString('base64') };
}

function encoded(text: string): string {
  return Buffer.from(text).toString('base64');
}

function dataOf({ data }: KubeObject): Readonly<Record<string, unknown>> {
  return typeof data === 'object' && data !== null ? (data as Readonly<Record<string, unknown>>) : {};
}

function has(secret: KubeObject, name: string): boolean {
  return Object.hasOwn(dataOf(secret), name);
}

function field(secret: KubeObject, name: string): string {
  const value = dataOf(secret)[name];
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
