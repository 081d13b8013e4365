/** Tool pods with servers that misbehave, through the real launcher and real TLS. What a tool did is read from its own log. */
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { listenHop } from '../../../src/mcp/hop.ts';
import {
  buildLauncher,
  eventually,
  openAddress,
  type Pod,
  type PodOptions,
  startPod,
  startTestCluster,
} from './pod.ts';

let cluster: Awaited<ReturnType<typeof startTestCluster>>;
let launcher: string;
const pods: Pod[] = [];
beforeAll(async () => {
  launcher = buildLauncher();
  cluster = await startTestCluster();
});
afterEach(async () => {
  for (const pod of pods.splice(0)) await pod.close();
});
afterAll(async () => {
  await cluster.close();
  rmSync(dirname(launcher), { recursive: true });
});

async function start(modes: string[] = [], options: Partial<PodOptions> = {}): Promise<Pod> {
  const pod = await startPod({ cluster, launcher, modes, ...options });
  pods.push(pod);
  return pod;
}
async function ready(modes: string[] = [], options: Partial<PodOptions> = {}): Promise<Pod> {
  const pod = await start(modes, options);
  await pod.untilReady();
  return pod;
}
const text = (value: string) => ({ kind: 'result', result: { content: [{ type: 'text', text: value }] } });
const lost = (reason: string) => ({ kind: 'lost', reason });
const notStarted = (reason: string) => ({ kind: 'not-started', reason });

describe('a tool pod', () => {
  test('[D04] [S02] [S09] serves its tool, whose environment is what was written for it', async () => {
    const pod = await ready();
    expect(await pod.call('echo', { text: 'hello' })).toMatchObject(text('hello'));
    expect(pod.events().find((line) => line.startsWith('env '))).toBe('env DECLARED,HOME,LANG,PATH,TMPDIR');
    const asks = await ready([], { config: { usesModel: true } });
    expect(asks.events().find((line) => line.startsWith('env '))).toBe(
      'env ANTHROPIC_API_KEY,ANTHROPIC_BASE_URL,DECLARED,HOME,LANG,OPENAI_API_KEY,OPENAI_BASE_URL,PATH,TMPDIR',
    );
    const status = pod.sidecar.status();
    expect(status).toMatchObject({
      phase: 'Ready',
      process: { starts: 1 },
      sandbox: { holds: true, open: [] },
      server: { name: 'bad', version: '1', protocolVersion: '2025-11-25' },
    });
    expect(status.listing?.functions).toHaveLength(15);
  });

  test('a server that knows only the stateless era is spoken to in it', async () => {
    const pod = await ready(['modern']);
    expect(await pod.call('echo', { text: 'hello' })).toMatchObject(text('hello'));
    expect(pod.sidecar.status().server).toMatchObject({ name: 'modern', protocolVersion: '2026-07-28' });
    expect(pod.events().slice(2, 5)).toEqual(['initialize', 'discover', 'list']);
  });

  test('[S04] others than gateways and the controller get nothing; the controller lists but does not call', async () => {
    const pod = await ready();
    const post = async (peer: Awaited<ReturnType<Pod['peer']>>, path: string, method: 'GET' | 'POST' = 'GET') =>
      (await peer.dispatcher().request({ path, method })).statusCode;
    const other = await pod.peer({ kind: 'tool', namespace: 'team', tool: 'mail', podUid: 'uid-1' });
    const egress = await pod.peer({ kind: 'egress' });
    for (const peer of [other, egress]) {
      expect(await post(peer, '/status')).toBe(403);
      expect(await post(peer, '/mcp', 'POST')).toBe(403);
    }
    const controller = await pod.peer({ kind: 'controller' });
    const { body, statusCode } = await controller.dispatcher().request({ path: '/status', method: 'GET' });
    expect(statusCode).toBe(200);
    expect(await body.json()).toMatchObject({ phase: 'Ready' });
    expect(await post(controller, '/other')).toBe(404);
    expect(pod.events('call echo')).toEqual([]);
  });

  test('a paged listing is whole; a function that is broken is held back alone [case 56]', async () => {
    const pod = await ready(['paged', 'broken-function']);
    expect(pod.events('list')).toHaveLength(4);
    expect(pod.sidecar.status().listing?.functions).toHaveLength(15);
    expect(pod.lines.join('')).toContain('held back');
  });

  test('a function that is not listed is not called', async () => {
    const pod = await ready();
    expect(await pod.call('other')).toMatchObject({ kind: 'error', error: { code: -32602 } });
    expect(pod.events().filter((line) => line.startsWith('call'))).toEqual([]);
  });
});

