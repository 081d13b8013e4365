/** Calls that must not be made twice, through the real launcher and real TLS. Effects are read from the tool's own log. */
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Identity } from '../../../src/domain/identity/identity.ts';
import { askJournal } from '../../../src/mcp/journal.ts';
import { buildLauncher, eventually, hopTo, type Pod, type PodOptions, startPod, startTestCluster } from './pod.ts';

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

async function ready(options: Partial<PodOptions> = {}): Promise<Pod> {
  const pod = await startPod({ cluster, launcher, modes: ['acts'], ...options });
  pods.push(pod);
  await pod.untilReady();
  return pod;
}

const text = (value: string) => ({ kind: 'result', result: { content: [{ type: 'text', text: value }] } });
const lost = (reason: string) => ({ kind: 'lost', reason });
const notStarted = (reason: string) => ({ kind: 'not-started', reason });
const told = (state: string, outcome?: object) => ({ ok: true, call: { state, ...(outcome && { outcome }) } });
const grant = (id: string, more: object = {}) => ({
  'ai.oz0/call': { id, attempt: 1, notAfter: Date.now() + 30_000, recorded: true, ...more },
});
/** A recorded call that acts once it is read, and answers its id after `ms`. */
const act = (pod: Pod, id: string, ms = 0, more: object = {}, signal?: AbortSignal) =>
  pod.call('act', { id, ms }, { meta: grant(id, more), ...(signal === undefined ? {} : { signal }) });
const key = (id: string) => ({ id, attempt: 1 });

describe('a recorded call', () => {
  test('[R11] is made once, however often it is delivered: the second joins, the third is answered from the record', async () => {
    const pod = await ready();
    const twice = await Promise.all([act(pod, 'a', 300), act(pod, 'a', 300)]);
    expect(twice).toMatchObject([text('a'), text('a')]);
    expect(await act(pod, 'a')).toMatchObject(text('a'));
    expect(await pod.ask(key('a'))).toMatchObject(told('done', text('a')));
    expect(pod.events('acted a')).toHaveLength(1);
    expect(await act(pod, 'a', 0, { attempt: 2 })).toMatchObject(text('a'));
    expect(pod.events('acted a')).toHaveLength(2);
  });

  test('[R11] goes on when its gateway is gone, and is joined by the one that comes after', async () => {
    const pod = await ready();
    const gone = new AbortController();
    const first = act(pod, 'a', 800, {}, gone.signal);
    await eventually(() => pod.events('acted a').length === 1, 'the effect');
    gone.abort();
    expect(await first).toMatchObject({ kind: 'cancelled', sent: true });
    expect(await pod.ask({ ...key('a'), fence: true })).toMatchObject(told('running'));
    const joined = act(pod, 'a', 800);
    expect(await pod.ask({ ...key('a'), waitMs: 5_000 })).toMatchObject(told('done', text('a')));
    expect(await joined).toMatchObject(text('a'));
    expect(pod.events('acted a')).toHaveLength(1);
    expect(pod.events('cancelled')).toEqual([]);
  });

  test('[R05] [R08] each end is kept as what it was', async () => {
    const pod = await ready({ config: { timeoutMs: 600 } });
    const call = (name: string, id: string) => pod.call(name, {}, { meta: grant(id) });
    expect(await call('hang', 'timeout')).toMatchObject(lost('timeout'));
    expect(await pod.ask(key('timeout'))).toMatchObject(told('done', { kind: 'unknown', reason: 'timeout' }));
    expect(await call('lie', 'error')).toMatchObject({ kind: 'error', error: { data: { own: 1 } } });
    expect(await pod.ask(key('error'))).toMatchObject(told('done', { kind: 'error', error: { message: 'no' } }));
    expect(await call('lie', 'error')).toMatchObject({ kind: 'error', error: { data: { own: 1 } } });
    expect(await call('die', 'died')).toMatchObject(lost('process-ended'));
    expect(await pod.ask(key('died'))).toMatchObject(told('done', { kind: 'unknown', reason: 'process-ended' }));
    expect(await call('die', 'died')).toMatchObject(lost('process-ended'));
    expect(pod.events('acted')).toHaveLength(1);
  });

  test('[R08] what is refused before it starts leaves no record, and may come again', async () => {
    const pod = await ready({ config: { concurrency: 1 } });
    const running = act(pod, 'a', 500);
    await eventually(() => pod.events('acted a').length === 1, 'the effect');
    expect(await act(pod, 'b')).toMatchObject(notStarted('busy'));
    expect(await pod.ask(key('b'))).toMatchObject(told('never-seen'));
    await running;
    expect(await act(pod, 'b')).toMatchObject(text('b'));
  });

  test('progress reaches whoever delivered it', async () => {
    const pod = await ready();
    const seen: object[] = [];
    const progress = { onProgress: (params: object) => void seen.push(params), meta: grant('p') };
    expect(await pod.call('progress', {}, progress)).toMatchObject(text('done'));
    expect(seen).toMatchObject([{ progress: 1 }, { progress: 2 }, { progress: 3 }]);
  });

  test('[I13] an unrecorded call writes nothing, and is cancelled with its connection', async () => {
    const pod = await ready();
    const file = () => readFileSync(join(pod.folder, 'journal/journal'), 'utf8');
    const before = file();
    expect(await act(pod, 'a', 0, { recorded: false })).toMatchObject(text('a'));
    expect(file()).toBe(before);
    const gone = new AbortController();
    const call = pod.call('slow', { ms: 60_000 }, { meta: grant('s', { recorded: false }), signal: gone.signal });
    await eventually(() => pod.events('call slow').length === 1, 'the call');
    gone.abort();
    await call;
    await eventually(() => pod.events('cancelled').length === 1, 'the cancellation');
    expect(await pod.ask(key('s'))).toMatchObject(told('never-seen'));
  });
});

