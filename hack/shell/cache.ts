/** Where everything lies that is built once and kept: outside the checkout, shared by all checkouts of a person. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';

export const cacheFolder: string = resolve(
  process.env['OZ0_CACHE'] ?? join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'oz0-operator'),
);

/** A name for content: the same parts give the same key, anything else another. */
export function contentKey(parts: readonly (string | Uint8Array)[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest('hex').slice(0, 12);
}

export function fileKey(file: string): string {
  return createHash('sha256').update(readFileSync(file)).digest('hex');
}