describe('order of a start', () => {
  test('[I11] [S05] [case 96] no process starts while a wall is open; the report names it', async () => {
    const wall = await openAddress();
    const egress = `127.0.0.1:${cluster.egress.port}`;
    const pod = await start([], { walls: { closed: ['127.0.0.1:1', wall.address], open: egress } });
    await eventually(() => pod.sidecar.status().sandbox.open.length > 0, 'the open wall');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(pod.events('start')).toEqual([]);
    expect(await pod.health('/startedz')).toBe(503);
    expect(pod.sidecar.status()).toMatchObject({ phase: 'Down', sandbox: { holds: false, open: [wall.address] } });
    wall.close();
    await pod.untilReady();
    expect(pod.events('start')).toHaveLength(1);
  });

  test('[I11] [S05] a wall that opens later stops the process, and its calls are unknown', async () => {
    const pod = await ready();
    const running = pod.call('slow', { ms: 60_000 });
    await eventually(() => pod.events('call slow').length === 1, 'the call');
    const wall = await openAddress();
    const egress = `127.0.0.1:${cluster.egress.port}`;
    pod.setWalls({ closed: [wall.address], open: egress });
    expect(await running).toMatchObject(lost('process-ended'));
    expect(await pod.call('echo')).toMatchObject(notStarted('down'));
    expect(pod.events('start')).toHaveLength(1);
    wall.close();
    await pod.untilReady();
  });

  test('[S05] a door that closes later stops nothing', async () => {
    const pod = await ready();
    pod.setWalls({ closed: ['127.0.0.1:1'], open: '127.0.0.1:2' });
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(await pod.call('echo', { text: 'x' })).toMatchObject(text('x'));
  });

  test('[case 86] an API server that is slow delays the start, and nothing starts before', async () => {
    cluster.api.failing = 500;
    const pod = await start();
    await eventually(() => pod.lines.join('').includes('unavailable'), 'a refusal');
    expect(await pod.health('/startedz')).toBe(503);
    expect(await pod.health('/livez')).toBe(200);
    expect(pod.events('start')).toEqual([]);
    cluster.api.failing = undefined;
    await pod.untilReady();
  });

  test('[case 10] fifty first calls at once: one start', async () => {
    const pod = await ready(['slow-start'], { config: { concurrency: 64 } });
    const answers = await Promise.all(Array.from({ length: 50 }, (_, at) => pod.call('echo', { text: `${at}` })));
    for (const [at, answer] of answers.entries()) expect(answer).toMatchObject(text(`${at}`));
    expect(pod.events('start')).toHaveLength(1);
  });
});

