/** A Tool as calls are decided by it: compiled from one object, alone. Pure. */
import { parseDuration } from '../../api/duration.ts';
import { readStored } from '../../api/judge.ts';
import { affinityOf, type ToolSpec, type ToolStatus, tool } from '../../api/tool.ts';
import { toolId } from '../../domain/naming.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { type CompiledOverride, compileOverride } from '../overrides/override.ts';

export interface CompiledTool {
  readonly namespace: string;
  readonly name: string;
  readonly id: string;
  /** Why its object cannot be read: nothing of it is callable then. */
  readonly broken?: string;
  readonly affinity: 'node' | 'any';
  /** A call's longest duration. */
  readonly timeoutMs: number;
  /** Name of the Plugin that it is a part of. */
  readonly plugin?: string;
  /** Its server is elsewhere: whatever that says, calls go out and results come from outside. */
  readonly remote: boolean;
  /** What its listing may be; undefined before there is a snapshot. */
  readonly approved: Approved | undefined;
  /** By the server's own names of functions. */
  readonly overrides: Overrides;
  /** Functions whose server is known to keep idempotency keys. */
  readonly honoursKey: ReadonlySet<string>;
}

/** Hex hashes. */
export interface Approved {
  /** Of whole listings. */
  readonly listings: ReadonlySet<string>;
  readonly functions: ReadonlySet<string>;
}

/** All that a Tool's spec says of functions. The same object as long as it says the same. */
export interface Overrides {
  readonly text: string;
  readonly byName: ReadonlyMap<string, CompiledOverride>;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const NO_OVERRIDES: Overrides = { text: '', byName: new Map() };

/**
 * Undefined for one that is being deleted.
 * @param before the same Tool as it was compiled last: a change of its status compiles no schema anew
 */
export function compileTool(object: KubeObject, before?: CompiledTool): CompiledTool | undefined {
  const { name, namespace = '', deletionTimestamp } = object.metadata;
  if (deletionTimestamp !== undefined) return undefined;
  const base = { namespace, name, id: toolId(name) };
  const read = readStored(tool.schema, object);
  if (!read.ok) {
    const [problem] = read.problems;
    return {
      ...base,
      broken: problem === undefined ? 'unreadable' : `${problem.field}: ${problem.message}`,
      affinity: 'node',
      timeoutMs: DEFAULT_TIMEOUT_MS,
      remote: false,
      approved: undefined,
      overrides: NO_OVERRIDES,
      honoursKey: new Set(),
    };
  }
  const { spec, status } = read.value;
  return {
    ...base,
    affinity: affinityOf(spec),
    timeoutMs: parseDuration(spec.timeout) ?? DEFAULT_TIMEOUT_MS,
    ...(spec.plugin === undefined ? {} : { plugin: spec.plugin }),
    remote: spec.url !== undefined,
    approved: approvedBy(status),
    overrides: compileOverrides(spec, before?.overrides),
    honoursKey: new Set(spec.honoursIdempotencyKey),
  };
}

const HASH_PREFIX = 'sha256:';

function approvedBy(status: ToolStatus | undefined): Approved | undefined {
  const { snapshot, replaced } = status ?? {};
  if (snapshot === undefined) return undefined;
  const all = replaced === undefined ? [snapshot] : [snapshot, replaced];
  return {
    listings: new Set(all.map(({ hash }) => hex(hash))),
    functions: new Set(all.flatMap(({ functions }) => functions.map(({ hash }) => hex(hash)))),
  };
}

function hex(hash: string): string {
  return hash.startsWith(HASH_PREFIX) ? hash.slice(HASH_PREFIX.length) : hash;
}

function compileOverrides(spec: ToolSpec, before: Overrides | undefined): Overrides {
  const { functions = {}, honoursIdempotencyKey = [], url } = spec;
  const text = JSON.stringify([functions, honoursIdempotencyKey, url !== undefined]);
  if (before?.text === text) return before;
  return { text, byName: new Map(Object.entries(functions).map(([name, each]) => [name, compileOverride(each)])) };
}
