/** One call, one attempt: what is retried, what never is, and what the model is told. Side effects are counted at the tool. */
import { createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeCall, type FakeTool, startFakeTool, text } from './support/fakeTool.ts';
import { callTool, initialize, legacy, modern, send, startWorld, token, until, type World } from './support/world.ts';

let world: World;
let fake: FakeTool;

beforeEach(async () => {
  world = await startWorld({ dialWindowMs: 600, maxAnswerBytes: 256 * 1024 });
  fake = await startFakeTool({ act: () => text('done') });
  world.tool('acme', { timeout: '1s' });
  world.agent('reviewer', ['acme.*']);
});

afterEach(async () => {
  await world.close();
  await fake.close();
  expect(world.problems).toEqual([]);
});

async function ready(): Promise<void> {
  world.pod('acme', fake);
  await world.listed(Object.keys(fake.functions).map((name) => `acme__${name}`));
}

const UNKNOWN = { isError: true, _meta: { 'ai.oz0/outcome': 'unknown' } };

describe('[R01] one attempt, also when it breaks', () => {
  const cases: [string, string, (call: FakeCall) => unknown][] = [
    ['(a) accepts and never answers', 'timeout', () => undefined],
    ['(b) reads all, then resets', 'connection', ({ req }) => void req.socket.resetAndDestroy()],
    [
      '(d) answers headers, then hangs',
      'timeout',
      ({ res }) => void res.writeHead(200, { 'content-type': 'application/json' }).flushHeaders(),
    ],
    [
      '(e) sends half an event, then ends',
      'connection',
      ({ res }) => {
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        res.end('data: {"jsonrpc":"2.0","id"');
      },
    ],
    [
      'answers with a stream that ends without an answer',
      'connection',
      ({ res }) => void res.writeHead(200, { 'content-type': 'text/event-stream' }).end(),
    ],
    [
      '(h) answers another id',
      'unreadable',
      ({ res, id }) => {
        const body = JSON.stringify({ jsonrpc: '2.0', id: Number(id) + 1, result: text('other') });
        res.writeHead(200, { 'content-type': 'application/json' }).end(body);
      },
    ],
    [
      '(h) answers another id on a stream',
      'connection',
      ({ event, res, id }) => {
        event({ id: String(id), result: text('other') });
        res.end();
      },
    ],
    [
      '(i) 200 with HTML',
      'unreadable',
      ({ res }) => void res.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
    ],
    ['500 after acting', 'unreadable', ({ res }) => void res.writeHead(500).end('oops')],
    ['503 with a delay', 'unreadable', ({ res }) => void res.writeHead(503, { 'retry-after': '1' }).end()],
    ['429 with a delay', 'unreadable', ({ res }) => void res.writeHead(429, { 'retry-after': '1' }).end()],
    ['307 to itself', 'unreadable', ({ res }) => void res.writeHead(307, { location: '/mcp' }).end()],
    ['a result that is none', 'unreadable', () => ({ content: 'text' })],
    ['a question in place of a result', 'unreadable', () => ({ resultType: 'input_required', inputRequests: {} })],
    ['a task in place of a result', 'unreadable', () => ({ resultType: 'task', taskId: 't' })],
    ['too large an answer', 'too-large', () => text('x'.repeat(300_000))],
    [
      'too large an answer on a stream',
      'too-large',
      (call) => {
        call.progress(1);
        return text('x'.repeat(300_000));
      },
    ],
  ];

  test.each(cases)('[R01] [case 70] %s: unknown, told, made once', async (_, reason, act) => {
    fake.functions['act'] = act;
    await ready();
    const { status, body } = await callTool(world, 'acme__act', { n: 1 });
    expect(status).toBe(200);
    expect(body.result).toMatchObject(UNKNOWN);
    expect(body.result._meta['ai.oz0/reason']).toBe(reason);
    expect(body.result.content[0].text).toMatch(/outcome of this call is unknown/);
    expect(body.result.resultType).toBe('complete');
    // Long enough for any retry to have happened.
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(fake.runs['act']).toBe(1);
    expect(world.records.at(-1)).toMatchObject({ outcome: 'unknown', reason, dials: 1 });
  });

  test('(c) reads half of the request, then resets: its journal never saw it, so it is known not to be made', async () => {
    await ready();
    let requests = 0;
    fake.intercept = (req) => {
      if (req.headers['mcp-method'] !== 'tools/call') return false;
      requests += 1;
      req.once('data', () => req.socket.resetAndDestroy());
      return true;
    };
    const { body } = await callTool(world, 'acme__act', { filler: 'x'.repeat(1_000_000) });
    expect(body.result).toMatchObject({ isError: true, _meta: { 'ai.oz0/outcome': 'not-started' } });
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(requests).toBe(1);
  });

  test('(f) the result, then no end of the stream: answered at once, and the connection is given up', async () => {
    fake.functions['act'] = ({ event, id }) => void event({ id, result: text('done') });
    await ready();
    // Not after the timeout, which would be told as unknown.
    const { body } = await callTool(world, 'acme__act');
    expect(body.result.content[0].text).toBe('done');
    await fake.calls[0]?.closed;
  });

  test('(g) two results: the first counts', async () => {
    fake.functions['act'] = ({ event, res, id }) => {
      event({ id, result: text('first') });
      event({ id, result: text('second') });
      res.end();
    };
    await ready();
    const { body, messages } = await callTool(world, 'acme__act');
    expect(messages).toHaveLength(1);
    expect(body.result.content[0].text).toBe('first');
  });

  test('(j) it acts and then fails, a hundred times: a hundred side effects', async () => {
    let effects = 0;
    fake.functions['act'] = ({ req }) => {
      effects += 1;
      req.socket.destroy();
    };
    await ready();
    const answers = await Promise.all(Array.from({ length: 100 }, () => callTool(world, 'acme__act')));
    for (const { body } of answers) expect(body.result).toMatchObject(UNKNOWN);
    expect(effects).toBe(100);
  });

  test('[case 70] [case 126] an error that the tool answers is an answer, and no ill health', async () => {
    fake.functions['act'] = () => ({ ...text('no such branch'), isError: true });
    await ready();
    for (let index = 0; index < 10; index += 1) {
      const { body } = await callTool(world, 'acme__act');
      expect(body.result).toMatchObject({ isError: true, content: [{ type: 'text', text: 'no such branch' }] });
      expect(body.result._meta?.['ai.oz0/outcome']).toBeUndefined();
    }
    expect(fake.runs['act']).toBe(10);
    expect((await modern(world, 'tools/list', {})).body.result.tools).toHaveLength(1);
    expect(world.records.at(-1)).toMatchObject({ outcome: 'tool-error', dials: 1 });
  });

  test.each([
    [-32602, -32602],
    [-32603, -32603],
    [-32601, -32603],
    [-32021, -32603],
    [-32020, -32603],
    [-32002, -32603],
    [-32042, -32603],
    [-32000, -32603],
    [1234, 1234],
  ])('a protocol error of the tool, %i, is passed on as %i, without its data', async (from, to) => {
    fake.functions['act'] = ({ res, id }) => {
      const error = { code: from, message: 'bad', data: { secret: 1 } };
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    };
    await ready();
    const { status, body } = await callTool(world, 'acme__act');
    expect(status).toBe(200);
    expect(body.error).toEqual({ code: to, message: 'bad' });
    expect(fake.runs['act']).toBe(1);
  });
});

