import { describe, expect, test } from 'vitest';
import { functionKind } from './functionKind.ts';
import { hashFunction, snapshotListing } from './snapshotListing.ts';

const TOOL = {
  name: 'get_pr',
  title: 'Get a pull request',
  description: 'Reads one.',
  inputSchema: {
    type: 'object',
    properties: {
      repo: { type: 'string', enum: ['a', 'b'], description: 'Which.' },
      number: { type: ['integer', 'null'], minimum: 1, default: { x: [1, 2] } },
      enum: { type: 'string' },
    },
    required: ['repo', 'number'],
  },
  outputSchema: { type: 'object', properties: { id: { type: 'integer' } } },
  annotations: { readOnlyHint: true },
  icons: [{ src: 'data:,x' }],
  _meta: { 'com.example/x': 1 },
};
type Json = Record<string, unknown>;
const copy = (): Json => JSON.parse(JSON.stringify(TOOL));

/** Every place of a value, as a path. */
function places(value: unknown, path: string[] = []): string[][] {
  if (typeof value !== 'object' || value === null) return [path];
  return [
    ...(path.length > 0 ? [path] : []),
    ...Object.entries(value).flatMap(([key, child]) => places(child, [...path, key])),
  ];
}

function change(path: string[], to: (value: unknown) => unknown): Json {
  const changed = copy();
  let at: Json = changed;
  for (const key of path.slice(0, -1)) at = at[key] as Json;
  const last = path.at(-1) ?? '';
  at[last] = to(at[last]);
  return changed;
}

describe('hash of a function', () => {
  test.each(places(TOOL).map((path) => [path.join('.'), path] as const))(
    '[case 49] a change of %s changes it',
    (_name, path) => {
      expect(hashFunction(change([...path], () => 'changed'))).not.toBe(hashFunction(TOOL));
    },
  );

  test.each<[string, (text: string) => string]>([
    ['order of keys', (text) => JSON.stringify(reversed(JSON.parse(text)))],
    ['number forms', (text) => text.replace('"minimum":1', '"minimum":1.0e0')],
    ['order of enum', (text) => text.replace('["a","b"]', '["b","a"]')],
    ['order of required', (text) => text.replace('["repo","number"]', '["number","repo"]')],
    ['order of types', (text) => text.replace('["integer","null"]', '["null","integer"]')],
    ['whitespace and escapes', (text) => JSON.stringify(JSON.parse(text), null, 3).replace('Reads', '\\u0052eads')],
  ])('[case 53] %s does not', (_name, rearrange) => {
    expect(hashFunction(JSON.parse(rearrange(JSON.stringify(TOOL))))).toBe(hashFunction(TOOL));
  });

  test('order counts in what is data', () => {
    expect(hashFunction(change(['inputSchema', 'properties', 'number', 'default', 'x'], () => [2, 1]))).not.toBe(
      hashFunction(TOOL),
    );
  });

  test('a property that is called like a keyword is a property', () => {
    const changed = change(['inputSchema', 'properties', 'enum', 'type'], () => 'number');
    expect(hashFunction(changed)).not.toBe(hashFunction(TOOL));
  });

  test('__proto__ is a key like others', () => {
    const one = JSON.parse('{"name":"a","inputSchema":{"properties":{"__proto__":{"type":"string"}}}}');
    const other = JSON.parse('{"name":"a","inputSchema":{"properties":{}}}');
    expect(hashFunction(one)).not.toBe(hashFunction(other));
  });
});

describe('listing', () => {
  test('[case 53] its order does not count; instructions do [case 49]', () => {
    const other = { ...TOOL, name: 'merge' };
    expect(snapshotListing([TOOL, other]).hash).toBe(snapshotListing([other, TOOL]).hash);
    expect(snapshotListing([TOOL], 'be kind').hash).not.toBe(snapshotListing([TOOL]).hash);
    expect(snapshotListing([TOOL]).hash).not.toBe(snapshotListing([TOOL, other]).hash);
  });

  test('[case 56] [I12] only what is broken is held back', () => {
    let deep: object = {};
    for (let at = 0; at < 5_000; at++) deep = { not: deep };
    const { functions, tools, heldBack } = snapshotListing([
      null,
      { name: '', inputSchema: {} },
      { name: 'no schema' },
      { name: 'line\nbreak', inputSchema: {} },
      { name: 'deep', inputSchema: deep },
      { name: 'twice', inputSchema: {} },
      { name: 'twice', inputSchema: {}, description: 'other' },
      TOOL,
    ]);
    expect(functions.map((each) => each.name)).toEqual(['get_pr']);
    expect(tools).toEqual([TOOL]);
    expect(heldBack).toHaveLength(6);
  });
});

test.each<[unknown, string]>([
  [undefined, 'Undeclared'],
  [{}, 'Undeclared'],
  [[], 'Undeclared'],
  ['readOnlyHint', 'Undeclared'],
  [{ readOnlyHint: true }, 'ReadOnly'],
  [{ readOnlyHint: true, destructiveHint: false }, 'ReadOnly'],
  [{ readOnlyHint: true, destructiveHint: true }, 'Destructive'],
  [{ readOnlyHint: 'true' }, 'Undeclared'],
  [{ readOnlyHint: null }, 'Undeclared'],
  [{ readOnlyHint: true, destructiveHint: 'true' }, 'Undeclared'],
  [{ readOnlyHint: 1, destructiveHint: false }, 'Undeclared'],
  [{ readOnlyHint: false }, 'Undeclared'],
  [{ readOnlyHint: false, destructiveHint: false }, 'Additive'],
  [{ destructiveHint: false }, 'Additive'],
  [{ destructiveHint: 'false' }, 'Undeclared'],
  [{ destructiveHint: true }, 'Destructive'],
  [{ idempotentHint: true }, 'Undeclared'],
])('[case 35] annotations %j are %s', (annotations, kind) => {
  expect(functionKind(annotations)).toBe(kind);
});

function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, child]) => [key, reversed(child)]),
  );
}
