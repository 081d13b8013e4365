import { describe, expect, it } from 'vitest';
import { oneLine } from './api-error.ts';
import { backoffMs } from './backoff.ts';

describe('oneLine', () => {
  it.each([
    ['a\r\n\tb', 10, 'a b'],
    ['  a  ', 10, 'a'],
    ['abcdef', 6, 'abcdef'],
    ['abcdefg', 6, 'abcde…'],
    ['abcd😀g', 6, 'abcd…'],
    ['a\u2028b\u0085c', 10, 'a b c'],
  ])('%j at %i: %j', (text, limit, expected) => {
    expect(oneLine(text, limit)).toBe(expected);
  });
});

describe('backoffMs', () => {
  it('doubles up to its bound, spread by a half either way', () => {
    const limits = { firstMs: 800, maxMs: 30_000 };
    expect([1, 2, 3, 6, 7, 1000].map((n) => backoffMs(n, limits, () => 0.5))).toEqual([
      800, 1600, 3200, 25600, 30000, 30000,
    ]);
    expect(backoffMs(1, limits, () => 0)).toBe(400);
    expect(backoffMs(9, limits, () => 0.99)).toBe(30_000);
  });
});
