/**
 * `x-mcp-header`: arguments that a function's schema asks clients to repeat in `Mcp-Param-<name>` headers (2026-07-28).
 * A function whose declarations break the rules is not listed; its neighbours are.
 */
import { decodeHeaderValue } from './header.ts';
import { isObject, type JsonObject } from './jsonrpc.ts';

export interface ParamHeader {
  /** Path of the argument, from the root of `arguments`. */
  readonly path: readonly string[];
  /** Lower case, with the prefix, as node:http names it. */
  readonly header: string;
  readonly type: 'string' | 'integer' | 'boolean';
}

export type ParamHeaders =
  | { readonly ok: true; readonly headers: readonly ParamHeader[] }
  | { readonly ok: false; readonly problem: string };

const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const DECIMAL = /^-?\d+(\.\d+)?$/;
const MAX_DEPTH = 64;

/** The declarations of an input schema, found through `properties` alone; one anywhere else is a problem. */
export function scanParamHeaders(schema: JsonObject): ParamHeaders {
  const headers: ParamHeader[] = [];
  const problem = visit(schema, [], true, headers, 0);
  return problem === undefined ? { ok: true, headers } : { ok: false, problem };
}

function visit(
  node: unknown,
  path: readonly string[],
  reachable: boolean,
  found: ParamHeader[],
  depth: number,
): string | undefined {
  if (depth > MAX_DEPTH) return `the schema is nested deeper than ${MAX_DEPTH}`;
  if (Array.isArray(node)) {
    for (const item of node) {
      const problem = visit(item, path, false, found, depth + 1);
      if (problem !== undefined) return problem;
    }
    return undefined;
  }
  if (!isObject(node)) return undefined;
  if ('x-mcp-header' in node) {
    const problem = declare(node, path, reachable, found);
    if (problem !== undefined) return problem;
  }
  for (const [key, child] of Object.entries(node)) {
    if (key === 'enum' || key === 'const' || key === 'default' || key === 'examples') continue;
    const properties = key === 'properties' && isObject(child);
    for (const [name, sub] of properties ? Object.entries(child) : [[key, child] as const]) {
      const problem = visit(sub, [...path, name], properties && reachable, found, depth + 1);
      if (problem !== undefined) return problem;
    }
  }
  return undefined;
}

function declare(
  node: JsonObject,
  path: readonly string[],
  reachable: boolean,
  found: ParamHeader[],
): string | undefined {
  const name = node['x-mcp-header'];
  if (typeof name !== 'string' || !TOKEN.test(name)) return 'x-mcp-header is not a header name';
  if (!reachable || path.length === 0) return `x-mcp-header ${name} is not on a property of the arguments`;
  const type = node['type'];
  if (type !== 'string' && type !== 'integer' && type !== 'boolean') {
    return `x-mcp-header ${name} is on a property that is no string, integer or boolean`;
  }
  const header = `mcp-param-${name.toLowerCase()}`;
  if (found.some((other) => other.header === header)) return `x-mcp-header ${name} is declared twice`;
  found.push({ path, header, type });
  return undefined;
}

/** The first disagreement between `Mcp-Param-*` headers and the arguments, in words, or undefined. */
export function paramMismatch(
  declared: readonly ParamHeader[],
  args: JsonObject,
  header: (name: string) => string | undefined,
): string | undefined {
  for (const param of declared) {
    const value = param.path.reduce<unknown>((node, key) => (isObject(node) ? node[key] : undefined), args);
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') continue;
    const raw = header(param.header);
    if (raw === undefined) return `the header ${param.header} is absent`;
    const decoded = decodeHeaderValue(raw);
    if (decoded === undefined) return `the header ${param.header} is not valid base64 of UTF-8`;
    const equal =
      typeof value === 'number' && DECIMAL.test(decoded) ? Number(decoded) === value : decoded === String(value);
    if (!equal) return `the header ${param.header} differs from the argument`;
  }
  return undefined;
}
