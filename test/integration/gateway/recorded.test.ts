/**
 * Calls that are on record: what is written before and after, who may be told what, and what a gateway does for one that
 * another left. How often something happened is asked of the tool's counter, never of an answer.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type CallRecords, createCallRecords } from './support/callRecords.ts';
import { type FakeCall, type FakeTool, startFakeTool, text } from './support/fakeTool.ts';
import { callTool, type Loose, type SendOptions, startWorld, token, until, type World } from './support/world.ts';

const ADDS = { destructiveHint: false };
const hints: Record<string, object | undefined> = {
  read: { readOnlyHint: true },
  idempotent: { ...ADDS, idempotentHint: true },
  keyed: { ...ADDS, idempotentHint: true },
  add: ADDS,
  overwrite: { destructiveHint: true },
  undeclared: undefined,
};

let worlds: World[] = [];
let world: World;
let fake: FakeTool;
let records: CallRecords;
let effects: Record<string, number>;
let keys: unknown[];

/** Counts its side effect, then does as the test says. */
function act(then: (call: FakeCall, made: number) => unknown = (_, made) => text(`made ${made}`)) {
  return (call: FakeCall): unknown => {
    const made = (effects[call.name] ?? 0) + 1;
    effects[call.name] = made;
    keys.push(call.meta['ai.oz0/idempotency-key']);
    return then(call, made);
  };
}

async function start(more: Parameters<typeof startWorld>[1] = {}): Promise<World> {
  const started = await startWorld({ dialWindowMs: 400 }, { toolCalls: records, ...more });
  worlds.push(started);
  started.tool('acme', { timeout: '2s' });
  started.agent('reviewer', ['acme.*']);
  started.pod('acme', fake, { uid: 'tool-pod-1' });
  await started.listed(Object.keys(fake.functions).map((name) => `acme__${name}`));
  return started;
}

beforeEach(async () => {
  worlds = [];
  effects = {};
  keys = [];
  records = createCallRecords();
  fake = await startFakeTool(Object.fromEntries(Object.keys(hints).map((name) => [name, act()])));
  fake.listed = Object.entries(hints).map(([name, annotations]) => ({
    name,
    inputSchema: { type: 'object' },
    ...(annotations === undefined ? {} : { annotations }),
    ...(name === 'keyed' ? { _meta: { 'ai.oz0/honours-idempotency-key': true } } : {}),
  }));
  world = await start();
});

afterEach(async () => {
  for (const each of worlds) await each.close();
  await fake.close();
  for (const each of worlds) expect(each.problems).toEqual([]);
});

const call = (name: string, args: object = {}, callId?: string, options: SendOptions = {}): Promise<Loose> =>
  callTool(world, `acme__${name}`, args, {
    ...options,
    meta: { ...(callId === undefined ? {} : { 'ai.oz0/call-id': callId }), ...options.meta },
  }).then(({ body }) => body.result ?? body);
const outcome = (result: Loose): unknown => result._meta?.['ai.oz0/outcome'];
const said = (result: Loose): string => result.content?.[0]?.text ?? JSON.stringify(result);
const only = (): Loose => {
  const all = records.all();
  expect(all).toHaveLength(1);
  return all[0];
};
const phase = (): unknown => only().status?.phase;
const waits = (name: string): void =>
  world.put('ToolPolicy', 'default', {
    rules: [{ name: 'asks', functions: [`acme.${name}`], do: 'wait', because: 'It matters.' }],
  });
/** Asks for something that needs a person; the name of its ToolCall. */
async function asked(callId: string, args: object = { n: 1 }, name = 'overwrite'): Promise<string> {
  const result = await call(name, args, callId);
  expect(outcome(result)).toBe('waiting');
  return result._meta['ai.oz0/call'];
}

