import { describe, expect, test } from 'vitest';
import { jsonDepth, MAX_JSON_DEPTH, parseJson } from './jsonText.ts';

describe('the depth of a text', () => {
  test.each([
    ['1', 0],
    ['{}', 1],
    ['[[],{}]', 2],
    ['{"a":"[[[[\\"[[["}', 1],
    ['["\\\\",[1]]', 2],
    ['["\\\\\\"[",[1]]', 2],
    ['{"[":{"{":[]}}', 3],
    ['"unended [[[', 0],
    [']]]][', 0],
  ])('%s', (text, depth) => {
    expect(jsonDepth(text)).toBe(depth);
  });
});

describe('what is refused', () => {
  const nested = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;

  test('what is nested deeper than may be, before it is parsed; what is as deep as may be is not', () => {
    expect(parseJson(nested(MAX_JSON_DEPTH))).toMatchObject({ ok: true });
    expect(parseJson(nested(MAX_JSON_DEPTH + 1))).toMatchObject({ ok: false });
    expect(parseJson(nested(2_000_000))).toMatchObject({ ok: false });
  });

  test.each(['', '{', '01', '{"a":1,}', 'NaN'])('%j is not JSON', (text) => {
    expect(parseJson(text)).toEqual({ ok: false, problem: 'not JSON' });
  });
});

describe('numbers that would be written as others', () => {
  test.each(['12345678901234567890', '-9007199254740993', '[1,9007199254740993]', '1e400', '-1e999'])('%s', (text) => {
    expect(parseJson(text)).toMatchObject({ ok: true, inexact: expect.any(String) });
  });

  test.each([
    '9007199254740991',
    '9007199254740992',
    '100000000000000000000',
    '1e21',
    '1.5e300',
    '0.1000000000000000055',
    '-0',
    '0.0000',
    '"12345678901234567890"',
    '{"12345678901234567890":1}',
  ])('%s is none', (text) => {
    expect(parseJson(text)).toMatchObject({ ok: true, inexact: undefined });
  });

  test('what is passed on is read again without complaint', () => {
    for (const value of [1e20, 123456789012345680000, 2 ** 60, -(2 ** 64), 1e21, 5e-324, Number.MAX_VALUE]) {
      expect(parseJson(JSON.stringify(value))).toMatchObject({ ok: true, inexact: undefined });
    }
  });
});

test('four megabytes are looked at in a moment', () => {
  for (const text of [
    '"\\'.repeat(2_000_000),
    '\\'.repeat(4_000_000),
    `"${'\\'.repeat(4_000_000)}"`,
    '1'.repeat(4_000_000),
  ]) {
    const began = performance.now();
    jsonDepth(text);
    expect(performance.now() - began).toBeLessThan(10_000);
  }
});
