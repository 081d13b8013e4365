/** Agents and tools that mean harm: whatever they send, nobody else is harmed by it and nothing of it stays. */
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import type { GatewayLimits } from '../../../src/gateway/gateway.ts';
import { type FakeTool, startFakeTool, text } from './support/fakeTool.ts';
import {
  callTool,
  ENVELOPE,
  initialize,
  legacy,
  modern,
  reviewOf,
  send,
  startWorld,
  token,
  until,
  type World,
} from './support/world.ts';

let world: World;
const fakes: FakeTool[] = [];

async function start(limits: Partial<GatewayLimits> = {}): Promise<FakeTool> {
  world = await startWorld(limits);
  const fake = await tool('acme');
  world.agent('reviewer', ['acme.*', 'evil.*']);
  await world.listed(['acme__act']);
  return fake;
}

async function tool(name: string, listed?: object[]): Promise<FakeTool> {
  const fake = await startFakeTool({ act: ({ args }) => text(JSON.stringify(args)) });
  if (listed !== undefined) fake.listed = listed;
  fakes.push(fake);
  world.tool(name);
  world.pod(name, fake);
  return fake;
}

afterEach(async () => {
  await Promise.all([world.close(), ...fakes.splice(0).map((fake) => fake.close())]);
  expect(world.problems).toEqual([]);
});

function raw(): Promise<Socket> {
  return new Promise((resolve) => {
    const socket = connect(Number(world.url.port), '127.0.0.1', () => resolve(socket));
    socket.on('error', () => {});
  });
}

function head(method: string, headers: Record<string, string>, bearer = token()): string {
  const all = {
    host: 'x',
    accept: 'application/json, text/event-stream',
    authorization: `Bearer ${bearer}`,
    ...headers,
  };
  return `${method} /mcp HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`;
}

function post(method: string, params: object, headers: Record<string, string> = {}): string {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: ENVELOPE } });
  return (
    head('POST', {
      'content-type': 'application/json',
      'content-length': String(Buffer.byteLength(body)),
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...headers,
    }) + body
  );
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe('clients that leave', () => {
  test('one that leaves while its token is reviewed leaves no stream behind', async () => {
    await start({ maxStreams: 4 });
    const session = await initialize(world, { token: token('acme', 'reviewer', 'node1', 'pod-2') });
    const bearer = token('acme', 'reviewer', 'node1', 'pod-2');
    const late = `${bearer}x`;
    const asked = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<void>();
    world.review = async (written) => {
      if (written === late) {
        asked.resolve();
        await answer.promise;
      }
      return reviewOf(written);
    };
    const rude = await Promise.all(Array.from({ length: 8 }, raw));
    for (const socket of rude) socket.write(head('GET', session, late));
    await asked.promise;
    await sleep(50);
    for (const socket of rude) socket.destroy();
    await until(() => world.sockets() <= 2, 'the connections are gone');
    answer.resolve();
    await sleep(50);
    const client = new AbortController();
    const response = await fetch(world.url, {
      headers: {
        accept: 'text/event-stream',
        authorization: `Bearer ${token('acme', 'reviewer', 'node1', 'pod-2')}`,
        ...session,
      },
      signal: client.signal,
    });
    expect(response.status).toBe(200);
    client.abort();
    await until(() => world.gateway.holds().requests === 0, 'nothing is held');
  });

  test('requests behind one that is not answered end with their connection', async () => {
    const fake = await start({ maxStreams: 4 });
    let closed = 0;
    fake.functions = {
      act: ({ closed: gone }) => {
        void gone.then(() => closed++);
        return undefined;
      },
    };
    const session = await initialize(world);
    const call = post('tools/call', { name: 'acme__act', arguments: {} }, { 'mcp-name': 'acme__act' });
    const rude = await raw();
    rude.write(call + call + head('GET', session) + head('GET', session));
    await until(() => fake.runs['act'] === 2, 'both calls run');
    rude.destroy();
    await until(() => closed === 2, 'both calls were cancelled');
    await until(() => world.gateway.callsInFlight() === 0 && world.gateway.holds().requests === 0, 'nothing is held');
    // Streams that nobody reads would have taken these places.
    const more = await Promise.all(Array.from({ length: 4 }, raw));
    const heads = more.map(
      (socket) => new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data)))),
    );
    for (const socket of more) socket.write(head('GET', session));
    for (const answered of await Promise.all(heads)) expect(answered).toContain('200 OK');
    for (const socket of more) socket.destroy();
  });
});

describe('one agent’s share', () => {
  test('an agent’s event streams do not take the places of another’s', async () => {
    await start({ maxStreams: 16, streamsPerAgent: 8 });
    world.agent('other', ['acme.*'], { serviceAccounts: ['other'] });
    const session = await initialize(world);
    const many = await Promise.all(Array.from({ length: 20 }, raw));
    for (const socket of many) socket.write(head('GET', session));
    await sleep(200);
    const other = token('acme', 'other');
    const answered = await initialize(world, { token: other });
    const socket = await raw();
    const first = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
    socket.write(head('GET', answered, other));
    expect(await first).toContain('200 OK');
    for (const each of [...many, socket]) each.destroy();
  });
});