describe('servers that do not start', () => {
  test('[S08] a crash at the start is tried again with a back-off, and says why', async () => {
    const pod = await start(['crash-at-start']);
    await eventually(() => pod.events('start').length >= 3, 'three starts');
    const { problem, process: life } = pod.sidecar.status();
    expect(problem).toMatch(/exited with code 3.*no such configuration \\u001b\[31m|ended/);
    expect(life.lastExit).toBe('exited with code 3');
    expect(await pod.call('echo')).toMatchObject({ kind: 'not-started' });
    expect(await pod.health('/readyz')).toBe(503);
    // 100, 200, 400, 400… ms
    expect(pod.events('start').length).toBeLessThan(6);
  });

  test('one that recovers is ready', async () => {
    const pod = await ready(['crash-twice']);
    expect(pod.sidecar.status().process.starts).toBe(3);
  });

  test('one that exits with 0 has ended all the same', async () => {
    const pod = await start(['exit-0']);
    await eventually(() => pod.sidecar.status().process.lastExit === 'exited with code 0', 'the exit');
    expect(pod.sidecar.status().phase).not.toBe('Ready');
  });

  test('[case 11] never answering initialize, with noise: stopped at the deadline, one process at a time', async () => {
    const pod = await start(['never-initialize', 'startup-noise'], { tool: { startMs: 1_500 } });
    await eventually(() => pod.events('start').length >= 2, 'a second start');
    expect(pod.sidecar.status().problem).toContain('initialize was not answered in time');
  });

  test('a listing without end is refused', async () => {
    const pod = await start(['endless-list']);
    await eventually(() => pod.sidecar.status().problem?.includes('repeats a cursor') === true, 'the problem');
    expect(await pod.list()).toMatchObject({ kind: 'not-started' });
  });

  test('a command that does not exist says so', async () => {
    const pod = await start([], { config: { argv: ['no-such-tool'] } });
    await eventually(() => pod.sidecar.status().problem?.includes('is not on the PATH') === true, 'the problem');
  });
});

describe('servers that misbehave in a call', () => {
  test('[S08] [case 1] a crash in mid-call: its calls are unknown, made once, and the next ones are served', async () => {
    const pod = await ready();
    const beside = pod.call('slow', { ms: 60_000 });
    await eventually(() => pod.events('call slow').length === 1, 'the call');
    expect(await pod.call('die')).toMatchObject(lost('process-ended'));
    expect(await beside).toMatchObject(lost('process-ended'));
    expect(pod.events('acted')).toHaveLength(1);
    await pod.untilReady();
    expect(await pod.call('echo', { text: 'again' })).toMatchObject(text('again'));
    expect(pod.events('start')).toHaveLength(2);
  });

  test('[case 26] junk, half lines and broken UTF-8 before and around harm nothing', async () => {
    const pod = await ready(['junk']);
    expect(await pod.call('partial')).toMatchObject(text('€uro'));
    expect(await pod.call('wrong-id')).toMatchObject(text('right'));
    expect(await pod.call('twice')).toMatchObject(text('first'));
    expect(await pod.call('echo', { text: 'x' })).toMatchObject(text('x'));
    expect(pod.events('start')).toHaveLength(1);
  });

  test('[case 24] notices before the answer, at the start and in a call', async () => {
    const pod = await ready(['startup-noise']);
    const seen: object[] = [];
    const answer = await pod.call('progress', {}, { onProgress: (params) => seen.push(params) });
    expect(answer).toMatchObject(text('done'));
    expect(seen).toMatchObject([{ progress: 1 }, { progress: 2 }, { progress: 3 }]);
  });

  test('[case 27] a server that asks in mid-call: ping answered, elicitation and sampling refused', async () => {
    const pod = await ready();
    expect(await pod.call('ask')).toMatchObject(text('asked'));
    expect(pod.events().filter((line) => line.startsWith('answer'))).toEqual([
      'answer p ok',
      'answer e -32601',
      'answer s -32601',
    ]);
  });

  test('[case 29] an answer over the limit ends its call with an error, and no other', async () => {
    const pod = await ready();
    const beside = pod.call('slow', { ms: 500 });
    const huge = await pod.call('huge', { bytes: 3_000_000 });
    expect(huge).toMatchObject({ kind: 'error', error: { message: expect.stringContaining('larger than') } });
    expect(await beside).toMatchObject(text('slow'));
    expect(await pod.call('huge', { bytes: 900_000 })).toMatchObject({ kind: 'result' });
  });

  test('an answer nested deeper than can be passed on ends its call with an error, and nothing else', async () => {
    const pod = await ready();
    const beside = pod.call('slow', { ms: 300 });
    expect(await pod.call('abyss')).toMatchObject({
      kind: 'error',
      error: { message: expect.stringContaining('larger') },
    });
    expect(await beside).toMatchObject(text('slow'));
    expect(pod.events('start')).toHaveLength(1);
    expect(pod.lines.join('')).not.toContain('bug');
  });

  test('a listing nested that deeply ends no sidecar: at the start it is a problem, later the good one stays', async () => {
    const bad = await start(['abyss-list']);
    await eventually(() => bad.sidecar.status().problem?.includes('tools/list') === true, 'the problem');
    const later = await ready(['abyss-relist']);
    await later.call('change');
    await eventually(() => later.events('list').length === 2, 'a second listing');
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await later.call('echo', { text: 'x' })).toMatchObject(text('x'));
    expect(later.sidecar.status().listing?.functions).toHaveLength(15);
  });

  test('[case 29] a call over the limit is not sent', async () => {
    const pod = await ready();
    const outcome = await pod.call('echo', { text: 'x'.repeat(1024 * 1024) });
    expect(outcome).toMatchObject({ kind: 'error' });
    expect(pod.events('call echo')).toEqual([]);
  });

  test('[S08] a flood slows its own process and loses no answer', async () => {
    const pod = await ready();
    const before = process.memoryUsage().rss;
    const flood = pod.call('flood', { ms: 2_000 });
    const beside = await pod.call('echo', { text: 'beside' });
    expect(beside).toMatchObject(text('beside'));
    expect(await flood).toMatchObject(text('done'));
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
  });

  test('a tool cannot pretend that its call was not started', async () => {
    const pod = await ready();
    const outcome = await pod.call('lie');
    expect(outcome).toMatchObject({ kind: 'error', error: { data: { own: 1 } } });
  });

  test('[case 61] a thousand change notices: few listings, and the last one counts', async () => {
    const pod = await ready();
    const before = pod.sidecar.status().listing?.hash;
    await pod.call('change');
    await eventually(() => pod.sidecar.status().listing?.functions.length === 16, 'the new listing');
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(pod.sidecar.status().listing?.hash).not.toBe(before);
    expect(pod.events('list').length).toBeLessThanOrEqual(5);
  });

  test('a server that stops reading: its call is refused or unknown, never silent', async () => {
    const pod = await ready([], { config: { timeoutMs: 600 } });
    await pod.call('deaf');
    expect(await pod.call('echo', { text: 'x' })).toMatchObject(lost('timeout'));
    await eventually(() => pod.events('start').length === 2, 'a new start');
  });
});

