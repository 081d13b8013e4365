import { describe, expect, test } from 'vitest';
import { crd } from './crd.ts';
import { parseDuration } from './duration.ts';
import { KINDS } from './kinds.ts';
import { parseQuantity } from './quantity.ts';
import { type StructuralSchema, structuralSchema } from './schema.ts';

function* fields(schema: StructuralSchema, path: string): Generator<[string, StructuralSchema]> {
  yield [path, schema];
  for (const [name, field] of Object.entries(schema.properties ?? {})) yield* fields(field, `${path}.${name}`);
  if (schema.items) yield* fields(schema.items, `${path}[]`);
  if (schema.additionalProperties) yield* fields(schema.additionalProperties, `${path}{}`);
}

const OF_KUBERNETES = /^\w+(\.apiVersion|\.kind|\.metadata)$/;

describe.for(KINDS)('[D03] $kind', (kind) => {
  const all = [...fields(structuralSchema(kind.schema), kind.kind)].filter(([path]) => !OF_KUBERNETES.test(path));

  test('every field is described', () => {
    expect(all.filter(([, { description }]) => !description).map(([path]) => path)).toEqual([]);
  });

  test('every text, list and map has a bound, so that the cost of rules is known', () => {
    const unbounded = all.filter(([, schema]) => {
      if (schema.type === 'string') return schema.maxLength === undefined && schema.enum === undefined;
      if (schema.type === 'array') return schema.maxItems === undefined;
      return schema.additionalProperties !== undefined && schema.maxProperties === undefined;
    });
    expect(unbounded.map(([path]) => path)).toEqual([]);
  });

  test('no rule holds a backslash, which CEL and YAML would each read in their own way', () => {
    const rules = all.flatMap(([, schema]) => schema['x-kubernetes-validations'] ?? []);
    expect(rules.filter(({ rule }) => rule.includes('\\'))).toEqual([]);
  });

  test('[O04] kubectl shows what a person looks for first', () => {
    const names = kind.columns.filter(({ wide }) => !wide).map(({ name }) => name);
    // A Stop is in force because it exists; a ToolCall has a phase; a ToolListing only is.
    const others: Record<string, string[]> = { Stop: ['Because'], ToolCall: ['Phase'], ToolListing: ['Hash'] };
    const verdict = others[kind.kind] ?? ['Ready', 'Reason'];
    expect(names).toEqual(expect.arrayContaining([...verdict, 'Age']));
    expect(crd(kind)).toMatchObject({ spec: { names: { shortNames: [expect.any(String)], categories: ['oz0'] } } });
  });
});

test.for([
  ['1', 1_000_000_000n],
  [2, 2_000_000_000n],
  ['50m', 50_000_000n],
  ['0.5', 500_000_000n],
  ['1.5Ki', 1_536_000_000_000n],
  ['1M', 1_000_000_000_000_000n],
  ['x', undefined],
  ['-1', undefined],
] as const)('quantity %s', ([text, billionths]) => {
  expect(parseQuantity(text)).toBe(billionths);
});

test.for([
  ['90s', 90_000],
  ['1m30s', 90_000],
  ['1h', 3_600_000],
  ['', undefined],
  ['1.5s', undefined],
] as const)('duration %s', ([text, ms]) => {
  expect(parseDuration(text)).toBe(ms);
});
