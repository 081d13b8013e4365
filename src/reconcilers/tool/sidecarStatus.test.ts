import { expect, test } from 'vitest';
import { anAnswer } from '../testing/tools.ts';
import { readSidecarStatus } from './sidecarStatus.ts';

test('a whole answer is read as it is', () => {
  const answer = anAnswer({ problem: 'x', process: { starts: 2, lastExit: 'exit code 1' } });
  expect(readSidecarStatus(JSON.parse(JSON.stringify(answer)))).toEqual(answer);
});

test('what a sidecar does not know is unknown', () => {
  const { sandbox } =
    readSidecarStatus({ ...anAnswer(), sandbox: { holds: true, open: ['a', 7], pidsLimit: 'x' } }) ?? {};
  expect(sandbox).toEqual({ holds: true, open: ['a'], userNamespace: 'unknown', pidsLimit: 'unknown' });
});

test('[I4] [case 83] of secrets a name and a known problem, and nothing else', () => {
  const problems = [
    { name: 'TOKEN', problem: 'missing', value: 'hunter2' },
    { name: 'B', problem: 'hunter2' },
    { problem: 'empty' },
    'hunter2',
  ];
  const read = readSidecarStatus({ ...anAnswer(), secrets: { problems, values: ['hunter2'] } });
  expect(read?.secrets).toEqual({ problems: [{ name: 'TOKEN', problem: 'missing' }] });
  expect(readSidecarStatus({ ...anAnswer(), secrets: 'x' })).not.toHaveProperty('secrets');
});

test.for<[string, unknown]>([
  ['nothing', undefined],
  ['text', 'ok'],
  ['no pod', { ...anAnswer(), podUid: 7 }],
  ['another phase', { ...anAnswer(), phase: 'Well' }],
  ['no word of the sandbox', { ...anAnswer(), sandbox: {} }],
  ['a listing without hash', { ...anAnswer(), listing: { functions: [] } }],
  ['a function without kind', { ...anAnswer(), listing: { hash: 'h', functions: [{ name: 'a', hash: 'h' }] } }],
  [
    'a function of another kind',
    { ...anAnswer(), listing: { hash: 'h', functions: [{ name: 'a', hash: 'h', kind: 'Safe' }] } },
  ],
])('[I9] %s is no status', ([, answer]) => {
  expect(readSidecarStatus(answer)).toBeUndefined();
});