describe('fences, grants, definitions', () => {
  test('[case 67] [R11] what was never seen is fenced, and comes no more, after a restart either', async () => {
    const pod = await ready();
    expect(await pod.ask(key('a'))).toMatchObject(told('never-seen'));
    expect(await pod.ask({ ...key('a'), fence: true })).toMatchObject(told('fenced'));
    expect(await act(pod, 'a')).toMatchObject(notStarted('fenced'));
    await pod.restartSidecar();
    await pod.untilReady();
    expect(await act(pod, 'a')).toMatchObject(notStarted('fenced'));
    expect(await pod.ask({ ...key('a'), fence: true })).toMatchObject(told('fenced'));
    expect(pod.events('acted a')).toEqual([]);
  });

  test('[I13] a call and its fence at the same time: one of the two, never both', async () => {
    const pod = await ready({ config: { concurrency: 64 } });
    const ids = Array.from({ length: 30 }, (_, at) => `race-${at}`);
    const both = await Promise.all(
      ids.map(async (id, at) => {
        const deliver = () => act(pod, id);
        const fence = () => pod.ask({ ...key(id), fence: true });
        return at % 2 === 0
          ? Promise.all([deliver(), fence()])
          : Promise.all([fence(), deliver()]).then(([asked, called]) => [called, asked] as const);
      }),
    );
    for (const [at, [called, asked]] of both.entries()) {
      const acted = pod.events(`acted ${ids[at]}`).length;
      const state = asked.ok ? asked.call.state : asked.problem;
      expect(state === 'fenced' ? [called.kind, acted] : [state, acted]).toEqual(
        state === 'fenced' ? ['not-started', 0] : [expect.stringMatching(/running|done/), 1],
      );
    }
  });

  test('[I13] nothing starts after its grant ran out, but for what two clocks may differ by', async () => {
    const pod = await ready();
    const notAfter = (ms: number) => ({ notAfter: Date.now() + ms });
    for (const recorded of [true, false]) {
      expect(await act(pod, `late-${recorded}`, 0, { recorded, ...notAfter(-3_000) })).toMatchObject(
        notStarted('grant-expired'),
      );
      expect(await act(pod, `near-${recorded}`, 0, { recorded, ...notAfter(-500) })).toMatchObject({ kind: 'result' });
    }
    expect(pod.events().filter((line) => line.startsWith('acted'))).toEqual(['acted near-true', 'acted near-false']);
  });

  test('[I07] a definition that is another than the one that was decided on is not called', async () => {
    const pod = await ready();
    const hash = pod.sidecar.status().listing?.functions.find(({ name }) => name === 'act')?.hash ?? '';
    const call = (id: string, definition: string) =>
      pod.call('act', { id }, { meta: { ...grant(id), 'ai.oz0/definition': definition } });
    expect(await call('a', hash)).toMatchObject(text('a'));
    expect(await call('b', '0'.repeat(64))).toMatchObject(notStarted('definition-changed'));
    await pod.call('redefine');
    await eventually(() => !JSON.stringify(pod.sidecar.status().listing).includes(hash), 'the new listing');
    expect(await call('c', hash)).toMatchObject(notStarted('definition-changed'));
    // A record is a record.
    expect(await call('a', hash)).toMatchObject(text('a'));
    const gone = await pod.call('gone', {}, { meta: { 'ai.oz0/definition': hash } });
    expect(gone).toMatchObject(notStarted('definition-changed'));
    expect(pod.events().filter((line) => line.startsWith('acted'))).toEqual(['acted a']);
  });

  test.each([
    ['a call without an id', { 'ai.oz0/call': { attempt: 1, notAfter: 1, recorded: true } }],
    ['an attempt of none', { 'ai.oz0/call': { id: 'a', attempt: 0, notAfter: 1, recorded: true } }],
    ['a grant that is no time', { 'ai.oz0/call': { id: 'a', attempt: 1, notAfter: 'x', recorded: true } }],
    ['recorded or not', { 'ai.oz0/call': { id: 'a', attempt: 1, notAfter: 1 } }],
    ['a hash that is none', { 'ai.oz0/definition': 'x' }],
    ['a key that is none', { 'ai.oz0/idempotency-key': '' }],
  ])('[I9] what does not parse is refused: %s', async (_name, meta) => {
    const pod = await ready();
    expect(await pod.call('act', { id: 'a' }, { meta })).toMatchObject({ kind: 'error', error: { code: -32602 } });
    expect(pod.events('call act')).toEqual([]);
  });

  test('[R07] [P07] the idempotency key and the label reach the tool, and nothing else of ours does', async () => {
    const pod = await ready();
    const meta = {
      ...grant('a'),
      'ai.oz0/idempotency-key': 'k-1',
      'ai.oz0/ai-label': '[AI] ',
      'AI.oz0/other': 1,
      'com.example/own': 2,
    };
    expect(await pod.call('meta', {}, { meta })).toMatchObject(
      text(JSON.stringify({ 'com.example/own': 2, 'ai.oz0/idempotency-key': 'k-1', 'ai.oz0/ai-label': '[AI] ' })),
    );
  });
});

