import { expect, test } from 'vitest';
import { jobKey, jobOf } from './job.ts';
import { createJobLabels, OUTSIDE } from './jobLabels.ts';

test('[Y07] a job that read outside text is labelled until its time is over, and no other', () => {
  let now = 0;
  const labels = createJobLabels({ lifetimeMs: 100, now: () => now });
  labels.readOutside('acme/bot', 'a');
  expect([labels.of('acme/bot', 'a'), labels.of('acme/bot', 'b'), labels.of('acme/clerk', 'a')]).toEqual([
    [OUTSIDE],
    [],
    [],
  ]);
  now = 60;
  labels.readOutside('acme/bot', 'a');
  now = 150;
  expect(labels.of('acme/bot', 'a')).toEqual([OUTSIDE]);
  now = 160;
  expect(labels.of('acme/bot', 'a')).toEqual([]);
  labels.readOutside('acme/bot', 'c');
  expect(labels.size()).toBe(1);
});

test('[Y07] [I12] where one had to be forgotten, unknown jobs of that account count as labelled, until it would have ended', () => {
  let now = 0;
  const labels = createJobLabels({ jobsPerAccount: 2, lifetimeMs: 100, now: () => now });
  for (const [index, job] of ['a', 'b', 'c'].entries()) {
    now = index;
    labels.readOutside('acme/bot', job);
  }
  expect(labels.size()).toBe(2);
  expect([labels.of('acme/bot', 'a'), labels.of('acme/bot', 'x'), labels.of('acme/clerk', 'x')]).toEqual([
    [OUTSIDE],
    [OUTSIDE],
    [],
  ]);
  now = 100;
  expect([labels.of('acme/bot', 'x'), labels.of('acme/bot', 'c')]).toEqual([[], [OUTSIDE]]);
});

test('[Y07] [I12] where an account had to be forgotten, unknown jobs of every account count as labelled', () => {
  let now = 0;
  const labels = createJobLabels({ accounts: 2, lifetimeMs: 100, now: () => now });
  for (const account of ['one', 'two', 'three']) labels.readOutside(account, 'a');
  expect([labels.size(), labels.of('one', 'a'), labels.of('four', 'a')]).toEqual([2, [OUTSIDE], [OUTSIDE]]);
  labels.readOutside('four', 'b');
  expect(labels.of('four', 'a')).toEqual([OUTSIDE]);
  now = 100;
  expect(labels.of('one', 'a')).toEqual([]);
});

const principal = { namespace: 'acme', serviceAccount: 'bot', podUid: 'p', node: 'n' };
const cases: [string, object, boolean, object, string][] = [
  ['nothing said', {}, false, { proved: false }, 'pod p'],
  ['named', { 'ai.oz0/job-id': 'j-1' }, false, { id: 'j-1', proved: false }, 'job j-1'],
  ['a name that breaks lines', { 'ai.oz0/job-id': 'j\n1' }, false, { proved: false }, 'pod p'],
  ['a name of another type', { 'ai.oz0/job-id': 7 }, false, { proved: false }, 'pod p'],
  ['too long', { 'ai.oz0/job-id': 'j'.repeat(129) }, false, { proved: false }, 'pod p'],
  ['a starter, believed', { 'ai.oz0/job-started-by': 'jane@x' }, true, { startedBy: 'jane@x', proved: true }, 'pod p'],
  [
    'a starter, not believed',
    { 'ai.oz0/job-started-by': 'jane' },
    false,
    { startedBy: 'jane', proved: false },
    'pod p',
  ],
  ['no starter proves nothing', {}, true, { proved: false }, 'pod p'],
  ['a starter with a space', { 'ai.oz0/job-started-by': 'a b' }, true, { proved: false }, 'pod p'],
];
test.each(cases)('[Y02] [case 129] a job as the agent says it: %s', (_, meta, believed, job, key) => {
  const read = jobOf(meta as never, believed);
  expect(read).toEqual(job);
  expect(jobKey(principal, read)).toBe(key);
});
