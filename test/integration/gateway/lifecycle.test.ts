/** Streams, slow and rude clients, two callers at once, and the end of a gateway. */
import { connect } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeTool, startFakeTool, text } from './support/fakeTool.ts';
import {
  callTool,
  ENVELOPE,
  initialize,
  legacy,
  readMessages,
  send,
  startWorld,
  token,
  until,
  type World,
} from './support/world.ts';

let world: World;
let fake: FakeTool;

async function start(limits: Parameters<typeof startWorld>[0] = {}): Promise<void> {
  world = await startWorld(limits);
  fake = await startFakeTool({ act: ({ args }) => text(JSON.stringify(args)) });
  world.tool('acme');
  world.agent('reviewer', ['acme.*']);
  world.pod('acme', fake);
  await world.listed(['acme__act']);
}

beforeEach(() => start());

afterEach(async () => {
  await Promise.all([world.close(), fake.close()]);
  expect(world.problems).toEqual([]);
});

function collectGarbage(): void {
  setFlagsFromString('--expose_gc');
  runInNewContext('gc')();
}

/** Reads a stream as it comes. */
async function openStream(method: string, body: string | undefined, headers: Record<string, string>) {
  const client = new AbortController();
  const response = await fetch(world.url, {
    method,
    headers: {
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token()}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body }),
    signal: client.signal,
  });
  const state = { status: response.status, written: '', ended: false };
  const messages = () => readMessages('text/event-stream', state.written);
  void (async () => {
    try {
      const decoder = new TextDecoder();
      for await (const chunk of response.body ?? []) state.written += decoder.decode(chunk, { stream: true });
    } catch {
      // Ended by us.
    }
    state.ended = true;
  })();
  return { state, messages, close: () => client.abort() };
}

const LISTEN = JSON.stringify({
  jsonrpc: '2.0',
  id: 'sub',
  method: 'subscriptions/listen',
  params: { notifications: { toolsListChanged: true }, _meta: ENVELOPE },
});
const LISTEN_HEADERS = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'subscriptions/listen' };