describe('[R08] a stop', () => {
  test.each([
    ['stop', { kind: 'stopped' }, { kind: 'stopped' }],
    ['cancel', { kind: 'unknown', reason: 'cancelled' }, lost('cancelled')],
  ] as const)('%s: what runs is told to end, and its end is known at once', async (end, outcome, answer) => {
    const pod = await ready();
    const call = pod.call('slow', { ms: 60_000 }, { meta: grant('a') });
    await eventually(() => pod.events('call slow').length === 1, 'the call');
    expect(await pod.ask({ ...key('a'), end })).toMatchObject(told('done', outcome));
    expect(await call).toMatchObject(answer);
    await eventually(() => pod.events('cancelled').length === 1, 'the cancellation');
    expect(await pod.ask({ ...key('a'), end: 'stop' })).toMatchObject(told('done', outcome));
    expect(await pod.call('slow', { ms: 1 }, { meta: grant('a') })).toMatchObject(answer);
    await pod.restartSidecar();
    expect(await pod.ask(key('a'))).toMatchObject(told('done', outcome));
    expect(pod.events('call slow')).toHaveLength(1);
  });

  test('what was never seen is fenced; what is done stays so', async () => {
    const pod = await ready();
    expect(await pod.ask({ ...key('a'), end: 'stop' })).toMatchObject(told('fenced'));
    expect(await act(pod, 'a')).toMatchObject(notStarted('fenced'));
    await act(pod, 'b');
    expect(await pod.ask({ ...key('b'), end: 'stop' })).toMatchObject(told('done', text('b')));
  });
});

