/** One text for one meaning: objects compare and hash the same whatever the order of their keys. */
import { createHash } from 'node:crypto';

/** JSON with sorted keys; fields that are undefined are left out, as JSON does. */
export function canonical(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === 'object' && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** 16 hex digits: enough to tell versions of one object apart. */
export function hashOf(value: unknown): string {
  return createHash('sha256').update(canonical(value)).digest('hex').slice(0, 16);
}

/**
 * Whether everything that `wanted` says is so in `live`: extra fields of live are defaults or belong to others. Items of
 * lists are matched by place; a list of another length differs.
 */
export function isContained(wanted: unknown, live: unknown): boolean {
  if (wanted === undefined) return true;
  if (Array.isArray(wanted)) {
    return (
      Array.isArray(live) && live.length === wanted.length && wanted.every((item, i) => isContained(item, live[i]))
    );
  }
  if (typeof wanted === 'object' && wanted !== null) {
    if (typeof live !== 'object' || live === null || Array.isArray(live)) return Object.keys(wanted).length === 0;
    return Object.entries(wanted).every(([key, value]) => isContained(value, (live as Record<string, unknown>)[key]));
  }
  return wanted === live;
}