describe('a tool that ends its own launcher', () => {
  test('listeners of the next one stay', async () => {
    const pod = await start([], { startLauncher: false });
    const first = pod.startLauncher();
    await pod.untilReady();
    first.kill('SIGTERM');
    await new Promise((resolve) => first.once('exit', resolve));
    pod.startLauncher();
    await pod.untilReady();
    const listening = listenHop(
      await pod.hop(),
      'listen',
      AbortSignal.timeout(1_000),
      () => {},
      () => {},
    );
    const began = Date.now();
    await listening;
    expect(Date.now() - began).toBeGreaterThan(900);
  });
});

describe('timeouts, cancellation, slots', () => {
  test('[R09] a call over its time is unknown; a process that does not end it is stopped, once the others have ended', async () => {
    const pod = await ready(['stubborn'], { config: { timeoutMs: 800 }, tool: { graceMs: 100 } });
    const hang = pod.call('hang');
    await new Promise((resolve) => setTimeout(resolve, 500));
    const beside = pod.call('slow', { ms: 700 });
    expect(await hang).toMatchObject(lost('timeout'));
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(await pod.call('echo', { text: 'x' })).toMatchObject(notStarted('not-ready'));
    expect(await beside).toMatchObject(text('slow'));
    await eventually(() => pod.events('start').length === 2, 'a new process');
    expect(pod.events('cancelled')).toHaveLength(1);
  });

  test('[R09] a cancelled call is told to the tool, which goes on serving when it obeys', async () => {
    const pod = await ready();
    const abort = new AbortController();
    const running = pod.call('slow', { ms: 60_000 }, { signal: abort.signal });
    await eventually(() => pod.events('call slow').length === 1, 'the call');
    abort.abort();
    expect(await running).toMatchObject({ kind: 'cancelled', sent: true });
    await eventually(() => pod.events('cancelled').length === 1, 'the cancellation');
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(await pod.call('echo', { text: 'x' })).toMatchObject(text('x'));
    expect(pod.events('start')).toHaveLength(1);
  });

  test('[R09] a busy tool refuses, and takes calls again', async () => {
    const pod = await ready([], { config: { concurrency: 2 } });
    const running = [pod.call('slow', { ms: 400 }), pod.call('slow', { ms: 400 })];
    await eventually(() => pod.events('call slow').length === 2, 'both calls');
    expect(await pod.call('echo')).toMatchObject(notStarted('busy'));
    for (const call of running) expect(await call).toMatchObject(text('slow'));
    expect(await pod.call('echo', { text: 'x' })).toMatchObject(text('x'));
    expect(pod.events('call echo')).toHaveLength(1);
  });
});

