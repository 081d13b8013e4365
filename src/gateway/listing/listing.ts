/**
 * What a tool's server lists, as it may be shown to agents: each function judged by itself, so that a broken one holds
 * back nothing but itself. Pure.
 */

import { hashFunction } from '../../domain/snapshot/snapshotListing.ts';
import { toolProblem } from '../../mcp/toolProblem.ts';
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { jsonDepth } from '../../mcp/wire/jsonText.ts';
import { META_HONOURS_KEY, passableMeta } from '../../mcp/wire/meta.ts';
import { type ParamHeader, scanParamHeaders } from '../../mcp/wire/paramHeader.ts';
import { vendorName } from '../vendorName.ts';
import { schemaProblem } from './schemaProblem.ts';

export interface ListedFunction {
  readonly name: string;
  /** The tool object of MCP without its name: what is shown is put under the name that the endpoint uses. */
  readonly definition: JsonObject;
  /** Its annotations as the server wrote them, well or not. */
  readonly hints: JsonObject;
  /** Hex hash of all that the server says of it, as a snapshot has it. */
  readonly hash: string;
  /** It says that it keeps idempotency keys. */
  readonly honoursKey: boolean;
  readonly paramHeaders: readonly ParamHeader[];
}

export interface Listing {
  /** In the order of their names. */
  readonly functions: ReadonlyMap<string, ListedFunction>;
  /** Name → why it is not offered. */
  readonly heldBack: ReadonlyMap<string, string>;
  /** Hex hash of all that was listed, where its sidecar said it. */
  readonly hash: string | undefined;
  /** Equal for listings that show the same. */
  readonly text: string;
}

const NAME = /^[A-Za-z0-9_./-]{1,128}$/;
const MAX_DEFINITION_CHARS = 256 * 1024;
/** The same depth as a snapshot's; below what a reader of any language takes. */
const MAX_DEFINITION_DEPTH = 100;
const MAX_HELD_BACK = 100;

/** `tools` as the server of the tool of this id listed them, pages joined. */
export function acceptListing(toolId: string, tools: readonly unknown[], hash?: string): Listing {
  const seen = new Set<string>();
  const accepted = new Map<string, ListedFunction>();
  const heldBack = new Map<string, string>();
  const holdBack = (name: string, problem: string): void => {
    accepted.delete(name);
    if (heldBack.size < MAX_HELD_BACK) heldBack.set(name, problem);
  };
  for (const raw of tools) {
    const name = isObject(raw) ? raw['name'] : undefined;
    // Without a usable name nothing can be said about it.
    if (!isObject(raw) || typeof name !== 'string' || !NAME.test(name)) continue;
    const judged = seen.has(name) ? 'it is listed twice' : acceptFunction(name, raw);
    seen.add(name);
    if (typeof judged === 'string') holdBack(name, judged);
    else accepted.set(name, judged);
  }
  for (const names of shownAlike(toolId, accepted.keys())) {
    for (const name of names) holdBack(name, 'another function would be shown under the same name');
  }
  const functions = new Map([...accepted].sort(([a], [b]) => (a < b ? -1 : 1)));
  const text = JSON.stringify([
    [...functions.values()].map(({ name, definition, hash }) => [name, definition, hash]),
    [...heldBack],
    hash,
  ]);
  return { functions, heldBack, hash, text };
}

/**
 * Names that agents would see as one: a name may be written to equal the short form of another. A listing with one name
 * twice is refused whole by models' vendors, with every other tool's functions in it.
 */
function shownAlike(toolId: string, names: Iterable<string>): readonly (readonly string[])[] {
  const byShown = Map.groupBy(names, (name) => vendorName(toolId, name));
  return [...byShown.values()].filter((alike) => alike.length > 1);
}

/** The function, or why it is held back. */
function acceptFunction(name: string, raw: JsonObject): ListedFunction | string {
  const { title, description, inputSchema, outputSchema, annotations, icons, _meta } = raw;
  if (!isObject(inputSchema)) return 'inputSchema does not describe an object';
  if (annotations !== undefined && !isObject(annotations)) return 'annotations is not an object';
  const text = JSON.stringify(raw);
  if (text.length > MAX_DEFINITION_CHARS) return 'its definition is too large';
  if (jsonDepth(text) > MAX_DEFINITION_DEPTH) return 'its definition is nested too deeply';
  const problem = schemaProblem(inputSchema) ?? (outputSchema === undefined ? undefined : schemaProblem(outputSchema));
  if (problem !== undefined) return problem;
  const scanned = scanParamHeaders(inputSchema);
  if (!scanned.ok) return scanned.problem;
  const hash = hashFunction(raw);
  if (hash === undefined) return 'its definition is nested too deeply';
  const meta = isObject(_meta) ? passableMeta(_meta) : {};
  const definition: JsonObject = {
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    inputSchema,
    ...(outputSchema === undefined ? {} : { outputSchema }),
    ...(annotations === undefined ? {} : { annotations: soundAnnotations(annotations) }),
    ...(Array.isArray(icons) && icons.every(isObject) ? { icons } : {}),
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
  };
  const refused = toolProblem({ name, ...definition });
  if (refused !== undefined) return refused;
  const honoursKey = isObject(_meta) && _meta[META_HONOURS_KEY] === true;
  return { name, definition, hints: annotations ?? {}, hash, honoursKey, paramHeaders: scanned.headers };
}

/** Hints of the wrong type are left out: they then count as not said, which is the strictest reading. */
function soundAnnotations(annotations: JsonObject): JsonObject {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(annotations)) {
    if (key.endsWith('Hint') ? typeof value === 'boolean' : typeof value === 'string') kept[key] = value;
  }
  return kept;
}
