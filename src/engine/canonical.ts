/** One text for one meaning: objects compare and hash the same whatever the order of their keys. */
import { createHash } from 'node:crypto';

/** JSON with sorted keys; fields that are undefined are left out, as JSON does. Throws on what JSON cannot hold. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map((item) => canonical(item ?? null)).join(',')}]`;
  if (typeof value === 'object' && value !== null) {
    const fields = value as Record<string, unknown>;
    const parts: string[] = [];
    for (const key of Object.keys(fields).sort()) {
      const inner = fields[key];
      if (inner !== undefined) parts.push(`${JSON.stringify(key)}:${canonical(inner)}`);
    }
    return `{${parts.join(',')}}`;
  }
  return JSON.stringify(value) ?? 'null';
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
