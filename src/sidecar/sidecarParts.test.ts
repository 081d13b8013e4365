import { createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { answerOf } from './answers.ts';
import { decideCall } from './decideCall.ts';
import { createNoiseGate } from './noiseGate.ts';
import { type SandboxState, watchSandbox } from './sandbox.ts';
import { readSettings } from './settings.ts';
import { createStderrTail } from './stderrTail.ts';
import { startOrder } from './toolProcess.ts';
import { parseAddress } from './trustFolder.ts';

const CONFIG = {
  namespace: 'team',
  tool: 'search',
  argv: ['a'],
  env: {},
  timeoutMs: 1_000,
  concurrency: 1,
  maxMessageBytes: 1_000,
};

describe('settings', () => {
  test('are read whole', () => {
    expect(readSettings(JSON.stringify(CONFIG))).toEqual({ ...CONFIG, secrets: [], bindings: [], hosts: [] });
  });
  test.each<[string, object]>([
    ['argv', { argv: [] }],
    ['argv', { argv: [1] }],
    ['env', { env: { A: 1 } }],
    ['cwd', { cwd: 1 }],
    ['tool', { tool: '' }],
    ['timeoutMs', { timeoutMs: 2 ** 31 }],
    ['concurrency', { concurrency: 0 }],
    ['maxMessageBytes', { maxMessageBytes: 1.5 }],
  ])('a wrong %s is named', (name, wrong) => {
    expect(() => readSettings(JSON.stringify({ ...CONFIG, ...wrong }))).toThrow(name);
  });
  test.each([undefined, '', '{', '[]'])('%j is refused', (text) => {
    expect(() => readSettings(text)).toThrow('OZ0_SIDECAR');
  });
});

describe('addresses of walls', () => {
  test('of both families', () => {
    expect(parseAddress('10.96.0.1:443')).toEqual({ host: '10.96.0.1', port: 443 });
    expect(parseAddress('[fd00::1]:443')).toEqual({ host: 'fd00::1', port: 443 });
  });
  test.each(['kubernetes:443', '10.96.0.1', '10.96.0.256:443', '1:443', '10.0.0.1:0', '10.0.0.1:65536', 1, null])(
    '%j is refused',
    (text) => {
      expect(() => parseAddress(text)).toThrow('not an address');
    },
  );
});

test.each<[string, Partial<Parameters<typeof decideCall>[0]>, string]>([
  ['a free slot', {}, 'start'],
  ['no free slot', { running: 2 }, 'busy'],
  ['starting', { process: 'starting' }, 'not-ready'],
  ['condemned', { condemned: true, running: 2 }, 'not-ready'],
  ['down', { process: 'down' }, 'down'],
  ['the pod ends', { refusing: true, process: 'down' }, 'draining'],
  ['the grant ran out', { expired: true, process: 'down' }, 'grant-expired'],
  ['another definition', { otherDefinition: true, running: 2 }, 'definition-changed'],
])('[R09] a call: %s', (_name, state, expected) => {
  const decision = decideCall({
    refusing: false,
    expired: false,
    process: 'ready',
    condemned: false,
    otherDefinition: false,
    running: 1,
    concurrency: 2,
    ...state,
  });
  expect(decision.kind === 'start' ? 'start' : decision.reason).toBe(expected);
});

describe('answers', () => {
  test('a tool’s own outcome, in any case, is not passed on', () => {
    const error = { code: -1, message: 'x'.repeat(5_000), data: { 'AI.oz0/Outcome': 'not-started', own: 1 } };
    const answer = answerOf({ kind: 'error', error });
    expect(answer).toMatchObject({ error: { code: -1, data: { own: 1 } } });
    expect(JSON.stringify(answer).length).toBeLessThan(4_200);
    expect(JSON.stringify(answer)).not.toContain('utcome');
  });
  test('a result that is not the end of the call is none', () => {
    expect(answerOf({ kind: 'result', result: { resultType: 'input_required' } })).toMatchObject({ kind: 'error' });
  });
  test.each([
    ['timeout', { kind: 'unknown', reason: 'timeout' }, 'unknown'],
    ['process-ended', { kind: 'unknown', reason: 'process-ended' }, 'unknown'],
    ['busy', { kind: 'refused', reason: 'busy' }, 'not-started'],
  ] as const)('%s', (reason, outcome, said) => {
    expect(answerOf(outcome)).toMatchObject({ error: { data: { 'ai.oz0/outcome': said, reason } } });
  });
});

describe('stderr', () => {
  test('[case 129] the last lines are kept, bounded, without control characters', () => {
    const logged: string[] = [];
    const tail = createStderrTail(
      (_level, _message, fields) => logged.push(String(fields?.['line'])),
      () => 0,
    );
    for (let at = 0; at < 1_000; at++) tail.push(Buffer.from(`line ${at} \u001b[31m\u202e${'x'.repeat(1_000)}\r\n`));
    tail.push(Buffer.from('last words'));
    expect(tail.lines()).toHaveLength(21);
    expect(tail.lines().at(-1)).toBe('last words');
    expect(tail.lines()[0]).toContain('line 980 \\u001b[31m\\u202e');
    expect(Math.max(...tail.lines().map((line) => line.length))).toBeLessThan(400);
    expect(logged).toHaveLength(20);
  });
  test('a line without end is not kept whole', () => {
    const tail = createStderrTail(() => {});
    for (let at = 0; at < 100; at++) tail.push(Buffer.alloc(65_536, 'x'));
    expect(tail.lines().join('').length).toBeLessThan(400);
  });
});

test('[S08] noise over its allowance pauses reading until the second is over', async () => {
  let at = 1_000_000;
  const said: string[] = [];
  const gate = createNoiseGate(
    () => said.push('pause'),
    () => said.push('resume'),
    () => at,
  );
  gate.add(500_000);
  expect(said).toEqual([]);
  at += 900;
  gate.add(600_000);
  gate.add(600_000);
  expect(said).toEqual(['pause']);
  await expect.poll(() => said).toEqual(['pause', 'resume']);
  gate.close();
});

test('[S02] the environment: what the image and the configuration say, and no more', () => {
  const hello = { path: '', home: '/', lang: '', terminating: false };
  expect(startOrder({ ...CONFIG, env: { A: 'b', HOME: '/data' } }, { hello }).env).toEqual({
    HOME: '/data',
    LANG: 'C.UTF-8',
    TMPDIR: '/tmp',
    A: 'b',
  });
  const image = { path: '/bin', home: '/home/x', lang: 'de_DE.UTF-8', terminating: false };
  expect(startOrder(CONFIG, { hello: image }).env).toEqual({
    PATH: '/bin',
    HOME: '/home/x',
    LANG: 'de_DE.UTF-8',
    TMPDIR: '/tmp',
  });
});

describe('the sandbox’s proof', () => {
  const timing = { connectMs: 100, rounds: 3, betweenMs: 5, everyMs: 5 };
  async function address(): Promise<{ host: string; port: number; close: () => void }> {
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const bound = server.address();
    const port = typeof bound === 'object' && bound !== null ? bound.port : 0;
    return { host: '127.0.0.1', port, close: () => server.close() };
  }
  const CLOSED = { host: '127.0.0.1', port: 1 };

  test('[I11] [case 96] traffic that passes in the first moments does not count as a wall', async () => {
    const door = await address();
    const wall = await address();
    const states: SandboxState[] = [];
    const abort = new AbortController();
    let rounds = 0;
    const watching = watchSandbox({
      walls: async () => {
        rounds++;
        // Closed, closed, open, then closed for good.
        return { closed: [rounds === 3 ? wall : CLOSED], open: door };
      },
      onChange: (state) => states.push(state),
      signal: abort.signal,
      timing,
    });
    await expect.poll(() => states.at(-1)?.kind).toBe('holds');
    abort.abort();
    await watching;
    expect(states.map((state) => state.kind)).toEqual(['unproved', 'open', 'unproved', 'holds']);
    expect(rounds).toBeGreaterThanOrEqual(6);
    door.close();
    wall.close();
  });

  test('without walls to look at, or with a closed door, nothing is proved', async () => {
    for (const walls of [
      async () => {
        throw new Error('no file');
      },
      async () => ({ closed: [CLOSED], open: CLOSED }),
    ]) {
      const states: SandboxState[] = [];
      const abort = new AbortController();
      const watching = watchSandbox({ walls, onChange: (state) => states.push(state), signal: abort.signal, timing });
      await new Promise((resolve) => setTimeout(resolve, 200));
      abort.abort();
      await watching;
      expect(states.map((state) => state.kind)).toEqual(['unproved']);
    }
  });
});
