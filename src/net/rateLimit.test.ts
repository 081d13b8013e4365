import { expect, test } from 'vitest';
import { createRateLimit } from './rateLimit.ts';

test('a burst, then a rate, for each key', () => {
  let now = 0;
  const limit = createRateLimit(3, 60, 100, () => now);
  const takes = (key: string, count: number) =>
    Array.from({ length: count }, () => limit.take(key)).filter(Boolean).length;
  expect(takes('a', 10)).toBe(3);
  expect(takes('b', 1)).toBe(1);
  now = 2_000;
  expect(takes('a', 10)).toBe(2);
  now = 1_000_000;
  expect(takes('a', 10)).toBe(3);
});

test('keys are bounded; the one unused for longest is forgotten', () => {
  const limit = createRateLimit(1, 1, 2, () => 0);
  for (const key of ['a', 'b', 'a', 'c']) limit.take(key);
  expect(limit.take('a')).toBe(false);
  expect(limit.take('b')).toBe(true);
});