describe('the death of the sidecar', () => {
  test('[R05] [R11] in mid-call: unknown, and never a second effect', async () => {
    const pod = await ready({ asProcess: true });
    const running = act(pod, 'a', 60_000);
    await eventually(() => pod.events('acted a').length === 1, 'the effect');
    await act(pod, 'b');
    await pod.killSidecar();
    expect(await running).toMatchObject(lost('connection'));
    await pod.untilReady();
    const unknown = { kind: 'unknown', reason: 'process-ended' };
    expect(await pod.ask({ ...key('a'), fence: true })).toMatchObject(told('done', unknown));
    expect(await act(pod, 'a')).toMatchObject(lost('process-ended'));
    expect(await pod.ask(key('b'))).toMatchObject(told('done', text('b')));
    expect(await act(pod, 'b')).toMatchObject(text('b'));
    expect(await act(pod, 'c')).toMatchObject(text('c'));
    expect(['a', 'b', 'c'].map((id) => pod.events(`acted ${id}`).length)).toEqual([1, 1, 1]);
  });

  test('[R11] at any moment, with all delivered again after it: at most one effect each', {
    timeout: 90_000,
  }, async () => {
    const pod = await ready({ asProcess: true, config: { concurrency: 64 } });
    const ids = Array.from({ length: 60 }, (_, at) => `c${at}`);
    const ends = new Map<string, Set<string>>(ids.map((id) => [id, new Set()]));
    for (let round = 0; round < 5; round++) {
      const calls = ids.slice(0, (round + 1) * 12).map(async (id, at) => {
        await new Promise((resolve) => setTimeout(resolve, at % 7));
        const outcome = await act(pod, id, at % 5);
        if (outcome.kind === 'result') ends.get(id)?.add('result');
        if (outcome.kind === 'lost' && outcome.reason === 'process-ended') ends.get(id)?.add('unknown');
      });
      const begun = pod.events().length;
      await eventually(() => pod.events().length > begun + round * 5, 'calls', 5_000);
      await pod.killSidecar();
      await Promise.all(calls);
      await pod.untilReady();
    }
    for (const id of ids) {
      const outcome = await act(pod, id);
      const acted = pod.events(`acted ${id}`).length;
      expect(acted, id).toBeLessThanOrEqual(1);
      if (outcome.kind === 'result') expect(acted, id).toBe(1);
      else expect(outcome, id).toMatchObject(lost('process-ended'));
      // One end, whenever it was asked for.
      ends.get(id)?.add(outcome.kind === 'result' ? 'result' : 'unknown');
      expect(ends.get(id)?.size, id).toBe(1);
    }
    expect([...ends.values()].some((end) => end.has('result'))).toBe(true);
  });
});

test('[I13] a journal that cannot be written: recorded calls are not started, others are served', async () => {
  const file = join(dirname(launcher), 'no-folder');
  writeFileSync(file, '');
  const pod = await ready({ journalFolder: file });
  expect(await act(pod, 'a')).toMatchObject(notStarted('journal'));
  // What a predecessor may have written cannot be read either.
  const unknown = { kind: 'unknown', reason: 'forgotten' };
  expect(await pod.ask({ ...key('a'), fence: true })).toMatchObject(told('done', unknown));
  expect(await act(pod, 'b', 0, { recorded: false })).toMatchObject(text('b'));
  expect(pod.events().filter((line) => line.startsWith('acted'))).toEqual(['acted b']);
  expect(pod.lines.join('')).toContain('the journal of calls cannot be written');
});

test('[I13] a full disk: recorded calls are not started nor fenced until there is room again', async () => {
  const folder = mkdtempSync(join(dirname(launcher), 'journal-'));
  const full = join(folder, 'journal.next');
  symlinkSync('/dev/full', full);
  const pod = await ready({ journalFolder: folder });
  expect(await act(pod, 'a')).toMatchObject(notStarted('journal'));
  expect(await pod.ask(key('a'))).toMatchObject(told('never-seen'));
  expect(await pod.ask({ ...key('a'), fence: true })).toMatchObject({ ok: false, sent: true });
  expect(await act(pod, 'b', 0, { recorded: false })).toMatchObject(text('b'));
  rmSync(full);
  await eventually(async () => (await act(pod, 'a')).kind === 'result', 'the call');
  expect(pod.events().filter((line) => line.startsWith('acted'))).toEqual(['acted b', 'acted a']);
});

