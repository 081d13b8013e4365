import { expect, test } from 'vitest';
import { createBreaker } from './breaker.ts';

function breaker() {
  let ms = 0;
  const made = createBreaker({ failures: 3, slowMs: 100, pauseMs: 1_000, now: () => ms });
  const request = (how: 'ok' | 'bad', tookMs = 1): void => {
    const ended = made.begin();
    ms += tookMs;
    ended(how);
  };
  return { made, request, pass: (by: number) => (ms += by) };
}

test('so many failures in a row open it, and one that goes well forgets them', () => {
  const { made, request } = breaker();
  request('bad');
  request('bad');
  request('ok');
  request('bad');
  request('bad');
  expect(made.closed()).toBe(true);
  request('bad');
  expect(made.closed()).toBe(false);
});

test('slow is as bad as failed', () => {
  const { made, request } = breaker();
  for (let times = 0; times < 3; times += 1) request('ok', 200);
  expect(made.closed()).toBe(false);
});

test('after a pause one is let through, and the others wait for what comes of it', () => {
  const { made, request, pass } = breaker();
  for (let times = 0; times < 3; times += 1) request('bad');
  pass(1_000);
  expect(made.closed()).toBe(true);
  expect(made.closed()).toBe(false);
  request('bad');
  expect(made.closed()).toBe(false);
  pass(1_000);
  expect(made.closed()).toBe(true);
  request('ok');
  expect(made.closed()).toBe(true);
  expect(made.closed()).toBe(true);
});