describe('[case 63] what is lost on the way is made again only where that can do no more', () => {
  test.each([
    ['read', 4],
    ['keyed', 4],
    ['idempotent', 1],
    ['add', 1],
    ['overwrite', 1],
    ['undeclared', 1],
  ])('[R01] [R02] [R03] %s: acts, then cuts the line: %i side effects', async (name, times) => {
    fake.functions[name] = act(({ req }) => void req.socket.resetAndDestroy());
    const result = await call(name);
    expect(outcome(result)).toBe('unknown');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(effects[name]).toBe(times);
  });

  test('[R02] the second attempt answers: the caller gets that', async () => {
    fake.functions['read'] = act(({ req }, made) => (made === 1 ? void req.socket.resetAndDestroy() : text('there')));
    expect(said(await call('read'))).toBe('there');
    expect(effects['read']).toBe(2);
  });

  test('[R02] it times out, and runs again', async () => {
    fake.functions['read'] = act((_, made) => (made === 1 ? undefined : text('there')));
    expect(said(await call('read'))).toBe('there');
    expect(effects['read']).toBe(2);
  });

  test.each([
    ['an error result', () => ({ isError: true, ...text('no') })],
    [
      'a protocol error',
      ({ res, id }: FakeCall) =>
        void res
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'no' } })),
    ],
  ])('[case 70] %s is an answer, and never made again', async (_, answer) => {
    fake.functions['read'] = act(answer);
    fake.functions['add'] = act(answer);
    await call('read');
    await call('add');
    expect(effects).toEqual({ read: 1, add: 1 });
  });

  test('[case 69] resets at every hop: as many hits as attempts, and no more', async () => {
    fake.functions['read'] = act(({ req }) => void req.socket.resetAndDestroy());
    await call('read');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(fake.runs['read']).toBe(4);
  });

  test('the client that gives up ends the attempts', async () => {
    fake.functions['read'] = act(() => undefined);
    const client = new AbortController();
    const given = call('read', {}, undefined, { signal: client.signal }).catch(() => 'gave up');
    await until(() => effects['read'] === 1, 'the first attempt');
    client.abort();
    expect(await given).toBe('gave up');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(effects['read']).toBe(1);
  });
});

describe('[case 65] [R03] idempotency keys', () => {
  test('the same on all attempts of one call, another for the next equal one', async () => {
    fake.functions['keyed'] = act(({ req }, made) => (made % 2 === 1 ? void req.socket.resetAndDestroy() : text('ok')));
    await call('keyed', { n: 1 });
    await call('keyed', { n: 1 });
    expect(keys).toHaveLength(4);
    expect(keys.every((key) => typeof key === 'string' && key.length >= 32)).toBe(true);
    expect(keys[0]).toBe(keys[1]);
    expect(keys[2]).toBe(keys[3]);
    expect(keys[0]).not.toBe(keys[2]);
  });

  test('clients that use one call-id share no key, and a call-id of an agent has one', async () => {
    world.agent('other', ['acme.*'], { serviceAccounts: ['other'] });
    await call('keyed', {}, 'same');
    await call('keyed', {}, 'same', { token: token('acme', 'other') });
    await call('keyed', {}, 'same');
    expect(keys[0]).not.toBe(keys[1]);
    expect(keys[0]).toBe(keys[2]);
  });

  test('what an agent writes under our keys never reaches the tool', async () => {
    const meta = { 'ai.oz0/idempotency-key': 'mine', 'ai.oz0/call': { id: 'x' }, 'AI.oz0/call-id': 'y', other: 1 };
    await call('read', {}, 'c1', { meta });
    await call('add', {}, 'c2', { meta });
    for (const { meta: got } of fake.calls) {
      expect(got['ai.oz0/idempotency-key']).not.toBe('mine');
      expect(got['ai.oz0/call-id']).toBeUndefined();
      expect(got['AI.oz0/call-id']).toBeUndefined();
      expect(got['other']).toBe(1);
    }
    expect(fake.calls[0]?.meta['ai.oz0/call']).toBeUndefined();
  });
});