test('[S08] the end of the pod waits for a recorded call whose gateway is gone', async () => {
  const pod = await startPod({ cluster, launcher, modes: ['acts'], startLauncher: false });
  pods.push(pod);
  const launched = pod.startLauncher();
  await pod.untilReady();
  const gone = new AbortController();
  const call = act(pod, 'a', 1_200, {}, gone.signal);
  await eventually(() => pod.events('acted a').length === 1, 'the effect');
  gone.abort();
  await call;
  const exited = new Promise<number | null>((resolve) => launched.once('exit', resolve));
  launched.kill('SIGTERM');
  expect(await exited).toBe(0);
  expect(await pod.ask(key('a'))).toMatchObject(told('done', text('a')));
  expect(await act(pod, 'a')).toMatchObject(text('a'));
  expect(await act(pod, 'b')).toMatchObject(notStarted('draining'));
});

describe('who may ask what', () => {
  const ask = async (pod: Pod, identity: Identity) =>
    askJournal(hopTo(await pod.peer(identity)), {
      ...key('a'),
      signal: new AbortController().signal,
      timeoutMs: 5_000,
      maxAnswerBytes: 1_000,
    });
  const refused = (status: number) => ({ ok: false, problem: expect.stringContaining(`HTTP status ${status}`) });

  test('[S04] gateways ask for calls, the controller for the listing', async () => {
    const pod = await ready();
    const controller = await pod.peer({ kind: 'controller' });
    const { body, statusCode } = await controller.dispatcher().request({ path: '/listing', method: 'GET' });
    const listing = await body.json();
    expect(statusCode).toBe(200);
    const { hash, functions } = pod.sidecar.status().listing ?? {};
    expect(listing).toMatchObject({ hash, tools: functions?.map(({ name }) => ({ name, inputSchema: {} })) });
    expect(await ask(pod, { kind: 'controller' })).toMatchObject(refused(404));
    expect(await ask(pod, { kind: 'egress' })).toMatchObject(refused(403));
    const gateway = await pod.peer();
    const of = await gateway.dispatcher().request({ path: '/listing', method: 'GET' });
    expect(of.statusCode).toBe(404);
    await of.body.dump();
  });

  test.each([
    ['no JSON', 'x', 400],
    ['no id', '{"attempt":1,"fence":false}', 400],
    ['a fence that is none', '{"id":"a","attempt":1,"fence":1}', 400],
    ['a wait without end', '{"id":"a","attempt":1,"fence":false,"waitMs":1e9}', 400],
    ['a body without end', `{"id":"${'x'.repeat(5_000)}"}`, 413],
  ])('[I9] a question that does not parse: %s', async (_name, body, status) => {
    const pod = await ready();
    const headers = { 'content-type': 'application/json' };
    const answer = await (await pod.peer()).dispatcher().request({ path: '/calls', method: 'POST', headers, body });
    expect(answer.statusCode).toBe(status);
    await answer.body.dump();
  });

  test("[S06] a pod of one node takes calls from its own node's gateway alone", async () => {
    const pod = await ready({ node: 'node-1' });
    const other: Identity = { kind: 'gateway', node: 'node-2' };
    expect(await pod.callAs(other, 'act', { id: 'a' })).toMatchObject(notStarted('other-node'));
    expect(await ask(pod, other)).toMatchObject(refused(403));
    expect(pod.events('acted a')).toEqual([]);
    expect(await act(pod, 'a')).toMatchObject(text('a'));
    expect(await pod.ask(key('a'))).toMatchObject(told('done'));
    const controller = await (await pod.peer({ kind: 'controller' }))
      .dispatcher()
      .request({ path: '/status', method: 'GET' });
    expect(controller.statusCode).toBe(200);
    await controller.body.dump();
  });
});

test("[case 116] probes, however often, never reach the tool's server", async () => {
  const pod = await ready();
  const before = pod.events();
  expect(before.filter((line) => line === 'initialize' || line === 'list')).toEqual(['initialize', 'list']);
  for (let round = 0; round < 50; round++) {
    const probes = ['/livez', '/readyz', '/startedz'].map((path) => pod.health(path));
    expect(await Promise.all(probes)).toEqual([200, 200, 200]);
  }
  expect(await act(pod, 'a')).toMatchObject(text('a'));
  expect(pod.events()).toEqual([...before, 'call act', 'acted a']);
});
