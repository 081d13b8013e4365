/** Reads a stored object for a reconciler. */
import { readStored } from '../api/judge.ts';
import type { Output, Schema } from '../api/schema.ts';
import type { KubeObject } from '../engine/contract.ts';

/** An object whose spec was read, with its status as it is stored. */
export type Stored<T> = Omit<T, 'status'> & { readonly status?: unknown };

export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

/**
 * Lenient: what this version does not know is left out. The status is not judged: it is the controller's own word, and an old one
 * that no longer fits must not make the object unreadable.
 */
export function parseWith<S extends Schema<KubeObject>>(schema: S): (raw: KubeObject) => Parsed<Stored<Output<S>>> {
  return ({ status, ...raw }) => {
    const read = readStored(schema, raw);
    if (read.ok) return { ok: true, value: { ...read.value, ...(status === undefined ? {} : { status }) } };
    return { ok: false, problem: read.problems.map(({ field, message }) => `${field}: ${message}`).join('; ') };
  };
}