describe('[I13] [R11] what is sent is on record before, and its outcome before it is told', () => {
  test('in peace: created, sent, outcome written, told', async () => {
    let phaseWhileRunning: unknown = 'none';
    fake.functions['add'] = act(() => {
      phaseWhileRunning = only().status?.phase ?? 'sending, by its spec';
      return text('done');
    });
    expect(said(await call('add', { n: 1 }, 'c1'))).toBe('done');
    expect(phaseWhileRunning).toBe('sending, by its spec');
    expect(only()).toMatchObject({
      spec: {
        agent: 'reviewer',
        tool: 'acme',
        function: 'add',
        callId: 'c1',
        caller: 'system:serviceaccount:acme:reviewer',
      },
      status: { phase: 'Succeeded', attempts: 1, toolPod: 'tool-pod-1' },
    });
    expect(only().spec.arguments).toBeUndefined();
    expect(records.requests).toEqual(['create', 'status']);
    expect(fake.calls[0]?.meta['ai.oz0/call']).toMatchObject({ id: only().metadata.uid, attempt: 1, recorded: true });
    expect(fake.calls[0]?.meta['ai.oz0/idempotency-key']).toBe(only().spec.idempotencyKey);
  });

  test('what only reads writes nothing', async () => {
    await call('read', {}, 'c1');
    expect(records.requests).toEqual([]);
  });

  test('[R08] it cannot be written down: nothing is made, and that is told', async () => {
    records.fault = () => ({ when: 'before' });
    const result = await call('add');
    expect(outcome(result)).toBe('not-started');
    expect(result._meta['ai.oz0/reason']).toBe('no-record');
    expect(effects['add']).toBeUndefined();
  });

  test('the answer to its creation is lost: it knows its own, and makes it once', async () => {
    let first = true;
    records.fault = (operation) => {
      if (operation !== 'create' || !first) return undefined;
      first = false;
      return { when: 'after' };
    };
    expect(said(await call('add'))).toBe('made 1');
    expect(effects['add']).toBe(1);
    expect(phase()).toBe('Succeeded');
  });

  test('its outcome cannot be written: told as unknown, written later, and then told as it is', async () => {
    let failing = true;
    records.fault = (operation) => (operation === 'create' || !failing ? undefined : { when: 'before' });
    expect(outcome(await call('add', {}, 'c1'))).toBe('unknown');
    expect(effects['add']).toBe(1);
    failing = false;
    await until(() => phase() === 'Succeeded', 'its outcome is written');
    expect(said(await call('add', {}, 'c1'))).toBe('made 1');
    expect(effects['add']).toBe(1);
  });

  test('the answer to the writing of its outcome is lost: told once it is seen to be there', async () => {
    let first = true;
    records.fault = (operation) => {
      if (operation !== 'status' || !first) return undefined;
      first = false;
      return { when: 'after' };
    };
    expect(said(await call('add'))).toBe('made 1');
    expect(effects['add']).toBe(1);
  });

  test('the API server is too busy for several in a row: writes are refused at once, reads are made', async () => {
    records.fault = () => ({ when: 'before', code: 'tooManyRequests' });
    for (let times = 0; times < 2; times += 1) await call('add');
    const before = records.requests.length;
    expect((await call('add'))._meta['ai.oz0/reason']).toBe('no-record');
    expect(records.requests.length).toBe(before);
    expect(said(await call('read'))).toBe('made 1');
    expect(effects['add']).toBeUndefined();
  });
});

