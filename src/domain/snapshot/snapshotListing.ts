/**
 * What a tool's server lists, as something that can be compared and approved: a hash of each function and of all of
 * them. Everything that a model or a person may see counts: names, texts, schemas, hints, titles, icons, `_meta`. Pure.
 */
import { createHash } from 'node:crypto';
import type { ListedFunction } from '../config/sidecar.ts';
import { canonicalJson, canonicalSchema } from './canonical.ts';
import { functionKind } from './functionKind.ts';

export interface Snapshot {
  readonly hash: string;
  readonly instructions?: string;
  /** In order of name. */
  readonly functions: readonly ListedFunction[];
  /** The definitions of these functions, in the same order. */
  readonly tools: readonly Readonly<Record<string, unknown>>[];
  /** Entries that were held back, and why: only they are, not their neighbours. */
  readonly heldBack: readonly { readonly name: string; readonly problem: string }[];
}

/** Names that a JSON-RPC log, a header and a policy can all carry. */
const NAME = /^[\x21-\x7e]{1,128}$/;
/** Goes into the hash, so that another canonical form is another hash. */
const FORM = 'oz0-snapshot-1';

/** @param instructions the server's own, which a model may read too */
export function snapshotListing(listed: readonly unknown[], instructions?: string): Snapshot {
  const found = new Map<string, { tool: Readonly<Record<string, unknown>>; hash: string }>();
  const heldBack: { name: string; problem: string }[] = [];
  const hold = (name: string, problem: string) => heldBack.push({ name: name.slice(0, 128), problem });
  const twice = new Set<string>();
  for (const entry of listed) {
    if (!isObject(entry)) {
      hold('', 'is not an object');
      continue;
    }
    const { name } = entry;
    if (typeof name !== 'string' || !NAME.test(name)) {
      hold(typeof name === 'string' ? name : '', 'has a name that is empty, too long or not plain ASCII');
    } else if (found.has(name) || twice.has(name)) {
      // Which of the two a call would reach, only the server knows.
      twice.add(name);
      found.delete(name);
    } else if (!isObject(entry['inputSchema'])) {
      hold(name, 'has no input schema');
    } else {
      const hash = hashFunction(entry);
      if (hash === undefined) hold(name, 'has a definition that is nested too deeply');
      else found.set(name, { tool: entry, hash });
    }
  }
  for (const name of twice) hold(name, 'is listed twice');
  const sorted = [...found].sort(([a], [b]) => (a < b ? -1 : 1));
  const functions = sorted.map(([name, { tool, hash }]) => ({ name, kind: functionKind(tool['annotations']), hash }));
  const lines = functions.map(({ name, hash }) => `${name} ${hash}`);
  const about = instructions === undefined ? '' : sha256(instructions);
  return {
    hash: sha256([FORM, about, ...lines].join('\n')),
    ...(instructions === undefined ? {} : { instructions }),
    functions,
    tools: sorted.map(([, { tool }]) => tool),
    heldBack,
  };
}

/** Hex sha256 of a definition's canonical form; undefined for one that is nested too deeply. */
export function hashFunction(tool: Readonly<Record<string, unknown>>): string | undefined {
  const { inputSchema, outputSchema, ...rest } = tool;
  try {
    return sha256(
      `${FORM}\n${canonicalJson(rest)}\n${canonicalSchema(inputSchema)}\n${
        outputSchema === undefined ? '' : canonicalSchema(outputSchema)
      }`,
    );
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
