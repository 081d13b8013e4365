/**
 * The dialect in which the kinds are written, once: each helper builds a zod schema and, beside it, the structural schema that
 * the API server gets. Both judge alike, because both come from the same call; what one of them cannot say is not offered here.
 * Lengths are counted in characters (code points), as the API server does.
 */
import { z } from 'zod';

/** A structural schema of apiextensions.k8s.io/v1, as far as the kinds use one. */
export interface StructuralSchema {
  readonly description?: string;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'boolean';
  readonly format?: 'int64' | 'date-time';
  readonly default?: unknown;
  readonly enum?: readonly string[];
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly maxProperties?: number;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, StructuralSchema>>;
  readonly additionalProperties?: StructuralSchema;
  readonly items?: StructuralSchema;
  readonly 'x-kubernetes-int-or-string'?: true;
  readonly 'x-kubernetes-preserve-unknown-fields'?: true;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular';
  readonly 'x-kubernetes-validations'?: readonly ApiServerRule[];
}

export interface ApiServerRule {
  readonly rule: string;
  readonly message: string;
  readonly fieldPath?: string;
}

/**
 * What a value must hold beyond its shape, written once for both judges: `cel` for the API server, `test` for everybody else.
 * The corpus in `test/corpus` proves that they agree.
 */
export interface Rule<T> {
  readonly cel: string;
  /** May be a block of code rather than an expression; true means that the rule holds. */
  readonly test: (self: T) => boolean;
  /** What must be, for whoever wrote the object. */
  readonly message: string;
  /** The field to blame, below the value that carries the rule, such as `.affinity`. */
  readonly field?: `.${string}`;
}

/** A schema of this dialect, for code that knows no schema library. */
export type Schema<T = unknown> = z.ZodType<T>;
export type Output<S extends Schema> = z.output<S>;

interface Described {
  readonly description: string;
}

interface Ruled<T> extends Described {
  readonly rules?: readonly Rule<T>[];
}

const structural = new WeakMap<z.core.$ZodType, { schema: StructuralSchema; optional: boolean }>();

/** The structural schema of a zod schema that this dialect made. */
export function structuralSchema(schema: z.core.$ZodType): StructuralSchema {
  return entryOf(schema).schema;
}

function entryOf(schema: z.core.$ZodType): { schema: StructuralSchema; optional: boolean } {
  const entry = structural.get(schema);
  if (!entry) throw new Error('a schema that was not made by the helpers of schema.ts');
  return entry;
}

/** A zod schema beside the structural schema that says the same; for what the helpers below cannot say, such as metadata. */
export function register<S extends z.core.$ZodType>(schema: S, entry: StructuralSchema, optional = false): S {
  structural.set(schema, { schema: entry, optional });
  return schema;
}

/** The issue of a rule that does not hold, at the field to blame. */
function withRules<S extends z.ZodType>(schema: S, rules: readonly Rule<z.output<S>>[] | undefined): S {
  return (rules ?? []).reduce<S>(
    (ruled, rule) =>
      ruled.refine((value) => rule.test(value), {
        error: rule.message,
        ...(rule.field ? { path: rule.field.slice(1).split('.') } : {}),
      }),
    schema,
  );
}

function validations(rules: readonly Rule<never>[] | undefined): Pick<StructuralSchema, 'x-kubernetes-validations'> {
  if (!rules?.length) return {};
  return {
    'x-kubernetes-validations': rules.map(({ cel, message, field }) => ({
      rule: cel,
      message,
      ...(field ? { fieldPath: field } : {}),
    })),
  };
}

export interface TextOptions extends Ruled<string> {
  /** Characters. Every text has a bound, or the cost of rules over it could not be known. */
  readonly max: number;
  readonly min?: number;
  /** Read by Go's RE2 and by JavaScript: only what both mean alike. It matches anywhere unless anchored. */
  readonly pattern?: RegExp;
  /** What the pattern asks for, for people. */
  readonly patternMessage?: string;
  readonly format?: 'date-time';
}

export function text(options: TextOptions): z.ZodString {
  const { description, max, min, pattern, patternMessage, format, rules } = options;
  let schema = z.string().refine((value) => length(value) <= max, { error: `at most ${max} characters` });
  if (min !== undefined)
    schema = schema.refine((value) => length(value) >= min, { error: `at least ${min} characters` });
  if (pattern) {
    schema = schema.refine((value) => pattern.test(value), { error: patternMessage ?? `must match ${pattern.source}` });
  }
  if (format) schema = schema.refine(isDateTime, { error: 'must be a date and time of RFC 3339' });
  return register(withRules(schema, rules), {
    description,
    type: 'string',
    ...(format ? { format } : {}),
    ...(min !== undefined ? { minLength: min } : {}),
    maxLength: max,
    ...(pattern ? { pattern: pattern.source } : {}),
    ...validations(rules),
  });
}

/** As the API server reads RFC 3339: `Date.parse` takes much else, and the 31st of April. */
function isDateTime(value: string): boolean {
  const [, year, month, day] =
    /^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$/.exec(
      value,
    ) ?? [];
  if (year === undefined) return false;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  return date.getUTCMonth() + 1 === Number(month) && date.getUTCDate() === Number(day);
}

function length(value: string): number {
  return [...value].length;
}

export function choice<const V extends readonly [string, ...string[]]>(values: V, { description }: Described) {
  return register(z.enum(values), { description, type: 'string', enum: values });
}

export interface IntegerOptions extends Ruled<number> {
  readonly min: number;
  readonly max: number;
}

