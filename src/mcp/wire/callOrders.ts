/** What a gateway tells a sidecar with a call, in `_meta` under keys of ours. What does not parse is refused. Pure. */
import { isObject, type JsonObject } from './jsonrpc.ts';
import { META_AI_LABEL, META_CALL, META_DEFINITION, META_IDEMPOTENCY_KEY } from './meta.ts';

/** One attempt of one call. */
export interface CallKey {
  /** Visible ASCII, at most 128 characters. */
  readonly id: string;
  /** From 1. */
  readonly attempt: number;
}

export interface CallGrant extends CallKey {
  /** Milliseconds since 1970; the same for every delivery of this attempt. Nothing starts later. */
  readonly notAfter: number;
  /** Written down by the sidecar before the tool sees it. */
  readonly recorded: boolean;
}

export interface CallOrders {
  readonly definition?: string;
  readonly grant?: CallGrant;
  /** What the tool is told of it under keys of ours. */
  readonly told: JsonObject;
}

const ID = /^[\x21-\x7e]{1,128}$/;
const HASH = /^[0-9a-f]{64}$/;
const KEY = /^[\x20-\x7e]{1,256}$/;
const MAX_LABEL_CHARS = 1_024;
const MAX_ATTEMPT = 1_000_000;

/** The key in an object of the wire, or undefined where it has none. */
export function readCallKey(value: JsonObject): CallKey | undefined {
  const { id, attempt } = value;
  if (typeof id !== 'string' || !ID.test(id)) return undefined;
  if (!Number.isInteger(attempt) || Number(attempt) < 1 || Number(attempt) > MAX_ATTEMPT) return undefined;
  return { id, attempt: Number(attempt) };
}

/** Milliseconds since 1970, or undefined. */
export function readTime(value: unknown): number | undefined {
  return Number.isSafeInteger(value) && Number(value) > 0 ? Number(value) : undefined;
}

export function readCallOrders(
  meta: JsonObject,
): { readonly ok: true; readonly orders: CallOrders } | { readonly ok: false; readonly problem: string } {
  const definition = meta[META_DEFINITION];
  if (definition !== undefined && (typeof definition !== 'string' || !HASH.test(definition)))
    return { ok: false, problem: `${META_DEFINITION} must be a sha256 in hex` };
  const idempotencyKey = meta[META_IDEMPOTENCY_KEY];
  if (idempotencyKey !== undefined && (typeof idempotencyKey !== 'string' || !KEY.test(idempotencyKey)))
    return { ok: false, problem: `${META_IDEMPOTENCY_KEY} must be 1 to 256 characters of ASCII` };
  const label = meta[META_AI_LABEL];
  if (label !== undefined && (typeof label !== 'string' || label.length > MAX_LABEL_CHARS))
    return { ok: false, problem: `${META_AI_LABEL} must be a string of at most ${MAX_LABEL_CHARS} characters` };
  const grant = meta[META_CALL] === undefined ? undefined : readGrant(meta[META_CALL]);
  if (meta[META_CALL] !== undefined && grant === undefined)
    return { ok: false, problem: `${META_CALL} needs id, attempt, notAfter and recorded` };
  return {
    ok: true,
    orders: {
      ...(definition === undefined ? {} : { definition }),
      ...(grant === undefined ? {} : { grant }),
      told: {
        ...(idempotencyKey === undefined ? {} : { [META_IDEMPOTENCY_KEY]: idempotencyKey }),
        ...(label === undefined ? {} : { [META_AI_LABEL]: label }),
      },
    },
  };
}

function readGrant(value: unknown): CallGrant | undefined {
  if (!isObject(value)) return undefined;
  const key = readCallKey(value);
  const notAfter = readTime(value['notAfter']);
  const { recorded } = value;
  if (key === undefined || notAfter === undefined || typeof recorded !== 'boolean') return undefined;
  return { ...key, notAfter, recorded };
}