describe('a call that is delivered again', () => {
  test('[I10] is answered from its journal, as often as it is', async () => {
    for (const _ of [1, 2, 3]) expect(said(await call('add', { n: 1 }, 'c1'))).toBe('made 1');
    expect(effects['add']).toBe(1);
    expect(records.all()).toHaveLength(1);
  });

  test('joins while it runs', async () => {
    const go = Promise.withResolvers<void>();
    fake.functions['add'] = act(async () => {
      await go.promise;
      return text('done');
    });
    const all = [1, 2, 3].map(() => call('add', {}, 'c1'));
    await until(() => effects['add'] === 1, 'it runs');
    go.resolve();
    expect((await Promise.all(all)).map(said)).toEqual(['done', 'done', 'done']);
    expect(effects['add']).toBe(1);
  });

  test('[case 40] with other arguments, or for another function, is refused', async () => {
    await call('add', { n: 1 }, 'c1');
    for (const result of [await call('add', { n: 2 }, 'c1'), await call('overwrite', { n: 1 }, 'c1')]) {
      expect(result.isError).toBe(true);
      expect(result._meta['ai.oz0/reason']).toBe('another-call');
    }
    expect(effects).toEqual({ add: 1 });
    // The same arguments in another order are the same.
    await call('add', { a: 1, b: 2 }, 'c2');
    await call('add', { b: 2, a: 1 }, 'c2');
    expect(effects['add']).toBe(2);
  });

  test('after its pod is gone: it succeeded, and its result is lost', async () => {
    await call('add', {}, 'c1');
    fake.journal.clear();
    const result = await call('add', {}, 'c1');
    expect(outcome(result)).toBe('succeeded');
    expect(said(result)).toMatch(/result is lost/);
    expect(effects['add']).toBe(1);
  });

  test('after it was not made: it is made', async () => {
    const refuses = ({ res, id }: FakeCall): void => {
      const data = { 'ai.oz0/outcome': 'not-started', reason: 'busy' };
      res
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32603, message: 'busy', data } }));
    };
    fake.functions['add'] = refuses;
    const result = await call('add', {}, 'c1');
    expect(result._meta).toMatchObject({ 'ai.oz0/outcome': 'not-started', 'ai.oz0/reason': 'busy' });
    expect(only().status).toMatchObject({ phase: 'Failed', reason: 'busy', attempts: 1 });
    fake.functions['add'] = act();
    expect(said(await call('add', {}, 'c1'))).toBe('made 1');
    expect(only().status).toMatchObject({ phase: 'Succeeded', attempts: 2 });
  });

  test.each<[unknown, string]>([
    ['', 'empty'],
    ['x'.repeat(129), 'too long'],
    ['a b', 'with a space'],
    [7, 'a number'],
    [{}, 'an object'],
  ])('an id that is none is refused: %j (%s)', async (id) => {
    const { body } = await callTool(world, 'acme__add', {}, { meta: { 'ai.oz0/call-id': id } });
    expect(body.error.code).toBe(-32602);
    expect(effects['add']).toBeUndefined();
  });

  test('one that came to be refused since is told what became of it, not that it was not made', async () => {
    await call('add', {}, 'c1');
    world.put('ToolPolicy', 'default', { rules: [{ name: 'never', functions: ['acme.add'], do: 'refuse' }] });
    expect(said(await call('add', {}, 'c1'))).toBe('made 1');
    expect((await call('add', {}, 'c2'))._meta['ai.oz0/reason']).toBe('policy');
    expect(effects['add']).toBe(1);
  });
});

