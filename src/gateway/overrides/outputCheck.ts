/**
 * Checks a tool's structured result against a JSON Schema (2020-12) that a person wrote on the Tool. Schema and result are
 * both others' text, in a process that serves many: no reference is fetched, no pattern backtracks, and a check takes a
 * bounded number of steps, whatever the schema says.
 */
import { RE2JS } from '@bufbuild/re2';
import { Ajv2020, type AnySchemaObject } from 'ajv/dist/2020.js';
import { canonicalJson } from '../../domain/snapshot/canonical.ts';
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { isSchemaPlace, schemaProblem, subschemasOf } from '../listing/schemaProblem.ts';

/** What is wrong with a result, for the model; undefined where it matches. */
export type OutputCheck = (structured: unknown) => string | undefined;

export type CompiledOutputCheck =
  | { readonly ok: true; readonly check: OutputCheck }
  | { readonly ok: false; readonly problem: string };

const DIALECT = 'https://json-schema.org/draft/2020-12/schema';
const MAX_SCHEMA_CHARS = 64 * 1024;
const MAX_PARTS = 1_000;
const MAX_PATTERN_CHARS = 1_024;
/** Of a pattern's program: `(x{1000}){1000}` is short, what it becomes is not. */
const MAX_PATTERN_INSTRUCTIONS = 2_000;
/** A fifth of a second, about, on a slow processor. */
const MAX_STEPS = 400_000;
const MAX_PROBLEM_CHARS = 300;
/** Put into every part of a schema, so that each is counted when it is asked. */
const STEP = 'oz0-step';

/** What asking a pattern costs, however short the text. */
const PATTERN_STEPS = 16;

class TooManySteps extends Error {}

export function compileOutputCheck(schema: unknown): CompiledOutputCheck {
  const problem = refusedSchema(schema);
  if (problem !== undefined || !isObject(schema)) return { ok: false, problem: problem ?? 'it is not an object' };
  const budget = { left: 0 };
  try {
    const ajv = createAjv(budget);
    const validate = ajv.compile(counted(schema) as AnySchemaObject);
    return {
      ok: true,
      check: (structured) => {
        budget.left = MAX_STEPS;
        try {
          if (validate(structured)) return undefined;
        } catch (error) {
          if (error instanceof TooManySteps || error instanceof RangeError) return 'it is too large to be checked';
          throw error;
        }
        const [first] = validate.errors ?? [];
        return `${first?.instancePath || 'the result'} ${first?.message ?? 'does not match'}`.slice(
          0,
          MAX_PROBLEM_CHARS,
        );
      },
    };
  } catch (error) {
    return { ok: false, problem: (error instanceof Error ? error.message : 'it does not compile').slice(0, 200) };
  }
}

function refusedSchema(schema: unknown): string | undefined {
  if (!isObject(schema)) return 'it is not an object';
  if (JSON.stringify(schema).length > MAX_SCHEMA_CHARS) return `it is longer than ${MAX_SCHEMA_CHARS} characters`;
  const dialect = schema['$schema'];
  if (dialect !== undefined && dialect !== DIALECT && dialect !== `${DIALECT}#`)
    return 'it is not of JSON Schema 2020-12';
  const problem = schemaProblem(schema, MAX_PARTS);
  if (problem !== undefined) return problem;
  const meta = metaSchema();
  if (meta.validateSchema(schema) === true) return undefined;
  const [first] = meta.errors ?? [];
  return `${first?.instancePath || 'the schema'} ${first?.message ?? 'is not a schema'}`.slice(0, MAX_PROBLEM_CHARS);
}

let meta: Ajv2020 | undefined;

function metaSchema(): Ajv2020 {
  meta ??= new Ajv2020({ strict: false, logger: false, validateFormats: false });
  return meta;
}

