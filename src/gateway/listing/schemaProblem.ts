/**
 * Whether a JSON Schema is sound enough to hand to clients: those that compile every schema of a listing fail on the
 * first bad one and lose all the others. Checks shapes of known keywords; dereferences nothing, runs no pattern.
 */
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';

const TYPES: ReadonlySet<unknown> = new Set(['object', 'array', 'string', 'number', 'integer', 'boolean', 'null']);
const SCHEMA = new Set([
  'items',
  'contains',
  'additionalProperties',
  'unevaluatedItems',
  'unevaluatedProperties',
  'propertyNames',
  'not',
  'if',
  'then',
  'else',
]);
const SCHEMAS = new Set(['allOf', 'anyOf', 'oneOf', 'prefixItems']);
const SCHEMA_MAP = new Set(['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']);
const COUNT = new Set(['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties']);
const NUMBER = new Set(['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'multipleOf']);
const MAX_DEPTH = 64;
const MAX_NODES = 10_000;

/** The first problem, with where it is; undefined for a sound schema. */
export function schemaProblem(schema: unknown, maxParts = MAX_NODES): string | undefined {
  const state = { nodes: 0, max: maxParts };
  if (!isObject(schema)) return 'the schema is not an object';
  return problemOf(schema, '', 0, state, schema);
}

function problemOf(
  schema: unknown,
  at: string,
  depth: number,
  state: { nodes: number; readonly max: number },
  root: JsonObject,
): string | undefined {
  const where = at === '' ? 'the schema' : at;
  if (typeof schema === 'boolean') return undefined;
  if (!isObject(schema)) return `${where} is not a schema`;
  state.nodes += 1;
  if (depth > MAX_DEPTH) return `${where} is nested deeper than ${MAX_DEPTH}`;
  if (state.nodes > state.max) return `the schema has more than ${state.max} parts`;
  for (const [key, value] of Object.entries(schema)) {
    const problem =
      keywordProblem(key, value, root) ??
      subschemasOf(key, value)
        .map(([name, sub]) => problemOf(sub, `${at}/${key}${name}`, depth + 1, state, root))
        .find((found) => found !== undefined);
    if (problem !== undefined) return problem.startsWith('/') ? problem : `${where}: ${problem}`;
  }
  return undefined;
}

function keywordProblem(key: string, value: unknown, root: JsonObject): string | undefined {
  if (key === 'type') {
    const types = Array.isArray(value) ? value : [value];
    return types.length > 0 && types.every((type) => TYPES.has(type)) ? undefined : 'type is none of JSON Schema';
  }
  if (key === 'required') return isStrings(value) ? undefined : 'required is not a list of names';
  if (key === 'enum') return Array.isArray(value) ? undefined : 'enum is not a list';
  if (key === 'pattern') return isPattern(value) ? undefined : 'pattern is not a regular expression';
  if (key === '$ref') return refProblem(value, root);
  if (COUNT.has(key)) return Number.isSafeInteger(value) && Number(value) >= 0 ? undefined : `${key} is not a count`;
  if (NUMBER.has(key)) return typeof value === 'number' ? undefined : `${key} is not a number`;
  if (SCHEMA_MAP.has(key)) return isObject(value) ? undefined : `${key} is not a map of schemas`;
  if (SCHEMAS.has(key)) return Array.isArray(value) && value.length > 0 ? undefined : `${key} is not a list of schemas`;
  return undefined;
}

/** Whether what a keyword holds is a schema, a list of schemas or a map of schemas. */
export function isSchemaPlace(key: string): boolean {
  return SCHEMA.has(key) || SCHEMAS.has(key) || SCHEMA_MAP.has(key) || key === 'dependencies';
}

/** The schemas that a keyword holds, each with its place: empty for the keyword's own. */
export function subschemasOf(key: string, value: unknown): readonly (readonly [string, unknown])[] {
  // Before 2019-09; a member is a schema or a list of names.
  if (key === 'dependencies' && isObject(value)) {
    return Object.entries(value).flatMap(([name, sub]) => (Array.isArray(sub) ? [] : [[`/${name}`, sub] as const]));
  }
  if (SCHEMA_MAP.has(key) && isObject(value)) return Object.entries(value).map(([name, sub]) => [`/${name}`, sub]);
  if (SCHEMAS.has(key) && Array.isArray(value)) return value.map((sub, index) => [`/${index}`, sub]);
  // Before 2020-12, `items` may be a list.
  if (key === 'items' && Array.isArray(value)) return value.map((sub, index) => [`/${index}`, sub]);
  return SCHEMA.has(key) ? [['', value]] : [];
}

/** A reference within the document must lead somewhere; one to elsewhere is nobody's to fetch. */
function refProblem(ref: unknown, root: JsonObject): string | undefined {
  if (typeof ref !== 'string') return '$ref is not a reference';
  if (!ref.startsWith('#')) return '$ref leads out of the schema';
  if (!ref.startsWith('#/')) return undefined;
  const target = ref
    .slice(2)
    .split('/')
    .reduce<unknown>((node, part) => {
      const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
      if (Array.isArray(node)) return node[Number(key)];
      return isObject(node) && Object.hasOwn(node, key) ? node[key] : undefined;
    }, root);
  return target === undefined ? `$ref ${ref.slice(0, 80)} leads nowhere` : undefined;
}

function isStrings(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}

/** Compiles it, which takes no input and so no time worth naming; it is never run here. */
function isPattern(value: unknown): boolean {
  if (typeof value !== 'string' || value.length > 4_096) return false;
  try {
    new RegExp(value, 'u');
    return true;
  } catch {
    return false;
  }
}
