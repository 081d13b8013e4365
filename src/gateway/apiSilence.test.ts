import { expect, test } from 'vitest';
import { watchApiSilence } from './apiSilence.ts';

test('[Y06] silent once nothing was answered for so long, and heard again with the first answer', async () => {
  const stop = new AbortController();
  let now = 0;
  let answers = true;
  let asked = 0;
  const silence = watchApiSilence({
    ask: () => {
      asked += 1;
      return answers ? Promise.resolve() : Promise.reject(new Error('no'));
    },
    signal: stop.signal,
    intervalMs: 1,
    silentAfterMs: 30_000,
    now: () => now,
  });
  const someAsked = async (): Promise<void> => {
    const from = asked;
    while (asked < from + 2) await new Promise((resolve) => setTimeout(resolve, 1));
  };
  await someAsked();
  now = 30_000;
  answers = false;
  expect(silence.silent()).toBe(false);
  await someAsked();
  now = 60_001;
  expect(silence.silent()).toBe(true);
  answers = true;
  await someAsked();
  expect(silence.silent()).toBe(false);
  stop.abort();
  await silence.ended;
});

test('[Y06] an answer that took long says how it was when it was asked for', async () => {
  const stop = new AbortController();
  let now = 0;
  const answer = Promise.withResolvers<void>();
  const silence = watchApiSilence({ ask: () => answer.promise, signal: stop.signal, now: () => now });
  now = 31_000;
  answer.resolve();
  await new Promise((resolve) => setImmediate(resolve));
  expect(silence.silent()).toBe(true);
  stop.abort();
  await silence.ended;
});

test('a request that is never answered is given up', async () => {
  const stop = new AbortController();
  let given = 0;
  const silence = watchApiSilence({
    ask: (signal) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => {
          given += 1;
          reject(signal.reason);
        });
      }),
    signal: stop.signal,
    intervalMs: 1,
    timeoutMs: 1,
  });
  while (given < 2) await new Promise((resolve) => setTimeout(resolve, 1));
  stop.abort();
  await silence.ended;
});
