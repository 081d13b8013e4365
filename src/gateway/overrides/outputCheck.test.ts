import { describe, expect, test } from 'vitest';
import { compileOutputCheck } from './outputCheck.ts';

function checkOf(schema: unknown): (value: unknown) => string | undefined {
  const compiled = compileOutputCheck(schema);
  if (!compiled.ok) throw new Error(compiled.problem);
  return compiled.check;
}

const issue = {
  type: 'object',
  required: ['id'],
  properties: {
    id: { type: 'integer' },
    labels: { type: 'array', items: { enum: ['bug', 'idea'] }, uniqueItems: true },
  },
};

describe('a structured result against the schema of its Tool', () => {
  const cases: [string, unknown, unknown, string | undefined][] = [
    ['matches', issue, { id: 1, labels: ['bug'] }, undefined],
    ['a number as text', issue, { id: '1' }, '/id must be integer'],
    ['a missing property', issue, {}, "the result must have required property 'id'"],
    ['none of the allowed values', issue, { id: 1, labels: ['x'] }, '/labels/0 must be one of the allowed values'],
    ['an item twice', issue, { id: 1, labels: ['bug', 'bug'] }, '/labels must not hold the same item twice'],
    ['a list for an object', issue, [], 'the result must be object'],
    [
      'an inherited name is no property',
      { required: ['toString'] },
      {},
      "the result must have required property 'toString'",
    ],
    ['a pattern', { properties: { a: { pattern: '^\\d+$' } } }, { a: 'x' }, '/a must match pattern "^\\d+$"'],
    ['a pattern with a code point', { properties: { a: { pattern: '^\\u0041$' } } }, { a: 'A' }, undefined],
    ['names by pattern', { patternProperties: { '^x-': { type: 'string' } } }, { 'x-a': 1 }, '/x-a must be string'],
    [
      'what nobody named',
      { properties: { a: true }, unevaluatedProperties: false },
      { a: 1, b: 2 },
      'the result must NOT have unevaluated properties',
    ],
    [
      'a reference',
      { $defs: { n: { type: 'number' } }, properties: { a: { $ref: '#/$defs/n' } } },
      { a: '' },
      '/a must be number',
    ],
    [
      'a tree',
      { properties: { sub: { items: { $ref: '#' } }, n: { type: 'number' } } },
      { sub: [{ sub: [{ n: '' }] }] },
      '/sub/0/sub/0/n must be number',
    ],
    ['an enum of objects, in any order of keys', { enum: [{ a: 1, b: 2 }] }, { b: 2, a: 1 }, undefined],
    ['unknown formats and keywords say nothing', { format: 'x', 'x-y': 1 }, {}, undefined],
  ];
  test.each(cases)('[P07] %s', (_, schema, value, problem) => {
    expect(checkOf(schema)(value)).toBe(problem);
  });

  const broken: [string, unknown, RegExp][] = [
    ['no schema', 7, /not an object/],
    ['a type that is none', { type: 'strin' }, /type/],
    ['a keyword of the wrong type', { properties: { a: { maxLength: 'x' } } }, /maxLength/],
    ['code for a number', { maximum: '1);process.exit(1' }, /maximum/],
    ['a reference to elsewhere', { $ref: 'https://schemas.example/x' }, /out of the schema/],
    ['a reference to nothing', { $ref: '#/$defs/x' }, /leads nowhere/],
    ['a reference by an anchor that is not there', { $ref: '#x' }, /resolve|reference/],
    ['another dialect', { $schema: 'http://json-schema.org/draft-07/schema#' }, /2020-12/],
    ['a pattern that looks back', { pattern: '(a)\\1' }, /RE2/],
    ['a pattern that looks ahead', { pattern: '^(?=a)' }, /RE2/],
    ['a pattern that becomes large', { pattern: '((a{100}){10}){10}' }, /repeat|RE2/],
    ['too many parts', { allOf: Array.from({ length: 1_001 }, () => ({})) }, /1000 parts/],
    ['too long', { description: 'x'.repeat(70_000) }, /characters/],
  ];
  test.each(broken)('[P07] [I9] refused: %s', (_, schema, problem) => {
    const compiled = compileOutputCheck(schema);
    expect(compiled.ok ? 'compiled' : compiled.problem).toMatch(problem);
  });

  const deep = (levels: number): unknown => (levels === 0 ? {} : { a: deep(levels - 1) });
  const doubling = Object.fromEntries(
    Array.from({ length: 40 }, (_, n) => [
      `d${n}`,
      { allOf: [{ $ref: `#/$defs/d${n + 1}` }, { $ref: `#/$defs/d${n + 1}` }] },
    ]),
  );
  const hostile: [string, unknown, unknown][] = [
    ['a reference to itself', { $ref: '#' }, {}],
    ['references that double', { $defs: { ...doubling, d40: { type: 'object' } }, $ref: '#/$defs/d0' }, {}],
    [
      'a tree that doubles with each level of the result',
      { properties: { a: { allOf: [{ $ref: '#' }, { $ref: '#' }] } } },
      deep(80),
    ],
    [
      'many names against many patterns',
      { patternProperties: Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`^x.*${n}$`, {}])) },
      Object.fromEntries(Array.from({ length: 20_000 }, (_, n) => [`x${'y'.repeat(40)}${n}`, 1])),
    ],
    [
      'a long text against a large pattern',
      { items: { pattern: `^(?:(?:a|b|ab){1,20}){20}c$` } },
      ['ab'.repeat(500_000)],
    ],
  ];
  test.each(hostile)('[I12] ends in a bounded number of steps: %s', (_, schema, value) => {
    expect(checkOf(schema)(value)).toBe('it is too large to be checked');
  });

  test('a large result that matches is checked to its end', () => {
    const rows = Array.from({ length: 20_000 }, (_, id) => ({ id, labels: ['bug'] }));
    expect(checkOf({ type: 'array', items: issue })(rows)).toBeUndefined();
    expect(checkOf({ type: 'array', uniqueItems: true })(rows)).toBeUndefined();
  });
});
