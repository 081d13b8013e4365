/** What comes of a call when the server or the way to it fails: judged by what ran, never by the answer alone. */
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { Duplex } from 'node:stream';
import { afterEach, describe, expect, test } from 'vitest';
import { error, event, json, result, type Script, scriptMcp, sse, text } from './scriptedMcp.ts';
import {
  connectTool,
  eventually,
  HOST,
  type RemoteWorld,
  type Seen,
  serveRemote,
  type TestTool,
  type ToolOptions,
  tunnelTo,
} from './world.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

type Era = 'modern' | 'legacy';
type Behaviour = (seen: Seen, response: ServerResponse, reset: () => void) => void;

async function ready(era: Era, behave: Behaviour, options: ToolOptions = {}) {
  const script: Script = scriptMcp(era, ['act']);
  script.behave['act'] = behave;
  const world: RemoteWorld = await serveRemote(script.listener);
  const tool: TestTool = connectTool(world.port, { ...options, config: { timeoutMs: 600, ...options.config } });
  closers.push(world.close, tool.close);
  await tool.untilPhase('Ready');
  return { script, world, tool };
}
const unknown = (reason: string) => ({ kind: 'error', error: { data: { 'ai.oz0/outcome': 'unknown', reason } } });
const notStarted = { kind: 'error', error: { data: { 'ai.oz0/outcome': 'not-started', reason: 'down' } } };
const answered = (value: string) => ({ kind: 'result', result: { content: [{ type: 'text', text: value }] } });

/** Name, what the server does once it acted, and what comes of it. */
const FAULTS: [string, Behaviour, object][] = [
  ['(a) never answers', () => {}, unknown('timeout')],
  ['(b) reads all, then resets', (_s, _r, reset) => reset(), unknown('connection')],
  [
    '(d) answers headers, then hangs',
    (_s, response) => response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders(),
    unknown('timeout'),
  ],
  ['(d) opens a stream, then hangs', (_s, response) => sse(response, ': x\n\n'), unknown('timeout')],
  [
    '(e) sends half an event',
    (seen, response) => {
      sse(response, `data: ${JSON.stringify(result(seen, text('x'))).slice(0, 20)}`);
      response.end();
    },
    unknown('connection'),
  ],
  [
    '(e) sends half an event, then resets',
    (seen, response, reset) => {
      sse(response, `data: ${JSON.stringify(result(seen, text('x')))}\n`);
      setTimeout(reset, 50);
    },
    unknown('connection'),
  ],
  [
    '(f) sends the result, and no end',
    (seen, response) => sse(response, event(result(seen, text('ok')))),
    answered('ok'),
  ],
  [
    '(f) sends the result, then resets',
    (seen, response, reset) => {
      sse(response, event(result(seen, text('ok'))));
      setTimeout(reset, 50);
    },
    answered('ok'),
  ],
  [
    '(g) sends two results',
    (seen, response) => {
      sse(response, event(result(seen, text('first'))) + event(result(seen, text('second'))));
      response.end();
    },
    answered('first'),
  ],
  [
    '(h) wrong id',
    (seen, response) => json(response, { jsonrpc: '2.0', id: seen.body.id + 1, result: text('x') }),
    unknown('connection'),
  ],
  [
    '(h) wrong id in a stream',
    (seen, response) => {
      sse(response, event({ jsonrpc: '2.0', id: String(seen.body.id), result: text('x') }));
      response.end();
    },
    unknown('connection'),
  ],
  [
    '(i) 200 with HTML',
    (_s, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<p>'),
    unknown('connection'),
  ],
  [
    '200 with broken JSON',
    (_s, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc"'),
    unknown('connection'),
  ],
  [
    '200 that is cut off',
    (_s, response, reset) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 }).write('{');
      setTimeout(reset, 50);
    },
    unknown('connection'),
  ],
  [
    'a result that is no tool result',
    (seen, response) => json(response, result(seen, { content: 'x' })),
    unknown('connection'),
  ],
  ['an empty result', (seen, response) => json(response, result(seen, {})), unknown('connection')],
  [
    'compressed',
    (seen, response) => json(response, result(seen, text('x')), 200, { 'content-encoding': 'gzip' }),
    unknown('connection'),
  ],
  ['[case 26] 206', (seen, response) => json(response, result(seen, text('x')), 206), unknown('connection')],
  ['202 without an answer', (_s, response) => response.writeHead(202).end(), unknown('connection')],
  [
    '(j) 500 after acting',
    (seen, response) => json(response, error(seen.body.id, -32603, 'boom'), 500),
    unknown('connection'),
  ],
  ['(j) 502', (_s, response) => response.writeHead(502).end(), unknown('connection')],
  ['(j) 504', (_s, response) => response.writeHead(504).end(), unknown('connection')],
  [
    '[case 70] 429 with a delay',
    (_s, response) => response.writeHead(429, { 'retry-after': '1' }).end(),
    unknown('connection'),
  ],
  [
    '[case 70] 503 with a delay',
    (_s, response) => response.writeHead(503, { 'retry-after': '1' }).end(),
    unknown('connection'),
  ],
  ['303 after acting', (_s, response) => response.writeHead(303, { location: '/done' }).end(), unknown('connection')],
  ['400 that says nothing', (_s, response) => response.writeHead(400).end(), unknown('connection')],
  [
    '101',
    (_s, response) => response.writeHead(101, { connection: 'upgrade', upgrade: 'x' }).end(),
    unknown('connection'),
  ],
  [
    '[case 70] an error result is an answer',
    (seen, response) => json(response, result(seen, { ...text('no'), isError: true })),
    { kind: 'result', result: { isError: true } },
  ],
  [
    'an error is an answer',
    (seen, response) => json(response, error(seen.body.id, -32602, 'bad argument')),
    { kind: 'error', error: { code: -32602, message: 'bad argument' } },
  ],
];