describe('nothing was sent: another dial is no second attempt', () => {
  test('[R01] a connection refused is dialled again until the pod is back', async () => {
    await ready();
    await fake.refuse();
    const running = callTool(world, 'acme__act');
    await new Promise((resolve) => setTimeout(resolve, 150));
    await fake.reopen();
    expect((await running).body.result.content[0].text).toBe('done');
    expect(fake.runs['act']).toBe(1);
    expect(world.records.at(-1)?.dials).toBeGreaterThan(1);
  });

  test('[R08] refused for longer than the window: told as not made', async () => {
    await ready();
    await fake.refuse();
    const { body } = await callTool(world, 'acme__act');
    expect(body.result).toMatchObject({
      isError: true,
      _meta: { 'ai.oz0/outcome': 'not-started', 'ai.oz0/reason': 'unreachable' },
    });
    expect(body.result.content[0].text).toMatch(/was not made/);
    await fake.reopen();
    expect(fake.runs['act'] ?? 0).toBe(0);
  });

  test.each(['draining', 'down', 'not-ready'])(
    '[R08] a refusal as %s is dialled again; as busy it is told at once',
    async (reason) => {
      let refusals = 0;
      fake.functions['act'] = ({ res, id }) => {
        refusals += 1;
        if (refusals > 2) return text('done');
        const error = { code: -32603, message: reason, data: { 'ai.oz0/outcome': 'not-started', reason } };
        res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
        return undefined;
      };
      await ready();
      expect((await callTool(world, 'acme__act')).body.result.content[0].text).toBe('done');
      expect(refusals).toBe(3);
    },
  );

  test('[R09] busy is reported, not retried', async () => {
    fake.functions['act'] = ({ res, id }) => {
      const error = { code: -32603, message: 'busy', data: { 'ai.oz0/outcome': 'not-started', reason: 'busy' } };
      res.writeHead(503, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    };
    await ready();
    const { body } = await callTool(world, 'acme__act');
    expect(body.result).toMatchObject({ isError: true, _meta: { 'ai.oz0/reason': 'busy' } });
    expect(fake.runs['act']).toBe(1);
  });

  test('what the sidecar tells as unknown is told as unknown', async () => {
    fake.functions['act'] = ({ res, id }) => {
      const error = { code: -32603, message: 'x', data: { 'ai.oz0/outcome': 'unknown', reason: 'process-ended' } };
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, error }));
    };
    await ready();
    const { body } = await callTool(world, 'acme__act');
    expect(body.result).toMatchObject({ ...UNKNOWN, _meta: { 'ai.oz0/reason': 'process-ended' } });
    expect(fake.runs['act']).toBe(1);
  });

  test('[case 17] a call that comes before the tool was ever listed waits for it', async () => {
    const calls = Array.from({ length: 10 }, () => callTool(world, 'acme__act'));
    await new Promise((resolve) => setTimeout(resolve, 100));
    world.pod('acme', fake);
    for (const { body } of await Promise.all(calls)) expect(body.result.content[0].text).toBe('done');
    expect(fake.runs['act']).toBe(10);
  });

  test('[case 10] fifty first calls at once: fifty runs, one listing', async () => {
    world.pod('acme', fake);
    const answers = await Promise.all(Array.from({ length: 50 }, () => callTool(world, 'acme__act')));
    for (const { body } of answers) expect(body.result.content[0].text).toBe('done');
    expect(fake.runs['act']).toBe(50);
    expect(fake.lists).toBeLessThanOrEqual(2);
    expect(world.reviews).toHaveLength(1);
  });

  test('[case 6] pods are replaced under steady calls: no error reaches the client', async () => {
    const second = await startFakeTool({ act: () => text('done') });
    try {
      world.pod('acme', fake, { uid: 'first' });
      await world.listed(['acme__act']);
      let going = true;
      const problems: unknown[] = [];
      let calls = 0;
      const caller = async (): Promise<void> => {
        while (going) {
          const { body } = await callTool(world, 'acme__act');
          calls += 1;
          if (body.result?.content?.[0]?.text !== 'done') problems.push(body);
        }
      };
      const callers = [caller(), caller(), caller()];
      for (let round = 0; round < 6; round += 1) {
        const [from, to] = round % 2 === 0 ? ['first', 'second'] : ['second', 'first'];
        await new Promise((resolve) => setTimeout(resolve, 60));
        // The old one goes before the new one is there, as at a node with one slot.
        world.pod('acme', undefined, { uid: from });
        catalogRemove(from);
        await new Promise((resolve) => setTimeout(resolve, 40));
        world.pod('acme', to === 'first' ? fake : second, { uid: to });
      }
      going = false;
      await Promise.all(callers);
      expect(problems).toEqual([]);
      expect(calls).toBeGreaterThan(10);
      expect((fake.runs['act'] ?? 0) + (second.runs['act'] ?? 0)).toBe(calls);
    } finally {
      await second.close();
    }

    function catalogRemove(uid: string): void {
      world.pod('acme', undefined, { uid });
    }
  });

  test('[case 8] every tenth connection is closed half-way: the others are not harmed', async () => {
    await ready();
    let requests = 0;
    fake.intercept = (req) => {
      if (req.headers['mcp-method'] !== 'tools/call') return false;
      requests += 1;
      if (requests % 10 !== 0) return false;
      req.socket.destroy();
      return true;
    };
    let unknown = 0;
    for (let index = 0; index < 50; index += 1) {
      const { body } = await callTool(world, 'acme__act');
      if (body.result.isError === true) unknown += 1;
      else expect(body.result.content[0].text).toBe('done');
    }
    expect(requests).toBe(50);
    expect(unknown).toBe(5);
  });
});

