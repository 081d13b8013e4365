/**
 * One text for all JSON values that mean the same, so that a hash tells a change from a rearrangement: keys are sorted,
 * numbers have one form; in schemas `enum`, `required` and `type` are sets. Pure.
 */

/** Deeper than any honest schema; a hostile one must not overflow the stack. */
const MAX_DEPTH = 100;

/** @throws RangeError for a value nested deeper than 100 */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new RangeError('nested too deeply');
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item, depth + 1)).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  return object(value, (_key, child) => canonicalJson(child, depth + 1));
}

/** The same for a JSON Schema. */
export function canonicalSchema(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new RangeError('nested too deeply');
  if (Array.isArray(value)) return `[${value.map((item) => canonicalSchema(item, depth + 1)).join(',')}]`;
  if (!isObject(value)) return canonicalJson(value, depth);
  return object(value, (key, child) => {
    if (SETS.has(key) && Array.isArray(child)) {
      return `[${child
        .map((item) => canonicalJson(item, depth + 1))
        .sort(byCodeUnit)
        .join(',')}]`;
    }
    if (DATA.has(key)) return canonicalJson(child, depth + 1);
    // Names may be any of the words above.
    if (MAPS.has(key) && isObject(child)) return object(child, (_name, schema) => canonicalSchema(schema, depth + 2));
    return canonicalSchema(child, depth + 1);
  });
}

/** Keywords of JSON Schema: whose arrays are sets, whose values are data, whose keys are names that someone chose. */
export const SETS: ReadonlySet<string> = new Set(['enum', 'required', 'type']);
export const DATA: ReadonlySet<string> = new Set(['const', 'default', 'examples', 'enum', 'required', 'type']);
export const MAPS: ReadonlySet<string> = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependentRequired',
]);

function object(value: JsonObject, write: (key: string, child: unknown) => string): string {
  const keys = Object.keys(value)
    .filter((key) => value[key] !== undefined)
    .sort(byCodeUnit);
  return `{${keys.map((key) => `${JSON.stringify(key)}:${write(key, value[key])}`).join(',')}}`;
}

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Not by locale: the order is part of the hash. */
function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