describe.each<Era>(['modern', 'legacy'])('faults after the request left (%s)', (era) => {
  test.each(FAULTS)('[R01] [R05] [I10] [case 69] %s', async (_name, behave, expected) => {
    const { tool, script, world } = await ready(era, behave);
    expect(await tool.ask('act')).toMatchObject(expected);
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(script.ran).toEqual(['act']);
    expect(script.count('tools/call')).toBe(1);
    expect(world.seen.every(({ path }) => path === '/mcp')).toBe(true);
  });

  test('[R05] (c) reads half, then resets: unknown, and sent once', async () => {
    const { tool, script, world } = await ready(era, () => {});
    let begun = 0;
    world.atBody = (reset) => {
      begun++;
      reset();
      return true;
    };
    expect(await tool.ask('act', { big: 'x'.repeat(800_000) })).toMatchObject(unknown('connection'));
    // What tries to find out whether the server lives is no call.
    expect(script.ran).toEqual([]);
    expect(script.count('tools/call')).toBe(0);
    expect(begun).toBeGreaterThan(0);
    world.atBody = undefined;
  });
});

/** The server refuses before it acts. */
const REFUSALS: [string, (response: ServerResponse, seen: Seen) => void, string][] = [
  ['401', (response) => response.writeHead(401, { 'www-authenticate': 'Bearer realm="x"' }).end(), 'refused the token'],
  [
    '401 that never ends',
    (response) => response.writeHead(401, { 'content-length': 10 }).flushHeaders(),
    'refused the token',
  ],
  ['403', (response) => response.writeHead(403).end(), 'forbids'],
  ['405', (response) => response.writeHead(405).end(), 'takes no MCP requests'],
  ['413', (response) => response.writeHead(413).end(), 'of this size'],
  ['415', (response) => response.writeHead(415).end(), 'JSON'],
  [
    '404 of an unknown method',
    (response, seen) => json(response, error(seen.body.id, -32601, 'Method not found'), 404),
    'Method not found',
  ],
  [
    '400 of a header',
    (response, seen) => json(response, error(seen.body.id, -32020, 'Header mismatch'), 400),
    'Header mismatch',
  ],
  ['400 without an id', (response) => json(response, error(null, -32600, 'bad request'), 400), 'bad request'],
  ['307', (response) => response.writeHead(307, { location: 'https://evil.test/mcp' }).end(), 'redirect'],
  ['308', (response) => response.writeHead(308, { location: '/other' }).end(), 'redirect'],
  [
    'a refusal without an end',
    (response) => {
      response.writeHead(403);
      for (let i = 0; i < 20; i++) response.write('x'.repeat(10_000));
    },
    'forbids',
  ],
];

