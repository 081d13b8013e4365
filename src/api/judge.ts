/**
 * Judges objects as the API server does (strictly, with a person's mistakes named), and reads stored ones (leniently: fields
 * that this version does not know are left out, as a newer version may have written them).
 */
import type { z } from 'zod';
import { isRecord, type StructuralSchema, structuralSchema } from './schema.ts';

export interface Problem {
  /** `spec.tools[1].id`. */
  readonly field: string;
  readonly message: string;
}

export type Judged<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** The object with its defaults, or all that is wrong with it; an unknown field is wrong. */
export function judge<S extends z.ZodType>(schema: S, raw: unknown): Judged<z.output<S>> {
  const unknown = unknownFields(structuralSchema(schema), raw, '');
  const read = readStored(schema, raw);
  if (read.ok) return unknown.length > 0 ? { ok: false, problems: unknown } : read;
  return { ok: false, problems: [...unknown, ...read.problems] };
}

/** The object with its defaults and without what is unknown, or all that is wrong with the rest. */
export function readStored<S extends z.ZodType>(schema: S, raw: unknown): Judged<z.output<S>> {
  const result = schema.safeParse(withoutNulls(structuralSchema(schema), raw));
  if (result.success) return { ok: true, value: result.data };
  return {
    ok: false,
    problems: result.error.issues.map(({ path, message }) => ({ field: formatPath(path), message })),
  };
}

/** The API server takes a null for a field left out, in objects and maps but not in lists. */
function withoutNulls(schema: StructuralSchema, value: unknown): unknown {
  if (Array.isArray(value)) {
    return schema.items ? value.map((item) => withoutNulls(schema.items ?? {}, item)) : value;
  }
  if (!isRecord(value) || (!schema.properties && !schema.additionalProperties)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name, field]) => field !== null || !known(schema, name))
      .map(([name, field]) => [name, withoutNulls(known(schema, name) ?? {}, field)]),
  );
}

function known(schema: StructuralSchema, name: string): StructuralSchema | undefined {
  if (schema.properties) return Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
  return schema.additionalProperties;
}

function unknownFields(schema: StructuralSchema, value: unknown, path: string): Problem[] {
  if (Array.isArray(value)) {
    return value.flatMap((item, index) => unknownFields(schema.items ?? {}, item, `${path}[${index}]`));
  }
  // An object without properties is one whose fields are not ours to judge, such as metadata.
  if (!isRecord(value) || (!schema.properties && !schema.additionalProperties)) return [];
  if (schema['x-kubernetes-preserve-unknown-fields']) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const below = path === '' ? name : `${path}.${name}`;
    const fieldSchema = known(schema, name);
    return fieldSchema ? unknownFields(fieldSchema, field, below) : [{ field: below, message: 'unknown field' }];
  });
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}
