/**
 * Sessions of the older era without a memory: the id is sealed state (AES-256-GCM under a key that all gateways share),
 * so any gateway opens it and none remembers it. Bound to who asked and where; a sealed id of another is no session.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { isObject } from './wire/jsonrpc.ts';

export interface SessionKey {
  readonly id: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

export interface Session {
  /** The negotiated protocol revision. */
  readonly version: string;
  readonly expiresAtMs: number;
}

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const MAX_ID_CHARS = 512;

/** Seals under the first key. `binding` says whose the session is and at which endpoint; it is not part of the id. */
export function sealSession(keys: readonly SessionKey[], binding: string, session: Session): string {
  const [key] = keys;
  if (key === undefined) throw new Error('no session key');
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', key.key, nonce);
  cipher.setAAD(Buffer.from(`${key.id}\n${binding}`));
  const text = JSON.stringify({ v: session.version, e: session.expiresAtMs });
  const sealed = Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()]);
  return `${key.id}.${sealed.toString('base64url')}`;
}

/** The session of an id, or undefined: unknown key, altered, expired, or of another binding, which are not told apart. */
export function openSession(
  keys: readonly SessionKey[],
  binding: string,
  id: string,
  nowMs: number,
): Session | undefined {
  if (id.length > MAX_ID_CHARS) return undefined;
  const dot = id.indexOf('.');
  const key = keys.find((candidate) => candidate.id === id.slice(0, dot));
  if (dot === -1 || key === undefined) return undefined;
  const text64 = id.slice(dot + 1);
  const sealed = Buffer.from(text64, 'base64url');
  // Several texts decode to the same bytes; one session has one id.
  if (sealed.toString('base64url') !== text64) return undefined;
  if (sealed.length <= NONCE_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv('aes-256-gcm', key.key, sealed.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(Buffer.from(`${key.id}\n${binding}`));
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  let text: string;
  try {
    text = decipher.update(sealed.subarray(NONCE_BYTES, -TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
  } catch {
    return undefined;
  }
  const state: unknown = JSON.parse(text);
  if (!isObject(state)) return undefined;
  const { v, e } = state;
  if (typeof v !== 'string' || typeof e !== 'number' || e <= nowMs) return undefined;
  return { version: v, expiresAtMs: e };
}