test.each(REFUSALS)('[R01] [case 76] %s: known not to be made, told, sent once', async (_name, refuse, problem) => {
  const { tool, script } = await ready('modern', () => {});
  script.before = (seen, response) => {
    if (seen.body?.method !== 'tools/call') return false;
    refuse(response, seen);
    return true;
  };
  const answer = await tool.ask('act');
  expect(answer).toMatchObject({ kind: 'error', error: { message: expect.stringContaining(problem) } });
  expect(JSON.stringify(answer)).not.toContain('outcome');
  expect(JSON.stringify(answer)).not.toContain('evil');
  expect(script.ran).toEqual([]);
  expect(script.count('tools/call')).toBe(1);
});

describe('before the first byte', () => {
  /** A tool whose way to the server changes once it is ready. */
  async function broken(openTunnel: ToolOptions['openTunnel']) {
    let next: ToolOptions['openTunnel'];
    const script = scriptMcp('modern', ['act']);
    const world = await serveRemote(script.listener);
    const tool = connectTool(world.port, {
      openTunnel: (...args) => (next ?? tunnelTo(world.port))(...args),
      timing: { lookMs: 60_000 },
    });
    closers.push(world.close, tool.close);
    await tool.untilPhase('Ready');
    next = openTunnel;
    return { script, world, tool };
  }

  test.each<[string, NonNullable<ToolOptions['openTunnel']>]>([
    ['no tunnel', () => Promise.reject(new Error('connect ECONNREFUSED'))],
    [
      'a tunnel that is closed at once',
      async () =>
        new Duplex({
          read() {
            this.destroy();
          },
          write(_c, _e, done) {
            done();
          },
        }),
    ],
    [
      'no TLS in it',
      async () => {
        const duplex = new Duplex({
          read() {},
          write(_chunk, _encoding, done) {
            done();
            duplex.push('SSH-2.0-x\r\n');
          },
        });
        return duplex;
      },
    ],
  ])('[R01] %s: not started, and the tool is down', async (_name, openTunnel) => {
    const { script, tool } = await broken(openTunnel);
    expect(await tool.ask('act')).toMatchObject(notStarted);
    expect(script.ran).toEqual([]);
    await tool.untilPhase('Down');
  });

  test('[R01] a tunnel that never opens: not started when the time is over', async () => {
    const { script, tool } = await broken(
      (_host, _port, signal) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    );
    expect(await tool.ask('act')).toMatchObject(notStarted);
    expect(script.ran).toEqual([]);
  });
});