describe('[R09] timeouts, cancellation, progress', () => {
  test('[R09] the timeout stops the call, and progress does not extend it', async () => {
    fake.functions['act'] = async (call) => {
      for (let step = 0; step < 30; step += 1) {
        call.progress(step);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    };
    await ready();
    const started = performance.now();
    const { body, messages } = await callTool(world, 'acme__act', {}, { meta: { progressToken: 'p' } });
    expect(performance.now() - started).toBeLessThan(2_800);
    expect(body.result._meta['ai.oz0/reason']).toBe('timeout');
    expect(messages.length).toBeGreaterThan(5);
    await fake.calls[0]?.closed;
  });

  test('progress reaches the caller under its own token, before the answer', async () => {
    fake.functions['act'] = (call) => {
      call.progress(1, 'one');
      call.event({ method: 'notifications/message', params: { level: 'info', data: 'secret' } });
      call.progress(2, 'two');
      return text('done');
    };
    await ready();
    for (const progressToken of ['mine', 17]) {
      const { messages } = await callTool(world, 'acme__act', {}, { meta: { progressToken } });
      expect(messages.map((message) => message.params ?? message.result.content[0].text)).toEqual([
        { progressToken, progress: 1, message: 'one' },
        { progressToken, progress: 2, message: 'two' },
        'done',
      ]);
    }
    const quiet = await callTool(world, 'acme__act');
    expect(quiet.messages).toHaveLength(1);
    expect(quiet.headers.get('content-type')).toBe('application/json');
  });

  test('[case 27] a tool that asks back or pings in mid-call does not end it', async () => {
    fake.functions['act'] = (call) => {
      call.event({ id: 99, method: 'ping' });
      call.event({ id: 100, method: 'elicitation/create', params: {} });
      call.event({ id: call.id, method: 'sampling/createMessage', params: {} });
      return text('done');
    };
    await ready();
    expect((await callTool(world, 'acme__act')).body.result.content[0].text).toBe('done');
  });

  test('[case 24] events without a type, junk, comments, CRLF and a split inside a character', async () => {
    fake.functions['act'] = async ({ res, id }) => {
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      const answer = JSON.stringify({ jsonrpc: '2.0', id, result: text('Grüße 🎉') });
      const stream = Buffer.from(
        `: comment\r\njunk line\r\nretry: 5\r\nid: 7\r\n\r\nevent: other\ndata: {"jsonrpc":"2.0"}\n\ndata: not json\n\ndata: ${answer}\r\n\r\n`,
      );
      const middle = stream.indexOf('🎉') + 2;
      for (const part of [
        stream.subarray(0, 11),
        stream.subarray(11, middle),
        stream.subarray(middle, -3),
        stream.subarray(-3),
      ]) {
        res.write(part);
        await new Promise((resolve) => setTimeout(resolve, 15));
      }
      res.end();
    };
    await ready();
    expect((await callTool(world, 'acme__act')).body.result.content[0].text).toBe('Grüße 🎉');
  });

  test('a client of the stateless era that closes the response cancels at the tool', async () => {
    fake.functions['act'] = () => undefined;
    await ready();
    const client = new AbortController();
    const call = callTool(world, 'acme__act', {}, { signal: client.signal }).catch(() => 'gone');
    await until(() => fake.calls.length === 1, 'the call runs');
    client.abort();
    await fake.calls[0]?.closed;
    expect(await call).toBe('gone');
    await until(() => world.records.length === 1, 'it is recorded');
    expect(world.records[0]).toMatchObject({ outcome: 'cancelled', reason: 'after-sending' });
    expect(world.gateway.callsInFlight()).toBe(0);
  });

  test('in the older era notifications/cancelled cancels, of the same session only; a closed response does not', async () => {
    fake.functions['act'] = () => undefined;
    await ready();
    const [session, other] = await Promise.all([initialize(world), initialize(world)]);
    const client = new AbortController();
    const call = legacy(world, session, 'tools/call', { name: 'acme__act' }, { id: 5, signal: client.signal });
    call.catch(() => {});
    await until(() => fake.calls.length === 1, 'the call runs');
    const cancelled = JSON.stringify({
      jsonrpc: '2.0',
      method: 'notifications/cancelled',
      params: { requestId: 5, reason: 'x' },
    });
    await send(world, 'POST', cancelled, { headers: other });
    await send(world, 'POST', cancelled.replace('5', '"5"'), { headers: session });
    client.abort();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(world.records).toHaveLength(0);
    expect((await send(world, 'POST', cancelled, { headers: session })).status).toBe(202);
    await fake.calls[0]?.closed;
    await until(() => world.records.length === 1, 'it is recorded');
    expect(world.records[0]?.outcome).toBe('cancelled');
  });
});

describe('what passes, and what does not', () => {
  test("[case 15] headers of the client do not reach the tool; its own _meta keys pass, ours and the hop's do not", async () => {
    await ready();
    await callTool(
      world,
      'acme__act',
      { a: 1 },
      {
        headers: {
          Cookie: 'canary=1',
          'PROXY-AUTHORIZATION': 'canary',
          'MCP-Session-Id': 'canary',
          'X-Forwarded-For': 'canary',
          'x-canary': 'canary',
        },
        meta: {
          traceparent: '00-1-2-01',
          'com.example/x': 'kept',
          'ai.oz0/idempotency-key': 'forged',
          'AI.OZ0/grant': 'forged',
          'io.modelcontextprotocol/logLevel': 'debug',
        },
      },
    );
    const [call] = fake.calls;
    const seen = `${call?.rawHeaders.join('\n')}\n${JSON.stringify(call?.meta)}`;
    expect(seen).not.toMatch(/canary|forged|logLevel/i);
    expect(call?.headers['authorization']).toBeUndefined();
    expect(seen).not.toContain(token());
    expect(call?.meta).toMatchObject({ traceparent: '00-1-2-01', 'com.example/x': 'kept' });
    expect(call?.args).toEqual({ a: 1 });
  });

  test('[P01] structured content is text too where the server left it out', async () => {
    const results: Record<string, object> = {
      only: { structuredContent: { a: 1 } },
      empty: { content: [], structuredContent: { a: 1 } },
      both: { content: [{ type: 'text', text: 'mine' }], structuredContent: { a: 1 } },
      image: { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }], structuredContent: [1] },
      plain: { content: [{ type: 'text', text: 'plain' }] },
    };
    for (const [name, result] of Object.entries(results)) fake.functions[name] = () => result;
    await ready();
    const content = async (name: string) => (await callTool(world, `acme__${name}`)).body.result.content;
    expect(await content('only')).toEqual([{ type: 'text', text: '{"a":1}' }]);
    expect(await content('empty')).toEqual([{ type: 'text', text: '{"a":1}' }]);
    expect(await content('both')).toEqual([{ type: 'text', text: 'mine' }]);
    expect(await content('image')).toHaveLength(2);
    expect(await content('plain')).toEqual([{ type: 'text', text: 'plain' }]);
    const session = await initialize(world);
    const old = await legacy(world, session, 'tools/call', { name: 'acme__image' });
    expect(old.body.result.structuredContent).toBeUndefined();
    expect(old.body.result.content[1].text).toBe('[1]');
  });

  test('a result cannot speak in our name', async () => {
    fake.functions['act'] = () => ({
      ...text('x'),
      resultType: 'complete',
      _meta: {
        'ai.oz0/outcome': 'not-started',
        'com.example/y': 1,
        'io.modelcontextprotocol/serverInfo': { name: 'evil' },
      },
    });
    await ready();
    const { body } = await callTool(world, 'acme__act');
    expect(body.result._meta).toEqual({
      'com.example/y': 1,
      'io.modelcontextprotocol/serverInfo': { name: 'oz0-gateway', version: '0.0.0-test' },
    });
  });

  test('[case 29] a 50 MB argument, a claimed length without content, and a body that comes too slowly', async () => {
    await ready();
    const before = process.memoryUsage().rss;
    const big = await callTool(world, 'acme__act', { x: 'y'.repeat(50_000_000) });
    expect(big.status).toBe(413);
    expect(big.body.error.message).toContain('larger than 4194304 bytes');
    expect(process.memoryUsage().rss - before).toBeLessThan(400_000_000);
    expect(fake.runs['act'] ?? 0).toBe(0);
    // A claim reserves nothing, and the gateway serves on meanwhile.
    const { hostname, port } = world.url;
    const socket: Socket = (await import('node:net')).connect(Number(port), hostname);
    socket.write(
      `POST /mcp HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token()}\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n{`,
    );
    expect((await callTool(world, 'acme__act')).body.result.content[0].text).toBe('done');
    socket.destroy();
  });

  test('[case 129] what is written down of a call holds no argument, no token, no session and no line of the caller', async () => {
    await ready();
    await callTool(world, 'acme__act', { secret: 'CANARY\n{"level":"fake"}\u001b[31m' });
    await callTool(world, 'CANARY\nacme__act');
    await callTool(world, 'acme__CANARY\n\u001b[31m');
    const written = JSON.stringify(world.records);
    expect(world.records).toHaveLength(3);
    expect(written).not.toContain('CANARY');
    expect(written).not.toContain(token().slice(-40));
    expect(world.records[0]).toMatchObject({
      namespace: 'acme',
      serviceAccount: 'reviewer',
      tool: 'acme',
      function: 'act',
      outcome: 'ok',
      reason: 'none',
      dials: 1,
    });
  });

  test('[case 7] a socket that accepts and never answers: the listing has a deadline, others are not kept waiting', async () => {
    const sockets: Socket[] = [];
    const hole = createServer((socket) => void sockets.push(socket));
    await new Promise<void>((resolve) => hole.listen(0, '127.0.0.1', () => resolve()));
    const address = hole.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await ready();
    world.tool('hole');
    world.agent('reviewer', ['acme.*', 'hole.*']);
    world.pod('hole', { ...fake, port });
    const started = performance.now();
    const { body } = await modern(world, 'tools/list', {});
    expect(performance.now() - started).toBeLessThan(5_000);
    expect(body.result.tools).toHaveLength(1);
    expect(body.result._meta['ai.oz0/missing']).toEqual([{ tool: 'hole', reason: 'not-listed' }]);
    for (const socket of sockets) socket.destroy();
    hole.close();
  });
});