describe('[Y03] what a person decides', () => {
  beforeEach(() => waits('overwrite'));

  test('waits at once, says how to look again, and holds what a person must read', async () => {
    const result = await call('overwrite', { n: 1 }, 'c1', { meta: { 'ai.oz0/job-id': 'j1' } });
    // Nothing failed: an error would be tried again, or got around.
    expect(result.isError).toBe(false);
    expect(said(result)).toMatch(/^Not made yet/);
    expect(said(result)).toContain('"c1"');
    expect(result._meta).toMatchObject({
      'ai.oz0/outcome': 'waiting',
      'ai.oz0/call': only().metadata.name,
      'ai.oz0/call-id': 'c1',
    });
    expect(only().spec).toMatchObject({ arguments: { n: 1 }, because: 'It matters.', job: { id: 'j1' }, callId: 'c1' });
    expect(only().spec.sender).toBeUndefined();
    expect(outcome(await call('overwrite', { n: 1 }, 'c1'))).toBe('waiting');
    expect(records.all()).toHaveLength(1);
    expect(effects).toEqual({});
  });

  test('without an id of the agent’s, one is given to it', async () => {
    const first = await call('overwrite', { n: 1 });
    const id = first._meta['ai.oz0/call-id'];
    expect(outcome(await call('overwrite', { n: 1 }, id))).toBe('waiting');
    expect(records.all()).toHaveLength(1);
    // Without it, it is another call.
    await call('overwrite', { n: 1 });
    expect(records.all()).toHaveLength(2);
  });

  test('[case 38] approved: made once, without anybody waiting; the agent gets its one outcome', async () => {
    const name = await asked('c1');
    records.decide(name, 'approve');
    await until(() => phase() === 'Succeeded', 'it is made');
    expect(effects).toEqual({ overwrite: 1 });
    for (const _ of [1, 2]) expect(said(await call('overwrite', { n: 1 }, 'c1'))).toBe('made 1');
    expect(effects).toEqual({ overwrite: 1 });
  });

  test('denied: never made, and told with the reason', async () => {
    const name = await asked('c1');
    records.decide(name, 'deny', 'Not today.');
    await until(() => phase() === 'Refused', 'it is refused');
    const result = await call('overwrite', { n: 1 }, 'c1');
    expect(result.isError).toBe(true);
    expect(said(result)).toMatch(/denied.*Not today\./);
    expect(effects).toEqual({});
  });

  test.each([
    [
      'the policy',
      () => world.put('ToolPolicy', 'default', { rules: [{ name: 'asks-too', functions: ['acme.*'], do: 'wait' }] }),
      'changed',
    ],
    [
      'the policy, which refuses now',
      () => world.put('ToolPolicy', 'default', { rules: [{ name: 'no', functions: ['acme.*'], do: 'refuse' }] }),
      'policy',
    ],
    ['the grant', () => world.agent('reviewer', ['acme.read']), 'not-granted'],
    ['a stop', () => world.put('Stop', 'incident', { tool: 'acme', because: 'Incident 12' }), 'stopped'],
  ])('[case 40] %s changes before it is approved: refused, and must be asked again', async (_, change, reason) => {
    const name = await asked('c1');
    change();
    records.decide(name, 'approve');
    await until(() => phase() === 'Refused', 'it is refused');
    expect(only().status.reason).toBe(reason);
    expect(effects).toEqual({});
  });

  test('[case 40] the definition changes before it is approved: refused', async () => {
    const name = await asked('c1');
    fake.listed = fake.listed?.map((each) => ({ ...each, description: 'new' }));
    fake.changed();
    await until(() => fake.lists > 1, 'it is listed anew');
    await new Promise((resolve) => setTimeout(resolve, 200));
    records.decide(name, 'approve');
    await until(() => phase() === 'Refused', 'it is refused');
    expect(effects).toEqual({});
  });

  test('a decision on a copy of it decides nothing', async () => {
    const name = await asked('c1');
    const { spec } = records.get(name);
    records.delete(name);
    await records.door.create(
      {} as never,
      {
        ...records.get(name),
        apiVersion: 'oz0.ai/v1alpha1',
        kind: 'ToolCall',
        metadata: { name, namespace: 'acme', labels: { 'oz0.ai/node': 'node1' } },
        spec: { ...spec, decision: { verdict: 'approve', by: 'jane', uid: 'of-the-one-before' } },
      } as never,
    );
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(outcome(await call('overwrite', { n: 1 }, 'c1'))).toBe('waiting');
    expect(effects).toEqual({});
  });

  test('the tool is away when it is approved: made once it is back', async () => {
    const name = await asked('c1');
    world.pod('acme', undefined, { uid: 'tool-pod-1' });
    records.decide(name, 'approve');
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(phase() ?? 'Waiting').toBe('Waiting');
    world.pod('acme', fake, { uid: 'tool-pod-2' });
    await until(() => phase() === 'Succeeded', 'it is made', 10_000);
    expect(effects).toEqual({ overwrite: 1 });
  });

  test('[case 42] nobody could decide: an error at once, and nothing on record', async () => {
    world.put('ToolPolicy', 'default', {
      rules: [{ name: 'asks', functions: ['acme.overwrite'], do: 'wait', deciders: { notStarter: true } }],
    });
    const result = await call('overwrite', {}, 'c1');
    expect(result.isError).toBe(true);
    expect(result._meta['ai.oz0/reason']).toBe('nobody');
    expect(records.all()).toEqual([]);
  });

  test('more than a person can be shown is refused', async () => {
    const result = await call('overwrite', { text: 'x'.repeat(130 * 1024) }, 'c1');
    expect(result._meta['ai.oz0/reason']).toBe('too-large-to-ask');
    expect(records.all()).toEqual([]);
  });

  test('two gateways see the approval: one makes it', async () => {
    await start({ gatewayPod: 'gateway-2' });
    for (let n = 0; n < 10; n += 1) records.decide(await asked(`c${n}`, { n }), 'approve');
    await until(() => records.all().every(({ status }) => status?.phase === 'Succeeded'), 'all are made', 10_000);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(effects).toEqual({ overwrite: 10 });
  });
});