describe('amounts [case 29]', () => {
  test('an answer over the limit is not read on, and unknown; an argument over it is not sent', async () => {
    let written = 0;
    const { tool, script } = await ready(
      'modern',
      (_seen, response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        const push = () => {
          while (written < 50_000_000 && !response.destroyed && response.write('x'.repeat(100_000))) written += 100_000;
          if (written < 50_000_000 && !response.destroyed) response.once('drain', push);
        };
        push();
      },
      { config: { timeoutMs: 5_000 } },
    );
    expect(await tool.ask('act')).toMatchObject(unknown('connection'));
    expect(written).toBeLessThan(20_000_000);
    expect(await tool.ask('act', { big: 'x'.repeat(2_000_000) })).toMatchObject({
      kind: 'error',
      error: { code: -32602 },
    });
    expect(script.ran).toEqual(['act']);
  });

  test('an event over the limit, and a length that is claimed', async () => {
    const { tool } = await ready('modern', (_seen, response) => {
      sse(response, `data: ${'x'.repeat(1_500_000)}`);
    });
    expect(await tool.ask('act')).toMatchObject(unknown('connection'));
    const claiming = await ready('modern', (_seen, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': 2 ** 40 }).write('{');
    });
    expect(await claiming.tool.ask('act')).toMatchObject(unknown('timeout'));
  });

  test('[I12] a stream of notices is slowed down, and its call ends in time', async () => {
    let written = 0;
    const { tool } = await ready(
      'modern',
      (_seen, response) => {
        const notice = event({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 'x'.repeat(10_000) } });
        sse(response);
        const push = () => {
          while (!response.destroyed && response.write(notice)) written += notice.length;
          if (!response.destroyed) response.once('drain', push);
        };
        push();
      },
      { config: { timeoutMs: 2_000 } },
    );
    expect(await tool.ask('act')).toMatchObject(unknown('timeout'));
    expect(written).toBeLessThan(20_000_000);
  });
});

test('[case 14] a thousand calls with rude ends leave no connection and no listener behind', async () => {
  let turn = 0;
  const { tool, world, script } = await ready(
    'legacy',
    (seen, response, reset) => {
      turn++;
      if (turn % 3 === 0) reset();
      else if (turn % 3 === 1) response.destroy();
      else json(response, result(seen, text('ok')));
    },
    { config: { concurrency: 64, timeoutMs: 5_000 } },
  );
  for (let round = 0; round < 20; round++) await Promise.all(Array.from({ length: 50 }, () => tool.ask('act')));
  expect(script.ran).toHaveLength(1_000);
  await eventually(() => world.open() <= 1, 'only the stream is left');
  await tool.close();
  await eventually(() => world.open() === 0, 'nothing is left');
});

test('[case 8] a connection that breaks harms no later call', async () => {
  let turn = 0;
  const { tool, script } = await ready('modern', (seen, response, reset) => {
    if (++turn % 10 === 0) reset();
    else json(response, result(seen, text('ok')));
  });
  const outcomes: string[] = [];
  for (let i = 0; i < 30; i++) outcomes.push((await tool.ask('act')).kind);
  expect(outcomes.filter((kind) => kind === 'error')).toHaveLength(3);
  expect(script.ran).toHaveLength(30);
});

test('ids are of one call: a hundred at once, answered in another order', async () => {
  const waiting: (() => void)[] = [];
  const { tool } = await ready(
    'modern',
    (seen, response) => {
      waiting.push(() => json(response, result(seen, text(seen.body.params.arguments.n))));
      if (waiting.length === 100) for (const answer of waiting.reverse()) answer();
    },
    { config: { concurrency: 100, timeoutMs: 10_000 } },
  );
  const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => tool.ask('act', { n: `n${n}` })));
  answers.forEach((answer, n) => void expect(answer).toMatchObject(answered(`n${n}`)));
});

test('the server’s host is asked for by name, in the tunnel and in TLS', async () => {
  const asked: string[] = [];
  const script = scriptMcp('modern', ['act']);
  const world = await serveRemote(script.listener);
  const tool = connectTool(world.port, {
    openTunnel: async (host, port) => {
      asked.push(`${host}:${port}`);
      return connect(world.port, '127.0.0.1');
    },
  });
  closers.push(world.close, tool.close);
  await tool.untilPhase('Ready');
  expect(new Set(asked)).toEqual(new Set([`${HOST}:443`]));
});