describe('change notices', () => {
  test('[R12] who was given a part of a result is told that there is a way to read on', async () => {
    await Promise.all([world.close(), fake.close()]);
    await start({ resultTokens: 10 });
    fake.functions['act'] = () => text('x'.repeat(1_000));
    const stream = await openStream('POST', LISTEN, LISTEN_HEADERS);
    await until(() => stream.messages().length === 1, 'acknowledged');
    await callTool(world, 'acme__act');
    await until(() => stream.messages().length === 2, 'told');
    await world.listed(['acme__act', 'oz__read_on']);
    stream.close();
  });

  test('[N04] both eras are told when their own listing changed, and not when another’s did', async () => {
    const session = await initialize(world);
    const modern = await openStream('POST', LISTEN, LISTEN_HEADERS);
    const old = await openStream('GET', undefined, session);
    expect([modern.state.status, old.state.status]).toEqual([200, 200]);
    await until(() => modern.messages().length === 1, 'acknowledged');
    expect(modern.messages()[0]).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: { toolsListChanged: true } },
    });
    world.tool('other', { namespace: 'other' });
    world.tool('unrelated');
    world.agent('someone', ['acme.act'], { serviceAccounts: ['someone'] });
    await new Promise((resolve) => setTimeout(resolve, 250));
    expect(modern.messages()).toHaveLength(1);
    expect(old.messages()).toHaveLength(0);
    fake.functions['more'] = () => text('more');
    fake.changed();
    await until(() => modern.messages().length === 2 && old.messages().length === 1, 'told');
    expect(modern.messages()[1]).toMatchObject({
      method: 'notifications/tools/list_changed',
      params: { _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub' } },
    });
    expect(old.messages()[0]).toEqual({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
    modern.close();
    old.close();
  });

  test('a chatty tool is told of once in a while, not each time', async () => {
    const stream = await openStream('POST', LISTEN, LISTEN_HEADERS);
    for (let index = 0; index < 50; index += 1) {
      world.agent('reviewer', index % 2 === 0 ? ['acme.*', 'x.y'] : ['acme.act']);
      world.agent('reviewer', []);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(stream.messages().length).toBeLessThan(12);
    stream.close();
  });

  test('quiet streams get comments; a grant taken away does not break them', async () => {
    await Promise.all([world.close(), fake.close()]);
    await start({ keepAliveMs: 50 });
    const stream = await openStream('POST', LISTEN, LISTEN_HEADERS);
    await until(() => stream.state.written.split(': keep-alive').length > 3, 'comments');
    expect(stream.messages()).toHaveLength(1);
    stream.close();
  });

  test('a long call gets comments too, and its answer on the same stream', async () => {
    await Promise.all([world.close(), fake.close()]);
    await start({ keepAliveMs: 50 });
    fake.functions['act'] = () => new Promise((resolve) => setTimeout(() => resolve(text('late')), 400));
    const { text: written, body, headers } = await callTool(world, 'acme__act');
    expect(headers.get('content-type')).toBe('text/event-stream');
    expect(written).toContain(': keep-alive');
    expect(body.result.content[0].text).toBe('late');
  });

  test('more streams than may be open are refused', async () => {
    await Promise.all([world.close(), fake.close()]);
    await start({ maxStreams: 2 });
    const streams = await Promise.all([1, 2, 3].map(() => openStream('POST', LISTEN, LISTEN_HEADERS)));
    expect(streams.map(({ state }) => state.status).sort()).toEqual([200, 200, 503]);
    for (const stream of streams) stream.close();
  });
});

describe('rude and slow clients', () => {
  test('[case 30] the event stream is optional: never opened, or opened and never read', async () => {
    await Promise.all([world.close(), fake.close()]);
    await start({ keepAliveMs: 50 });
    const session = await initialize(world);
    expect((await legacy(world, session, 'tools/call', { name: 'acme__act' })).status).toBe(200);
    const socket = connect(Number(world.url.port), '127.0.0.1');
    socket.on('error', () => {});
    socket.pause();
    const lines = Object.entries({ ...session, accept: 'text/event-stream', authorization: `Bearer ${token()}` });
    socket.write(
      `GET /mcp HTTP/1.1\r\nHost: x\r\n${lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')}\r\n\r\n`,
    );
    for (let index = 0; index < 30; index += 1) {
      fake.functions[`more${index}`] = () => text('x');
      fake.changed();
      const called = await legacy(world, session, 'tools/call', { name: 'acme__act', arguments: { index } });
      expect(called.body.result.content[0].text).toBe(`{"index":${index}}`);
    }
    socket.destroy();
  });

  test('[case 29] a reader who takes nothing of a large answer is hung up on', async () => {
    await Promise.all([world.close(), fake.close()]);
    await start({ keepAliveMs: 100, maxAnswerBytes: 64 * 1024 * 1024 });
    fake.functions['act'] = () => text('x'.repeat(30_000_000));
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'acme__act', _meta: ENVELOPE },
    });
    const socket = connect(Number(world.url.port), '127.0.0.1');
    const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
    socket.on('error', () => {});
    socket.pause();
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token()}\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: acme__act\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    await until(() => world.records.length === 1, 'the call ended');
    await until(() => world.gateway.holds().requests === 0, 'the answer is given up', 10_000);
    socket.resume();
    await closed;
  });

  test('[case 14] thousands of short sessions with rude ends: nothing is left', async () => {
    const round = async (count: number): Promise<void> => {
      let next = 0;
      const worker = async (): Promise<void> => {
        while (next < count) {
          next += 1;
          const client = new AbortController();
          const session = await initialize(world);
          const call = legacy(world, session, 'tools/call', { name: 'acme__act' }, { signal: client.signal });
          if (next % 3 === 0) client.abort();
          await call.catch(() => {});
        }
      };
      await Promise.all(Array.from({ length: 16 }, worker));
    };
    await round(500);
    world.records.length = 0;
    fake.calls.length = 0;
    collectGarbage();
    const heap = process.memoryUsage().heapUsed;
    await round(2_500);
    world.records.length = 0;
    fake.calls.length = 0;
    await until(() => world.gateway.holds().requests === 0, 'no request is open');
    expect(world.gateway.callsInFlight()).toBe(0);
    expect(world.gateway.holds()).toEqual({ requests: 0, bytes: 0, pods: 1, tokens: 1 });
    collectGarbage();
    expect(process.memoryUsage().heapUsed - heap).toBeLessThan(20_000_000);
  }, 120_000);

  test('two agents with the same JSON-RPC ids at once, progress interleaved: no cross-talk', async () => {
    fake.functions['act'] = async (call) => {
      call.progress(1, String(call.args['who']));
      await new Promise((resolve) => setImmediate(resolve));
      call.progress(2, String(call.args['who']));
      return text(String(call.args['who']));
    };
    world.agent('second', ['acme.*'], { serviceAccounts: ['second'] });
    const agent = async (name: string): Promise<number> => {
      const as = token('acme', name);
      let wrong = 0;
      for (let id = 0; id < 1_000; id += 1) {
        const { messages } = await callTool(
          world,
          'acme__act',
          { who: `${name} ${id}` },
          { token: as, id, meta: { progressToken: 1 } },
        );
        const said = messages.map((message) => message.params?.message ?? message.result.content[0].text);
        if (said.length !== 3 || said.some((each) => each !== `${name} ${id}`) || messages[2].id !== id) wrong += 1;
      }
      return wrong;
    };
    expect(await Promise.all(['reviewer', 'second', 'reviewer', 'second'].map(agent))).toEqual([0, 0, 0, 0]);
  }, 60_000);

  test('[I12] [case 29] what one agent makes the gateway hold is bounded, and harms no other', async () => {
    await Promise.all([world.close(), fake.close()]);
    await start({ heldBytesPerAgent: 3_000_000, bodyTimeoutMs: 700 });
    world.agent('second', ['acme.*'], { serviceAccounts: ['second'] });
    const sockets = Array.from({ length: 6 }, () => {
      const socket = connect(Number(world.url.port), '127.0.0.1');
      const state = { answer: '' };
      socket.on('data', (chunk) => {
        state.answer += chunk;
      });
      socket.on('error', () => {});
      socket.write(
        `POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token()}\r\nContent-Type: application/json\r\nContent-Length: 2000000\r\n\r\n`,
      );
      socket.write('x'.repeat(1_000_000));
      return { socket, state };
    });
    await until(() => sockets.filter(({ state }) => state.answer.includes(' 503 ')).length >= 3, 'refused');
    const other = await callTool(world, 'acme__act', {}, { token: token('acme', 'second') });
    expect(other.status).toBe(200);
    // The others came too slowly.
    await until(() => sockets.every(({ state }) => / (503|408) /.test(state.answer)), 'all are answered');
    for (const { socket } of sockets) socket.destroy();
    expect((await callTool(world, 'acme__act')).status).toBe(200);
  });

  test('calls at once are limited for each agent, and said', async () => {
    await Promise.all([world.close(), fake.close()]);
    await start({ callsPerAgent: 3 });
    const gates: (() => void)[] = [];
    fake.functions['act'] = () => new Promise((resolve) => gates.push(() => resolve(text('done'))));
    const running = [1, 2, 3].map(() => callTool(world, 'acme__act'));
    await until(() => gates.length === 3, 'three run');
    const { body } = await callTool(world, 'acme__act');
    expect(body.result).toMatchObject({ isError: true, _meta: { 'ai.oz0/reason': 'gateway-busy' } });
    for (const gate of gates) gate();
    for (const { body: answered } of await Promise.all(running)) expect(answered.result.content[0].text).toBe('done');
    expect(fake.runs['act']).toBe(3);
  });
});

