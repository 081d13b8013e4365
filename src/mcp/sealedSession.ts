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
/** Sessions that are remembered as opened. */
const MAX_KEPT = 1_024;

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
  const key = keyOf(keys, id);
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

interface Opened {
  readonly key: SessionKey;
  readonly binding: string;
  readonly session: Session;
}

/**
 * As `openSession`, which costs more than all else that a call is asked: what opened once is compared, not opened, the next
 * time. Only for the same binding, in time, and while the key that sealed it is still one of the keys.
 */
export function createSessionOpener(maxKept = MAX_KEPT): typeof openSession {
  /** In the order in which they were opened. */
  const kept = new Map<string, Opened>();
  return (keys, binding, id, nowMs) => {
    const known = kept.get(id);
    if (known !== undefined && known.binding === binding) {
      if (known.session.expiresAtMs > nowMs && keys.some((key) => isSameKey(key, known.key))) return known.session;
      kept.delete(id);
    }
    const session = openSession(keys, binding, id, nowMs);
    const key = session === undefined ? undefined : keyOf(keys, id);
    if (session === undefined || key === undefined) return undefined;
    kept.delete(id);
    kept.set(id, { key, binding, session });
    for (const oldest of kept.keys()) {
      if (kept.size <= maxKept) break;
      kept.delete(oldest);
    }
    return session;
  };
}

function keyOf(keys: readonly SessionKey[], id: string): SessionKey | undefined {
  const keyId = id.slice(0, id.indexOf('.'));
  return keys.find((candidate) => candidate.id === keyId);
}

function isSameKey(one: SessionKey, other: SessionKey): boolean {
  return one === other || (one.id === other.id && Buffer.compare(one.key, other.key) === 0);
}