describe('large answers', () => {
  const MEBIBYTE = 1024 * 1024;

  test.each([
    ['as JSON', false],
    ['as an event stream', true],
  ])('[I12] %s, to many calls at once, are read as there is room, and none is lost', async (_, stream) => {
    const fake = await start({ heldBytesPerAgent: 8 * MEBIBYTE, heldBytes: 64 * MEBIBYTE });
    fake.functions = {
      act: ({ event, id, res }) => {
        const answer = text('x'.repeat(3 * MEBIBYTE));
        if (!stream) return answer;
        event({ jsonrpc: '2.0', id, result: { resultType: 'complete', ...answer } });
        res.end();
        return undefined;
      },
    };
    let most = 0;
    const watch = setInterval(() => {
      most = Math.max(most, world.gateway.holds().bytes);
    }, 1);
    const answers = await Promise.all(Array.from({ length: 24 }, () => callTool(world, 'acme__act')));
    clearInterval(watch);
    for (const { body } of answers) expect(body.result.content[0].text).toHaveLength(3 * MEBIBYTE);
    expect(fake.runs['act']).toBe(24);
    // One that is read whatever is held, and what is written of those before it.
    expect(most).toBeLessThan(20 * MEBIBYTE);
    await until(() => world.gateway.holds().bytes === 0, 'nothing is held');
  });
});

describe('a hostile tool', () => {
  const deep = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);

  test.each([
    ['default', (value: unknown) => ({ inputSchema: { type: 'object', default: value } })],
    ['_meta', (value: unknown) => ({ inputSchema: { type: 'object' }, _meta: { x: value } })],
    ['icons', (value: unknown) => ({ inputSchema: { type: 'object' }, icons: [{ src: value }] })],
    ['an unknown keyword', (value: unknown) => ({ inputSchema: { type: 'object', 'x-own': value } })],
  ])('[I12] a definition nested deeply in %s is held back, alone', async (_, define) => {
    await start();
    await tool('evil', [
      { name: 'deep', ...define(deep(150)) },
      { name: 'good', inputSchema: { type: 'object' } },
    ]);
    await world.listed(['acme__act', 'evil__good']);
  });

  test('[I12] names that would be shown alike are held back: two functions of one name break a client’s whole list', async () => {
    await start();
    const long = `${'long'.repeat(20)}`;
    const evil = await tool('evil', [{ name: long, inputSchema: { type: 'object' } }]);
    let shown = '';
    await until(() => evil.lists > 0, 'listed');
    for (let tries = 0; tries < 100 && shown === ''; tries += 1) {
      const { body } = await modern(world, 'tools/list', {});
      shown =
        body.result.tools
          .map((each: { name: string }) => each.name)
          .find((name: string) => name.startsWith('evil__')) ?? '';
      await sleep(20);
    }
    const twin = shown.slice('evil__'.length);
    evil.listed = [long, twin, 'good'].map((name) => ({ name, inputSchema: { type: 'object' } }));
    evil.changed();
    await world.listed(['acme__act', 'evil__good']);
    const before = { ...evil.runs };
    const { body } = await callTool(world, shown);
    expect(body.result).toMatchObject({ isError: true, _meta: { 'ai.oz0/outcome': 'not-started' } });
    expect(evil.runs).toEqual(before);
  });
});

describe('hostile bodies', () => {
  test.each([
    ['arrays', '['.repeat(100_000) + ']'.repeat(100_000)],
    ['objects', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
  ])('deeply nested %s are refused, in both eras, and not tried again and again', async (_, nested) => {
    const fake = await start();
    const session = await initialize(world);
    const params = `{"name":"acme__act","arguments":{"x":${nested}},"_meta":${JSON.stringify(ENVELOPE)}}`;
    const began = performance.now();
    const answers = [
      await send(world, 'POST', `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`, {
        headers: { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'acme__act' },
      }),
      await send(
        world,
        'POST',
        `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params.replace(/,"_meta.*$/, '}')}}`,
        {
          headers: session,
        },
      ),
    ];
    for (const answer of answers) expect(answer.status).toBe(400);
    expect(performance.now() - began).toBeLessThan(15_000);
    expect(fake.runs['act'] ?? 0).toBe(0);
  });

  test('a call is not changed on its way: numbers that would not survive are refused', async () => {
    const fake = await start();
    const session = await initialize(world);
    for (const number of ['12345678901234567890', '-9007199254740993', '1e400']) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"acme__act","arguments":{"x":[${number}]}}}`;
      const answer = await send(world, 'POST', body, { headers: session });
      expect([number, answer.body.error?.code]).toEqual([number, -32602]);
    }
    expect(fake.runs['act'] ?? 0).toBe(0);
    for (const number of ['9007199254740991', '-0.5', '1e21', '1.5e300', '0.1']) {
      const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"acme__act","arguments":{"x":${number}}}}`;
      expect((await send(world, 'POST', body, { headers: session })).body.error).toBeUndefined();
    }
  });

  test('keys that name a prototype are plain keys', async () => {
    await start();
    const session = await initialize(world);
    const args = '{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}';
    const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"acme__act","arguments":${args},"_meta":{"__proto__":{"progressToken":1}}}}`;
    const answer = await send(world, 'POST', body, { headers: session });
    expect(answer.body.result.content[0].text).toBe(args);
    expect('polluted' in {}).toBe(false);
    expect((await legacy(world, session, '__proto__')).body.error.code).toBe(-32601);
  });
});