describe('waiting has an end', () => {
  test('nobody decides in time: it expires, and is not made', async () => {
    const short = await start({ record: { limits: { waitMs: 1 } }, gatewayPod: 'gateway-2' });
    short.put('ToolPolicy', 'default', { rules: [{ name: 'asks', functions: ['acme.overwrite'], do: 'wait' }] });
    waits('overwrite');
    await callTool(short, 'acme__overwrite', {}, { meta: { 'ai.oz0/call-id': 'c1' } });
    await until(() => phase() === 'Expired', 'it expires');
    expect(said(await call('overwrite', {}, 'c1'))).toMatch(/Nobody decided/);
    expect(effects).toEqual({});
  });

  test('so many may wait in a namespace, and no more', async () => {
    const few = await start({ record: { limits: { openPerNamespace: 2 } }, gatewayPod: 'gateway-2' });
    few.put('ToolPolicy', 'default', { rules: [{ name: 'asks', functions: ['acme.overwrite'], do: 'wait' }] });
    const results: Loose[] = [];
    for (let n = 0; n < 3; n += 1) results.push((await callTool(few, 'acme__overwrite', { n })).body.result);
    expect(results.map(outcome)).toEqual(['waiting', 'waiting', 'not-started']);
    expect(results[2]._meta['ai.oz0/reason']).toBe('too-many-open');
    expect(records.all()).toHaveLength(2);
  });
});