describe('the end of a pod', () => {
  test('[S08] SIGTERM: unready at once, running calls finish, new ones are refused, nothing is left', async () => {
    const pod = await start([], { startLauncher: false });
    const launched = pod.startLauncher();
    await pod.untilReady();
    const running = pod.call('slow', { ms: 1_200 });
    await eventually(() => pod.events('call slow').length === 1, 'the call');
    const exited = new Promise<number | null>((resolve) => launched.once('exit', resolve));
    launched.kill('SIGTERM');
    await eventually(async () => (await pod.health('/readyz')) === 503, 'unready');
    // Gateways learn of it while calls are still taken.
    expect(await pod.call('echo', { text: 'late' })).toMatchObject(text('late'));
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(await pod.call('echo')).toMatchObject(notStarted('draining'));
    expect(await running).toMatchObject(text('slow'));
    expect(await exited).toBe(0);
    expect(pod.sidecar.status().phase).toBe('Draining');
    expect(pod.events('start')).toHaveLength(1);
  });

  test('[case 78] a launcher that somebody else ended, and the kubelet started again, is no pod that ends', async () => {
    const pod = await start([], { startLauncher: false });
    const first = pod.startLauncher();
    await pod.untilReady();
    const exited = new Promise((resolve) => first.once('exit', resolve));
    first.kill('SIGTERM');
    await exited;
    expect(await pod.call('echo')).toMatchObject(notStarted('draining'));
    pod.startLauncher();
    await pod.untilReady();
    expect(await pod.call('echo', { text: 'again' })).toMatchObject(text('again'));
  });

  test('a tool that ignores SIGTERM is killed', async () => {
    const pod = await start(['ignore-sigterm'], { startLauncher: false });
    const launched = pod.startLauncher();
    await pod.untilReady();
    const exited = new Promise<number | null>((resolve) => launched.once('exit', resolve));
    launched.kill('SIGTERM');
    expect(await exited).toBe(0);
    expect(pod.events('sigterm')).toHaveLength(1);
    expect(pod.sidecar.status().process.lastExit).toBe('was ended by SIGKILL');
  });

  test('a sidecar that is started again: the tool ends, the launcher dials again, all recovers', async () => {
    const pod = await ready();
    await pod.restartSidecar();
    await pod.untilReady();
    expect(await pod.call('echo', { text: 'again' })).toMatchObject(text('again'));
    expect(pod.events('start')).toHaveLength(2);
  });
});
