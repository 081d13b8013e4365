import { expect, test } from 'vitest';
import { createKeptResults } from './keptResults.ts';

const result = (chars: number) => ({
  target: { toolId: 'gh', functionName: 'read' },
  outside: false,
  parts: ['x'.repeat(chars)],
});

test('[R12] [I12] nobody reads another’s, and for a while only', () => {
  let now = 0;
  const kept = createKeptResults({ lifetimeMs: 100, readerMs: 1_000, now: () => now });
  const name = kept.keep('acme/bot', result(10)) ?? '';
  expect(kept.read('acme/bot', name)?.parts).toEqual(['x'.repeat(10)]);
  expect([kept.read('acme/clerk', name), kept.read('acme/bot', 'x'), kept.hasReader('acme/clerk')]).toEqual([
    undefined,
    undefined,
    false,
  ]);
  now = 100;
  expect([kept.read('acme/bot', name), kept.hasReader('acme/bot')]).toEqual([undefined, true]);
  now = 1_000;
  expect(kept.hasReader('acme/bot')).toBe(false);
});

test('[R12] [I12] one account’s results push out its own, oldest first; what is too large is not kept', () => {
  const kept = createKeptResults({ charsPerAccount: 100, chars: 1_000 });
  const names = [40, 40, 40].map((chars) => kept.keep('acme/bot', result(chars)) ?? '');
  const other = kept.keep('acme/clerk', result(90)) ?? '';
  expect(names.map((name) => kept.read('acme/bot', name) !== undefined)).toEqual([false, true, true]);
  expect(kept.read('acme/clerk', other)).toBeDefined();
  expect(kept.keep('acme/bot', result(101))).toBeUndefined();
  expect(kept.size()).toBe(170);
});

test('[R12] [I12] there is a bound on all of them', () => {
  const kept = createKeptResults({ charsPerAccount: 100, chars: 250 });
  for (const account of ['a', 'b', 'c', 'd']) kept.keep(account, result(90));
  expect(kept.size()).toBe(180);
});

test('[R12] who may read on for the first time is told of', () => {
  const kept = createKeptResults();
  const told: string[] = [];
  kept.onChange((account) => told.push(account));
  kept.keep('a', result(1));
  kept.keep('a', result(1));
  expect(told).toEqual(['a']);
});
