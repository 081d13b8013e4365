/**
 * What a tool's server lists, as it may be shown to agents: each function judged by itself, so that a broken one holds
 * back nothing but itself. Pure.
 */
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { passableMeta } from '../../mcp/wire/meta.ts';
import { type ParamHeader, scanParamHeaders } from '../../mcp/wire/paramHeader.ts';
import { schemaProblem } from './schemaProblem.ts';

export interface ListedFunction {
  readonly name: string;
  /** The tool object of MCP without its name: what is shown is put under the name that the endpoint uses. */
  readonly definition: JsonObject;
  readonly paramHeaders: readonly ParamHeader[];
}

export interface Listing {
  /** In the order of their names. */
  readonly functions: ReadonlyMap<string, ListedFunction>;
  /** Name → why it is not offered. */
  readonly heldBack: ReadonlyMap<string, string>;
  /** Equal for listings that show the same. */
  readonly text: string;
}

const NAME = /^[A-Za-z0-9_./-]{1,128}$/;
const MAX_DEFINITION_CHARS = 256 * 1024;
const MAX_HELD_BACK = 100;

/** `tools` as the server listed them, pages joined. */
export function acceptListing(tools: readonly unknown[]): Listing {
  const accepted = new Map<string, ListedFunction>();
  const heldBack = new Map<string, string>();
  for (const raw of tools) {
    const name = isObject(raw) ? raw['name'] : undefined;
    // Without a usable name nothing can be said about it.
    if (!isObject(raw) || typeof name !== 'string' || !NAME.test(name)) continue;
    const judged = accepted.has(name) || heldBack.has(name) ? 'it is listed twice' : acceptFunction(name, raw);
    if (typeof judged !== 'string') accepted.set(name, judged);
    else {
      accepted.delete(name);
      if (heldBack.size < MAX_HELD_BACK) heldBack.set(name, judged);
    }
  }
  const functions = new Map([...accepted].sort(([a], [b]) => (a < b ? -1 : 1)));
  const text = JSON.stringify([
    [...functions.values()].map(({ name, definition }) => [name, definition]),
    [...heldBack],
  ]);
  return { functions, heldBack, text };
}

/** The function, or why it is held back. */
function acceptFunction(name: string, raw: JsonObject): ListedFunction | string {
  const { title, description, inputSchema, outputSchema, annotations, icons, _meta } = raw;
  if (!isObject(inputSchema) || inputSchema['type'] !== 'object') return 'inputSchema does not describe an object';
  if (description !== undefined && typeof description !== 'string') return 'description is not text';
  if (title !== undefined && typeof title !== 'string') return 'title is not text';
  if (annotations !== undefined && !isObject(annotations)) return 'annotations is not an object';
  if (JSON.stringify(raw).length > MAX_DEFINITION_CHARS) return 'its definition is too large';
  const problem = schemaProblem(inputSchema) ?? (outputSchema === undefined ? undefined : schemaProblem(outputSchema));
  if (problem !== undefined) return problem;
  const scanned = scanParamHeaders(inputSchema);
  if (!scanned.ok) return scanned.problem;
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
  return { name, definition, paramHeaders: scanned.headers };
}

/** Hints of the wrong type are left out: they then count as not said, which is the strictest reading. */
function soundAnnotations(annotations: JsonObject): JsonObject {
  const kept: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(annotations)) {
    if (key.endsWith('Hint') ? typeof value === 'boolean' : typeof value === 'string') kept[key] = value;
  }
  return kept;
}
