/** A whole listing in as few bytes as it takes, in parts that an object of the API server can hold. Pure. */
import { gunzipSync, gzipSync } from 'node:zlib';
import { LISTING_PART_MAX, LISTING_PARTS_MAX } from '../../api/toolListing.ts';
import type { Definition, Definitions } from './difference.ts';
import { snapshotListing } from './snapshotListing.ts';

/** In base64 a third longer. */
const PART_BYTES = Math.floor((LISTING_PART_MAX / 4) * 3);
const UNPACKED_MAX_BYTES = 8 * 1024 * 1024;

/** Base64 of each part, in order; undefined for a listing that is too large to be kept. */
export function packListing({ instructions, tools }: Definitions): readonly string[] | undefined {
  const packed = gzipSync(JSON.stringify({ ...(instructions === undefined ? {} : { instructions }), tools }));
  const count = Math.ceil(packed.length / PART_BYTES);
  if (count > LISTING_PARTS_MAX) return undefined;
  return Array.from({ length: count }, (_, part) =>
    packed.subarray(part * PART_BYTES, (part + 1) * PART_BYTES).toString('base64'),
  );
}

/**
 * The listing, or undefined for whatever is not that very one: what others may have written is not believed.
 * @param isRight judges its hash, in digits
 */
export function unpackListing(parts: readonly string[], isRight: (hash: string) => boolean): Definitions | undefined {
  try {
    const packed = Buffer.concat(parts.map((part) => Buffer.from(part, 'base64')));
    const text = gunzipSync(packed, { maxOutputLength: UNPACKED_MAX_BYTES }).toString('utf8');
    return readListing(JSON.parse(text), isRight);
  } catch {
    return undefined;
  }
}

/** The same of a sidecar's answer. */
export function readListing(answer: unknown, isRight: (hash: string) => boolean): Definitions | undefined {
  if (!isObject(answer)) return undefined;
  const { instructions, tools } = answer;
  if (!Array.isArray(tools) || (instructions !== undefined && typeof instructions !== 'string')) return undefined;
  const snapshot = snapshotListing(tools, instructions);
  if (!isRight(snapshot.hash)) return undefined;
  return { ...(instructions === undefined ? {} : { instructions }), tools: snapshot.tools };
}

function isObject(value: unknown): value is Definition {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