/** One for each schema, so that an `$id` of one can never be what another's `$ref` means. */
function createAjv(budget: { left: number }): Ajv2020 {
  const spend = (steps: number): void => {
    budget.left -= steps;
    if (budget.left < 0) throw new TooManySteps();
  };
  const ajv = new Ajv2020({
    meta: false,
    validateSchema: false,
    strict: false,
    logger: false,
    validateFormats: false,
    // A name that every object inherits is no property of a result.
    ownProperties: true,
    // Inlined, a few references to references are a very long function.
    inlineRefs: false,
    code: { regExp: Object.assign((pattern: string) => createPattern(pattern, spend), { code: 'RE2' }) },
  });
  ajv.addKeyword({
    keyword: STEP,
    schemaType: 'number',
    before: '$ref',
    errors: false,
    validate: (cost: number, data: unknown) => {
      spend(cost + sizeOf(data));
      return true;
    },
  });
  // The library's own compare each with each.
  ajv.removeKeyword('uniqueItems');
  ajv.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must not hold the same item twice' },
    validate: (wanted: boolean, items: readonly unknown[]) => {
      if (!wanted) return true;
      const seen = new Set<string>();
      for (const item of items) {
        const text = canonicalJson(item);
        spend(1 + text.length / 64);
        if (seen.has(text)) return false;
        seen.add(text);
      }
      return true;
    },
  });
  ajv.removeKeyword('enum');
  ajv.addKeyword({
    keyword: 'enum',
    schemaType: 'array',
    error: { message: 'must be one of the allowed values' },
    compile: (values: readonly unknown[]) => {
      const allowed = new Set(values.map((value) => canonicalJson(value)));
      const plain = values.every((value) => typeof value !== 'object' || value === null);
      return (data: unknown) => {
        if (typeof data === 'object' && data !== null && plain) return false;
        const text = canonicalJson(data);
        spend(text.length / 64);
        return allowed.has(text);
      };
    },
  });
  return ajv;
}

function createPattern(pattern: string, spend: (steps: number) => void): { test: (text: string) => boolean } {
  if (pattern.length > MAX_PATTERN_CHARS) throw new Error(`a pattern is longer than ${MAX_PATTERN_CHARS} characters`);
  let compiled: RE2JS;
  try {
    compiled = RE2JS.compile(pattern.replaceAll(/\\u\{?([0-9A-Fa-f]{1,6})\}?/g, '\\x{$1}'));
  } catch {
    throw new Error(`the pattern ${JSON.stringify(pattern).slice(0, 80)} is none that runs in linear time (RE2)`);
  }
  const instructions = compiled.re2().prog.inst.length;
  if (instructions > MAX_PATTERN_INSTRUCTIONS) throw new Error('a pattern repeats too much');
  const perChar = 1 + instructions / 32;
  return {
    test: (text) => {
      spend(PATTERN_STEPS + (text.length * perChar) / 16);
      const found = compiled.test(text);
      // What it remembers of long texts would stay for as long as the Tool does.
      if (text.length > 4_096) compiled.reset();
      return found;
    },
    toString: () => pattern,
  } as { test: (text: string) => boolean };
}

function sizeOf(data: unknown): number {
  if (Array.isArray(data)) return data.length;
  return isObject(data) ? Object.keys(data).length : 0;
}

/** The schema with the step keyword in each of its parts: what asking this part costs, without the parts below it. */
function counted(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  const kept = Object.entries(schema)
    .filter(([key]) => key !== STEP)
    .map(([key, value]) => [key, isSchemaPlace(key) ? countedBelow(key, value) : value] as const);
  return Object.fromEntries([...kept, [STEP, 1 + costOf(schema)]]);
}

function countedBelow(key: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map(counted);
  if (!isObject(value)) return value;
  const isMap = subschemasOf(key, value).every(([name]) => name !== '');
  if (!isMap) return counted(value);
  return Object.fromEntries(
    Object.entries(value).map(([name, sub]) => [name, Array.isArray(sub) ? sub : counted(sub)]),
  );
}

function costOf(schema: JsonObject): number {
  let cost = 0;
  for (const value of Object.values(schema)) {
    if (Array.isArray(value)) cost += value.length;
    else if (isObject(value)) cost += Object.keys(value).length;
    cost += 1;
  }
  return cost / 8;
}