describe('the end of a gateway', () => {
  test('[case 18] [R11] ten running calls: those that end in time are answered, the rest are told as unknown', async () => {
    const gates: (() => void)[] = [];
    fake.functions['act'] = ({ args }) =>
      args['slow'] === true ? undefined : new Promise((resolve) => gates.push(() => resolve(text('done'))));
    const quick = Array.from({ length: 5 }, () => callTool(world, 'acme__act'));
    const slow = Array.from({ length: 5 }, () => callTool(world, 'acme__act', { slow: true }));
    const stream = await openStream('POST', LISTEN, LISTEN_HEADERS);
    const old = await openStream('GET', undefined, await initialize(world));
    await until(() => fake.calls.length === 10, 'ten run');
    const started = performance.now();
    const closed = world.gateway.close(400);
    await until(() => stream.state.ended && old.state.ended, 'streams end');
    expect(stream.messages().at(-1)).toMatchObject({ id: 'sub', result: { resultType: 'complete' } });
    for (const gate of gates) gate();
    for (const { body } of await Promise.all(quick)) expect(body.result.content[0].text).toBe('done');
    for (const { body } of await Promise.all(slow)) {
      expect(body.result).toMatchObject({ isError: true, _meta: { 'ai.oz0/outcome': 'unknown' } });
    }
    await closed;
    expect(performance.now() - started).toBeLessThan(10_000);
    expect(world.records).toHaveLength(10);
    expect(fake.runs['act']).toBe(10);
  });

  test('a pod that stops being ready keeps the calls that it has', async () => {
    const gates: (() => void)[] = [];
    fake.functions['act'] = () => new Promise((resolve) => gates.push(() => resolve(text('done'))));
    world.pod('acme', fake, { uid: 'drains' });
    world.pod('acme', undefined, { uid: 'pod-of-acme-1' });
    const running = callTool(world, 'acme__act');
    await until(() => gates.length === 1, 'it runs');
    for (const uid of ['drains', 'pod-of-acme-1']) world.pod('acme', undefined, { uid });
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(fake.openSockets()).toBeGreaterThan(0);
    gates[0]?.();
    expect((await running).body.result.content[0].text).toBe('done');
    await until(() => fake.openSockets() === 0, 'its connections are closed');
  });

  test('DELETE ends nothing that must be remembered, and never runs anything', async () => {
    const session = await initialize(world);
    expect((await send(world, 'DELETE', undefined, { headers: session })).status).toBe(204);
    expect((await send(world, 'DELETE', undefined, { headers: { ...session, 'mcp-session-id': 'x' } })).status).toBe(
      404,
    );
  });
});