export function integer({ description, min, max, rules }: IntegerOptions): z.ZodInt {
  return register(withRules(z.int().gte(min).lte(max), rules), {
    description,
    type: 'integer',
    format: 'int64',
    minimum: min,
    maximum: max,
    ...validations(rules),
  });
}

export function flag({ description }: Described): z.ZodBoolean {
  return register(z.boolean(), { description, type: 'boolean' });
}

/** Text or whole number, as Kubernetes writes quantities; a number is judged by the pattern in its decimal form, and is at least 1. */
export function intOrText({
  description,
  max,
  pattern,
  patternMessage,
}: Described & { readonly max: number; readonly pattern: RegExp; readonly patternMessage: string }) {
  const schema = z
    .union([z.string(), z.int()])
    .refine((value) => (typeof value === 'number' ? value >= 1 : length(value) <= max && pattern.test(value)), {
      error: patternMessage,
    });
  return register(schema, {
    description,
    'x-kubernetes-int-or-string': true,
    maxLength: max,
    pattern: pattern.source,
    minimum: 1,
  });
}

export interface ListOptions<T> extends Ruled<T[]> {
  readonly max: number;
  readonly min?: number;
  /** How server-side apply merges it: whole, by value, or by the fields that name an item. */
  readonly merge: 'atomic' | 'set' | { readonly by: readonly string[] };
}

export function list<I extends z.ZodType>(item: I, options: ListOptions<z.output<I>>): z.ZodArray<I> {
  const { description, max, min, merge, rules } = options;
  let schema = z.array(item).max(max);
  if (min !== undefined) schema = schema.min(min);
  if (merge !== 'atomic') {
    schema = schema.refine((items) => !hasDuplicates(items, merge === 'set' ? undefined : merge.by), {
      error: merge === 'set' ? 'holds a value twice' : `holds two items with one ${merge.by.join(', ')}`,
    });
  }
  return register(withRules(schema, rules), {
    description,
    type: 'array',
    ...(min !== undefined ? { minItems: min } : {}),
    maxItems: max,
    'x-kubernetes-list-type': typeof merge === 'string' ? merge : 'map',
    ...(typeof merge === 'string' ? {} : { 'x-kubernetes-list-map-keys': merge.by }),
    items: structuralSchema(item),
    ...validations(rules),
  });
}

function hasDuplicates(items: readonly unknown[], keys: readonly string[] | undefined): boolean {
  const names = items.map((item) =>
    JSON.stringify(keys && isRecord(item) ? keys.map((key) => item[key] ?? null) : (item ?? null)),
  );
  return new Set(names).size < names.length;
}

export interface MapOptions<T> extends Ruled<Record<string, T>> {
  readonly max: number;
}

export function map<V extends z.ZodType>(value: V, { description, max, rules }: MapOptions<z.output<V>>) {
  const schema = z
    .record(z.string(), value)
    .refine((entries) => Object.keys(entries).length <= max, { error: `at most ${max} entries` });
  return register(withRules(schema, rules), {
    description,
    type: 'object',
    maxProperties: max,
    additionalProperties: structuralSchema(value),
    ...validations(rules),
  });
}

type Fields = Readonly<Record<string, z.ZodType>>;

export function object<const F extends Fields>(
  fields: F,
  { description, rules, atomic }: Ruled<z.output<z.ZodObject<F>>> & { readonly atomic?: true },
): z.ZodObject<F> {
  const entries = Object.entries(fields).map(([name, field]) => [name, entryOf(field)] as const);
  const required = entries
    .filter(([, { schema, optional }]) => !optional && schema.default === undefined)
    .map(([name]) => name);
  const schema: z.ZodObject<F> = z.object(fields);
  return register(withRules(schema, rules), {
    description,
    type: 'object',
    ...(required.length > 0 ? { required } : {}),
    ...(atomic ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    properties: Object.fromEntries(entries.map(([name, { schema: field }]) => [name, field])),
    ...validations(rules),
  });
}

/** An object of any fields, kept as it is: for what another specification describes. */
export function anyObject({ description, max }: Described & { readonly max: number }) {
  const schema = z
    .record(z.string(), z.unknown())
    .refine((fields) => Object.keys(fields).length <= max, { error: `at most ${max} fields` });
  return register(schema, {
    description,
    type: 'object',
    maxProperties: max,
    'x-kubernetes-preserve-unknown-fields': true,
  });
}

/**
 * Likewise a JSON Schema, of an object: its `type` must say so. Its size is counted in characters of JSON; at the API server an
 * admission policy does that.
 */
export function objectSchema({
  description,
  max,
  maxSize,
}: Described & { readonly max: number; readonly maxSize: number }) {
  const schema = z
    .looseObject({ type: z.literal('object') })
    .refine((fields) => Object.keys(fields).length <= max, { error: `at most ${max} fields` })
    .refine((fields) => JSON.stringify(fields).length <= maxSize, { error: `at most ${maxSize} characters` });
  return register(schema, {
    description,
    type: 'object',
    required: ['type'],
    maxProperties: max,
    properties: { type: { description: 'Always `object`.', type: 'string', enum: ['object'] } },
    'x-kubernetes-preserve-unknown-fields': true,
  });
}

/** A field that may be left out, and then is absent to everybody. */
export function optional<S extends z.ZodType>(schema: S): z.ZodExactOptional<S> {
  return register(schema.exactOptional(), structuralSchema(schema), true);
}

/** A field that the API server fills in where it was left out, in the stored object too. */
export function withDefault<S extends z.ZodType>(schema: S, value: z.input<S> & z.core.util.NoUndefined<z.input<S>>) {
  return register(schema.prefault(value), { ...structuralSchema(schema), default: value });
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