describe('[case 67] [R11] a gateway is gone', () => {
  /** A record as a gateway leaves it that died after it had written it. */
  async function left(sender: string, notAfterMs = Date.now() - 1_000): Promise<Loose> {
    await call('add', { n: 1 }, 'c1');
    const { spec } = only();
    records.delete(only().metadata.name);
    effects = {};
    return records.door.create(
      {} as never,
      {
        apiVersion: 'oz0.ai/v1alpha1',
        kind: 'ToolCall',
        metadata: { name: 'c-left', namespace: 'acme', labels: { 'oz0.ai/node': 'node1' } },
        spec: {
          ...spec,
          sender: { pod: sender, nonce: 'n', node: 'node1' },
          notAfter: `${new Date(notAfterMs).toISOString().slice(0, 19)}Z`,
          toolPod: 'tool-pod-1',
        },
      } as never,
    ) as Promise<Loose>;
  }
  const entry = (uid: string, state: 'running' | 'done', result?: unknown): void => {
    fake.journal.set(`${uid}/1`, {
      state,
      ...(result === undefined ? {} : { outcome: { kind: 'result', result } }),
      ended: Promise.withResolvers<void>(),
    });
  };

  test('before it sent: known not to be made, fenced, and never made', async () => {
    const object = await left('gateway-dead');
    await until(() => phase() === 'Failed', 'its end is written');
    expect(only().status.reason).toBe('never-sent');
    expect(fake.journal.get(`${object.metadata.uid}/1`)?.state).toBe('fenced');
    expect(effects).toEqual({});
  });

  test('after it sent, and it is done: written as it is', async () => {
    fake.onAsk = ({ id }) => {
      entry(id, 'done', text('done'));
      return false;
    };
    await left('gateway-dead');
    await until(() => phase() === 'Succeeded', 'its end is written');
    expect(effects).toEqual({});
  });

  test('after it sent, and it runs: joined, and written once it is done', async () => {
    let state: 'running' | 'done' = 'running';
    fake.onAsk = ({ id }, res) => {
      if (state === 'done') entry(id, 'done', text('done'));
      else res.end(JSON.stringify({ state: 'running' }));
      return state === 'running';
    };
    await left('gateway-dead');
    await until(() => fake.asked.length > 0, 'it is asked for');
    expect(phase()).toBeUndefined();
    state = 'done';
    await until(() => phase() === 'Succeeded', 'its end is written');
    expect(effects).toEqual({});
  });

  test('its tool’s pod is gone too: unknown, told so, and never made again', async () => {
    world.pod('acme', undefined, { uid: 'tool-pod-1' });
    await call('read').catch(() => {});
    world.pod('acme', fake, { uid: 'tool-pod-2' });
    await left('gateway-dead');
    await until(() => phase() === 'Failed' || phase() === 'Unknown', 'its end is written');
    expect(phase()).toBe('Unknown');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(effects).toEqual({});
  });

  test('a gateway that was started anew in its pod clears up at once what it had begun', async () => {
    await left('gateway-1', Date.now() + 60_000);
    await until(() => phase() === 'Failed', 'its end is written');
    expect(effects).toEqual({});
  });

  test('within its grant, another’s is left alone', async () => {
    await left('gateway-2', Date.now() + 60_000);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(phase()).toBeUndefined();
    expect(fake.asked.some(({ fence }) => fence === true)).toBe(false);
  });

  test('its node’s gateway does not come back: another’s takes up what it saw twice alike', async () => {
    await world.close();
    const other = await startWorld(
      { dialWindowMs: 400 },
      { toolCalls: records, gatewayPod: 'gateway-2', node: 'node2' },
    );
    worlds = [other];
    other.tool('acme', { affinity: 'any' });
    other.agent('reviewer', ['acme.*']);
    other.endpoints('acme', [{ fake, node: 'node1', uid: 'tool-pod-1' }]);
    world = other;
    await other.listed(Object.keys(hints).map((name) => `acme__${name}`));
    await left('gateway-1');
    other.gateway.upkeep.sweep(records.all());
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(phase()).toBeUndefined();
    other.gateway.upkeep.sweep(records.all());
    await until(() => phase() === 'Failed', 'its end is written');
    expect(effects).toEqual({});
  });

  test('[case 38] the one that was asked is gone when the approval comes: its successor makes it', async () => {
    waits('overwrite');
    const name = await asked('c1');
    await world.close();
    records.decide(name, 'approve');
    world = await startWorld({ dialWindowMs: 400 }, { toolCalls: records, gatewayPod: 'gateway-2', synced: false });
    worlds = [world];
    world.tool('acme', { timeout: '2s' });
    world.agent('reviewer', ['acme.*']);
    world.pod('acme', fake, { uid: 'tool-pod-2' });
    waits('overwrite');
    await new Promise((resolve) => setTimeout(resolve, 100));
    // [I1] What is not known yet is not taken for gone.
    expect(phase() ?? 'Waiting').toBe('Waiting');
    world.synced = true;
    await until(() => phase() === 'Succeeded', 'it is made', 10_000);
    expect(said(await call('overwrite', { n: 1 }, 'c1'))).toBe('made 1');
    expect(effects).toEqual({ overwrite: 1 });
  });

  test('[case 18] a gateway that closes while its call runs: it is told as unknown, and another writes what became of it', async () => {
    const go = Promise.withResolvers<void>();
    fake.functions['add'] = act(async () => {
      await go.promise;
      return text('done');
    });
    const closing = await start({
      gatewayPod: 'gateway-2',
      record: { timing: { grantMs: 200, recordMs: 400, tickMs: 20 } },
    });
    const told = callTool(closing, 'acme__add', {}, { meta: { 'ai.oz0/call-id': 'c1' } }).catch(() => undefined);
    await until(() => effects['add'] === 1, 'it runs');
    await closing.close();
    const answer = await told;
    if (answer !== undefined) expect(outcome(answer.body.result)).toBe('unknown');
    go.resolve();
    await until(() => phase() === 'Succeeded', 'its end is written', 10_000);
    expect(said(await call('add', {}, 'c1'))).toBe('done');
    expect(effects['add']).toBe(1);
  });
});

describe('[R05] [R06] [R07] an unknown outcome', () => {
  const lose = (): void => {
    fake.functions['add'] = act(({ req }, made) =>
      made === 1 ? void req.socket.resetAndDestroy() : text(`made ${made}`),
    );
  };
  const started = { meta: { 'ai.oz0/job-id': 'j1', 'ai.oz0/job-started-by': 'jane' } };
  const agent = (spec: object): void =>
    world.put('Agent', 'reviewer', { serviceAccounts: ['reviewer'], tools: ['acme.*'], ...spec });

  test.each([
    ['nobody is known to have started the job', {}, {}, 'unknown_outcome'],
    ['somebody is said to, by an agent whose word is not believed', {}, started, 'unknown_outcome'],
    ['somebody is said to, by one whose word is', { mayAssertStarter: true }, started, undefined],
    ['the agent says to ask', { onUnknown: 'ask' }, {}, undefined],
    ['the agent says to fail', { onUnknown: 'fail', mayAssertStarter: true }, started, 'unknown_outcome'],
  ])('%s: fails as %s', async (_, spec, options, failure) => {
    agent(spec);
    lose();
    const result = await call('add', {}, 'c1', options);
    expect(outcome(result)).toBe('unknown');
    expect(result._meta['ai.oz0/failure']).toBe(failure);
    expect(phase()).toBe('Unknown');
    expect(outcome(await call('add', {}, 'c1', options))).toBe('unknown');
    expect(effects['add']).toBe(1);
  });

  test('a person says that it happened', async () => {
    lose();
    await call('add', {}, 'c1');
    records.answer(only().metadata.name, 'happened');
    await until(() => phase() === 'Succeeded', 'it is written');
    expect(said(await call('add', {}, 'c1'))).toMatch(/says that it happened/);
    expect(effects['add']).toBe(1);
  });

  test('a person says to leave it', async () => {
    lose();
    await call('add', {}, 'c1');
    records.answer(only().metadata.name, 'stop');
    await until(() => phase() === 'Stopped', 'it is written');
    expect((await call('add', {}, 'c1')).isError).toBe(true);
    expect(effects['add']).toBe(1);
  });

  test('[R07] a person says to run it again: once, with the first call’s key', async () => {
    lose();
    await call('add', {}, 'c1');
    records.answer(only().metadata.name, 'runAgain');
    expect(said(await call('add', {}, 'c1'))).toBe('made 2');
    expect(said(await call('add', {}, 'c1'))).toBe('made 2');
    expect(effects['add']).toBe(2);
    expect(keys[0]).toBe(keys[1]);
    expect(only().status).toMatchObject({ phase: 'Succeeded', attempts: 2, again: true });
  });

  test('[R07] of one that a person had approved, it is made without the agent', async () => {
    waits('add');
    lose();
    const name = await asked('c1', { n: 1 }, 'add');
    records.decide(name, 'approve');
    await until(() => phase() === 'Unknown', 'it is unknown');
    records.answer(name, 'runAgain');
    await until(() => phase() === 'Succeeded', 'it is made again');
    expect(effects['add']).toBe(2);
    expect(keys[0]).toBe(keys[1]);
  });

  test('[R08] a stop that ends it is a known outcome', async () => {
    fake.functions['add'] = act(() => undefined);
    const running = call('add', {}, 'c1');
    await until(() => effects['add'] === 1, 'it runs');
    world.put('Stop', 'incident', { tool: 'acme', because: 'Incident 12' });
    expect(outcome(await running)).toBe('stopped');
    expect(phase()).toBe('Stopped');
    world.remove('Stop', 'incident');
    expect(outcome(await call('add', {}, 'c1'))).toBe('stopped');
    expect(effects['add']).toBe(1);
  });
});
