// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is what users write

/** Remote tools against a scripted server over real TLS: eras, sessions, streams, listings, headers, problems. */
import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { Secret } from '../../../src/domain/credential/secret.ts';
import { TunnelRefusedError } from '../../../src/net/connectTunnel.ts';
import { createTestAuthority } from '../../../src/net/testing/authority.ts';
import { error, event, functionNamed, json, result, type Script, scriptMcp, sse, text } from './scriptedMcp.ts';
import {
  connectTool,
  createHeaders,
  eventually,
  HOST,
  type RemoteWorld,
  serveRemote,
  type TestTool,
  type ToolOptions,
} from './world.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Setup {
  world: RemoteWorld;
  tool: TestTool;
  script: Script;
}
async function start(
  era: 'modern' | 'legacy' | 'sessionless',
  functions: readonly string[] = ['echo'],
  options: ToolOptions = {},
  prepare: (script: Script) => void = () => {},
): Promise<Setup> {
  const script = scriptMcp(era, functions);
  prepare(script);
  const world = await serveRemote(script.listener);
  const tool = connectTool(world.port, options);
  closers.push(world.close, tool.close);
  return { world, tool, script };
}
async function ready(...args: Parameters<typeof start>): Promise<Setup> {
  const setup = await start(...args);
  await setup.tool.untilPhase('Ready');
  return setup;
}
const answered = (value: string) => ({ kind: 'result', result: { content: [{ type: 'text', text: value }] } });
const ERAS = ['modern', 'legacy', 'sessionless'] as const;

describe.each(ERAS)('a remote server (%s)', (era) => {
  test('[K06] is listed and called, and closed as it wants', async () => {
    const { tool, script, world } = await ready(era);
    expect(tool.status()).toMatchObject({
      phase: 'Ready',
      server: { name: 'scripted', version: '1', protocolVersion: era === 'modern' ? '2026-07-28' : '2025-11-25' },
      listing: { functions: [{ name: 'echo' }] },
    });
    expect(await tool.ask('echo')).toMatchObject(answered('echo'));
    expect(await tool.ask('other')).toMatchObject({ kind: 'error', error: { code: -32602 } });
    expect(script.ran).toEqual(['echo']);
    await tool.close();
    expect(script.count('DELETE')).toBe(era === 'legacy' ? 1 : 0);
    expect(script.sessions.size).toBe(0);
    await eventually(() => world.open() === 0, 'no connection is left');
  });

  test('[case 24] [case 26] events without a type, notices and junk before the answer, split in characters', async () => {
    const { tool, script } = await ready(era, ['stream'], {}, (prepared) => {
      prepared.behave['stream'] = (seen, response) => {
        sse(response, ': hello\n\n', 'event: odd\ndata: {"x":1}\n\n', 'data: not json\n\n', 'nonsense\n');
        sse(response, event({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }));
        const bytes = Buffer.from(`data: ${JSON.stringify(result(seen, text('Grüße 🎉')))}\r\n\r\n`);
        void (async () => {
          for (const byte of bytes) {
            response.write(Buffer.of(byte));
            await new Promise((resolve) => setImmediate(resolve));
          }
          response.end();
        })();
      };
    });
    expect(await tool.ask('stream')).toMatchObject(answered('Grüße 🎉'));
    expect(script.ran).toEqual(['stream']);
  });

  test('[case 24] a listing in events with a notice before it', async () => {
    const { tool } = await ready(era, ['echo'], {}, (script) => {
      script.before = (seen, response) => {
        if (seen.body?.method !== 'tools/list') return false;
        sse(response, event({ jsonrpc: '2.0', method: 'notifications/message', params: {} }));
        sse(response, event(result(seen, { resultType: 'complete', tools: script.functions })));
        response.end();
        return true;
      };
    });
    expect(tool.status().listing?.functions).toHaveLength(1);
  });

  test('[case 27] pings and questions in mid-call; progress is of this call alone', async () => {
    const { tool, script, world } = await ready(era, ['asks'], {}, (prepared) => {
      prepared.behave['asks'] = (seen, response) => {
        const token = seen.body.params._meta.progressToken;
        const progress = (progressToken: unknown, value: number) =>
          event({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken, progress: value } });
        sse(response, event({ jsonrpc: '2.0', id: 'p', method: 'ping' }));
        sse(response, event({ jsonrpc: '2.0', id: 'e', method: 'elicitation/create', params: { message: 'who?' } }));
        sse(response, progress(token, 1), progress('other', 7), progress(token, 2));
        setTimeout(() => {
          sse(response, event(result(seen, text('done'))));
          response.end();
        }, 200);
      };
    });
    const heard: number[] = [];
    const answer = await tool.ask('asks', {}, { progress: ({ progress }) => heard.push(progress) });
    expect(answer).toMatchObject(answered('done'));
    expect(heard).toEqual([1, 2]);
    const answers = world.seen.filter((seen) => seen.method === 'POST' && seen.body.method === undefined);
    // In the stateless era a client sends no answers.
    if (era === 'modern') expect(answers).toEqual([]);
    else {
      const bodies = answers.map((seen) => seen.body).sort((a, b) => (a.id < b.id ? 1 : -1));
      expect(bodies).toMatchObject([
        { id: 'p', result: {} },
        { id: 'e', error: { code: -32601 } },
      ]);
    }
    expect(script.ran).toEqual(['asks']);
  });

  test('a cancelled call is told to the server in its era’s way, and its connection is gone', async () => {
    let gone = 0;
    const { tool, world } = await ready(era, ['hang'], {}, (script) => {
      script.behave['hang'] = (_seen, response) => void response.once('close', () => gone++);
    });
    const cancel = new AbortController();
    const asked = tool.ask('hang', {}, { signal: cancel.signal });
    await eventually(() => world.seen.some((seen) => seen.body?.method === 'tools/call'), 'the call');
    cancel.abort();
    await asked;
    await eventually(() => gone === 1, 'its connection closed');
    const id = world.seen.find((seen) => seen.body?.method === 'tools/call')?.body.id;
    const notices = () => world.seen.filter((seen) => seen.body?.method === 'notifications/cancelled');
    if (era === 'modern') expect(notices()).toEqual([]);
    else {
      await eventually(() => notices().length === 1, 'the notice');
      expect(notices()[0]?.body.params.requestId).toBe(id);
    }
  });

  test('[case 30] a changed listing is heard of and read; a good one is told once', async () => {
    const { tool, script } = await ready(era);
    let told = 0;
    tool.onListing(() => told++);
    await eventually(() => script.count(era === 'modern' ? 'subscriptions/listen' : 'GET') === 1, 'somebody listens');
    script.functions = [functionNamed('echo'), functionNamed('more')];
    script.changed();
    await eventually(() => tool.status().listing?.functions.length === 2, 'the other listing');
    expect(told).toBe(1);
    script.changed();
    script.changed();
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(told).toBe(1);
    expect(await tool.ask('more')).toMatchObject(answered('more'));
  });

  test('a paged listing is whole; one that repeats its cursor is none', async () => {
    let repeat = false;
    const { tool } = await ready(era, ['echo'], {}, (script) => {
      script.before = (seen, response) => {
        if (seen.body?.method !== 'tools/list') return false;
        const page = Number(seen.body.params.cursor ?? 0);
        const next = page < 4 || repeat ? { nextCursor: repeat ? '1' : String(page + 1) } : {};
        json(response, result(seen, { tools: [functionNamed(`f${page}`)], ...next }));
        return true;
      };
    });
    expect(tool.status().listing?.functions).toHaveLength(5);
    repeat = true;
    tool.wake();
    await tool.untilPhase('Down');
    expect(tool.status().problem).toContain('repeats a cursor');
    repeat = false;
    await tool.untilPhase('Ready');
  });

  test('[case 15] [C05] [N12] declared headers go with every request, and the transport’s are ours', async () => {
    const url = new URL(`https://${HOST}/mcp`);
    const headersNow = createHeaders({
      url,
      headers: {
        Authorization: 'Bearer ${TOKEN}',
        'X-Team': 'platform',
        Host: 'evil.test',
        'Content-Length': '1',
        'Mcp-Session-Id': 'stolen',
        'MCP-Protocol-Version': '1999-01-01',
        Accept: 'text/html',
      },
      bindings: [],
      secretsNow: () => ({ values: new Map([['TOKEN', new Secret('a-secret-token')]]), problems: [] }),
    });
    const { tool, world } = await ready(era, ['echo'], { headersNow });
    await tool.ask('echo', {}, { meta: { authorization: 'agent', 'ai.oz0/x': 1, traceparent: 't' } });
    await tool.close();
    expect(world.seen.length).toBeGreaterThan(3);
    for (const { headers, method, body } of world.seen) {
      expect(headers.authorization).toBe('Bearer a-secret-token');
      expect(headers['x-team']).toBe('platform');
      expect(headers.host).toBe(HOST);
      expect(headers['mcp-session-id']).not.toBe('stolen');
      expect(headers['mcp-protocol-version']).not.toBe('1999-01-01');
      expect(headers.accept).toContain('text/event-stream');
      expect(headers.cookie).toBeUndefined();
      if (method === 'POST' && body.method !== 'initialize') expect(headers['mcp-protocol-version']).toMatch(/^20/);
    }
    const call = world.seen.find((seen) => seen.body?.method === 'tools/call');
    expect(call?.body.params._meta).toMatchObject({ traceparent: 't' });
    expect(call?.body.params._meta).not.toHaveProperty('ai.oz0/x');
  });

  test('[I4] a secret that the server says back is taken out', async () => {
    const secret = 'a-secret-token';
    const headersNow = createHeaders({
      url: new URL(`https://${HOST}/mcp`),
      headers: { Authorization: 'Bearer ${TOKEN}' },
      bindings: [],
      secretsNow: () => ({ values: new Map([['TOKEN', new Secret(secret)]]), problems: [] }),
    });
    const { tool } = await ready(era, ['echo', 'fail'], { headersNow }, (script) => {
      script.behave['echo'] = (seen, response) =>
        json(response, result(seen, text(`ü ${seen.headers.authorization} ${Buffer.from(secret).toString('base64')}`)));
      script.behave['fail'] = (seen, response) => json(response, error(seen.body.id, -32000, `no ${secret}`));
    });
    const said = JSON.stringify([await tool.ask('echo'), await tool.ask('fail')]);
    expect(said).toContain('ü Bearer');
    expect(said).not.toContain(secret);
    expect(said).not.toContain(Buffer.from(secret).toString('base64').slice(2, -2));
  });
});

describe('a session of the older era', () => {
  test('[case 4] one that ended is begun anew once, and the call is made once', async () => {
    const { tool, script } = await ready('legacy');
    script.sessions.clear();
    expect(await tool.ask('echo')).toMatchObject(answered('echo'));
    expect(script.ran).toEqual(['echo']);
    expect(script.count('initialize')).toBe(2);
  });

  test('[case 3] [case 10] fifty calls find out at once: one session is begun', async () => {
    const { tool, script } = await ready('legacy', ['echo'], { config: { concurrency: 100 } });
    script.sessions.clear();
    const answers = await Promise.all(Array.from({ length: 50 }, () => tool.ask('echo')));
    for (const answer of answers) expect(answer).toMatchObject(answered('echo'));
    expect(script.ran).toHaveLength(50);
    expect(script.count('initialize')).toBe(2);
  });

  test('[case 4] a server that ends every session at once is not asked for ever', async () => {
    const { tool, script } = await ready('legacy');
    script.before = (seen, response) => {
      if (seen.body?.method !== 'tools/call') return false;
      json(response, error(null, -32001, 'Session not found'), 404);
      return true;
    };
    expect(await tool.ask('echo')).toMatchObject({ kind: 'error', error: { message: expect.stringContaining('404') } });
    expect(script.count('tools/call')).toBe(2);
    expect(script.count('initialize')).toBe(2);
  });

  test('[case 23] 405 to GET is an answer: no further GET, and the listing is stable', async () => {
    const { tool, script } = await ready('legacy', ['echo'], {}, (prepared) => {
      prepared.before = (seen, response) => {
        if (seen.method !== 'GET') return false;
        response.writeHead(405).end();
        return true;
      };
    });
    await eventually(() => script.count('GET') === 1, 'the question');
    await new Promise((resolve) => setTimeout(resolve, 400));
    expect(script.count('GET')).toBe(1);
    expect(script.count('initialize')).toBe(1);
    expect(tool.status().process.starts).toBe(1);
  });

  test.each(['legacy', 'modern'] as const)(
    '[case 23] a stream that ends at once is opened ever more slowly (%s)',
    async (era) => {
      const method = era === 'legacy' ? 'GET' : 'subscriptions/listen';
      const { tool, script } = await ready(
        era,
        ['echo'],
        { timing: { backoffFirstMs: 40, backoffLongestMs: 10_000 } },
        (prepared) => {
          prepared.before = (seen, response) => {
            if (seen.method !== 'GET' && seen.body?.method !== method) return false;
            response.writeHead(200, { 'content-type': 'text/event-stream' }).end(': bye\n\n');
            return true;
          };
        },
      );
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(script.count(method)).toBeGreaterThan(1);
      expect(script.count(method)).toBeLessThan(6);
      expect(tool.status()).toMatchObject({ phase: 'Ready', process: { starts: 1 } });
    },
  );

  test('a verdict has a date: the era is asked for again, and a server that was renewed is spoken to anew', async () => {
    const legacy = scriptMcp('legacy', ['echo']);
    const modern = scriptMcp('modern', ['echo']);
    const world = await serveRemote(legacy.listener);
    const tool = connectTool(world.port, { timing: { verdictMs: 150, lookMs: 60 } });
    closers.push(world.close, tool.close);
    await tool.untilPhase('Ready');
    await eventually(() => legacy.count('server/discover') > 1, 'it is asked again');
    expect(tool.status()).toMatchObject({ phase: 'Ready', process: { starts: 1 } });
    world.answer = (seen, response, reset) => {
      const old = seen.method !== 'POST' || seen.headers['mcp-session-id'] !== undefined;
      (old ? legacy : modern).listener(seen, response, reset);
    };
    await eventually(() => tool.status().server?.protocolVersion === '2026-07-28', 'the other era');
    expect(await tool.ask('echo')).toMatchObject(answered('echo'));
    await eventually(() => legacy.sessions.size === 0, 'the old session is closed');
  });

  test('a known server of the older era is not asked for the other at each connect', async () => {
    const { tool, script } = await ready('legacy');
    expect(script.count('server/discover')).toBe(1);
    script.before = (_seen, response) => {
      response.writeHead(502).end();
      return true;
    };
    tool.wake();
    await tool.untilPhase('Down');
    script.before = undefined;
    await tool.untilPhase('Ready');
    expect(script.count('initialize')).toBeGreaterThan(1);
    const discovers = script.count('server/discover');
    expect(discovers).toBe(1);
  });
});

describe('the era', () => {
  test('a recognised error of the stateless era keeps it: no initialize', async () => {
    const { tool, script } = await start('modern', ['echo'], {}, (prepared) => {
      prepared.before = (seen, response) => {
        json(response, error(seen.body.id, -32022, 'Unsupported', { supported: ['2027-01-01'] }), 400);
        return true;
      };
    });
    await tool.untilPhase('Down');
    expect(tool.status().problem).toBe('the server does not speak 2026-07-28, but 2027-01-01');
    expect(script.count('initialize')).toBe(0);
  });

  test.each([
    ['400 without a word', (r: ServerResponse) => r.writeHead(400).end()],
    ['404', (r: ServerResponse) => r.writeHead(404).end('not found')],
    ['405', (r: ServerResponse) => r.writeHead(405).end()],
    ['500', (r: ServerResponse) => r.writeHead(500).end()],
    ['an HTML page', (r: ServerResponse) => r.writeHead(200, { 'content-type': 'text/html' }).end('<html>')],
    ['202', (r: ServerResponse) => r.writeHead(202).end()],
  ])('what is no answer to discover leads to initialize: %s', async (_name, answer) => {
    const { tool, script } = await ready('legacy', ['echo'], {}, (prepared) => {
      prepared.before = (seen, response) => {
        if (seen.body?.method !== 'server/discover') return false;
        answer(response);
        return true;
      };
    });
    expect(tool.status().server?.protocolVersion).toBe('2025-11-25');
    expect(script.count('server/discover')).toBe(1);
  });

  test('arguments that a schema wants in headers are sent there', async () => {
    const { tool, world } = await ready('modern', [], {}, (script) => {
      const properties = {
        region: { type: 'string', 'x-mcp-header': 'Region' },
        n: { type: 'integer', 'x-mcp-header': 'N' },
      };
      script.functions = [functionNamed('echo', { inputSchema: { type: 'object', properties } })];
    });
    await tool.ask('echo', { region: 'Zürich', n: 42 });
    const headers = world.seen.find((seen) => seen.body?.method === 'tools/call')?.headers ?? {};
    expect(headers['mcp-param-region']).toBe(`=?base64?${Buffer.from('Zürich').toString('base64')}?=`);
    expect(headers['mcp-param-n']).toBe('42');
    expect(headers['mcp-name']).toBe('echo');
  });
});

describe('a server that cannot be used says why, and is tried again', () => {
  test.each([
    [401, 'refused the token, or wants one (HTTP status 401)'],
    [403, 'forbids it (HTTP status 403)'],
    [307, 'redirect, and none is followed (HTTP status 307)'],
    [429, 'asked too often (HTTP status 429)'],
    [503, 'not available (HTTP status 503)'],
  ])('[case 76] [case 91] HTTP status %i', async (status, problem) => {
    const { tool, script, world } = await start('modern', ['echo'], {}, (prepared) => {
      prepared.before = (_seen, response) => {
        response
          .writeHead(status, {
            location: `https://${HOST}/elsewhere?token=x`,
            'www-authenticate': `Bearer resource_metadata="https://169.254.169.254/x"`,
          })
          .end();
        return true;
      };
    });
    await tool.untilPhase('Down');
    expect(tool.status().problem).toContain(problem);
    expect(tool.status().problem).not.toContain('elsewhere');
    expect(new Set(world.seen.map((seen) => seen.path))).toEqual(new Set(['/mcp']));
    expect(script.count('initialize')).toBe(0);
    script.before = undefined;
    await tool.untilPhase('Ready');
  });

  test('[N08] a certificate for another host, of another authority, and none', async () => {
    const other = await serveRemote(scriptMcp('modern', ['echo']).listener, ['other.test']);
    const tool = connectTool(other.port);
    closers.push(other.close, tool.close);
    await tool.untilPhase('Down');
    expect(tool.status().problem).toBe(`the certificate of ${HOST} is for another host`);
    expect(other.seen).toEqual([]);

    const good = await serveRemote(scriptMcp('modern', ['echo']).listener);
    const stranger = createTestAuthority('stranger').authority.certificatePem;
    const untrusting = connectTool(good.port, { upstreamCa: stranger });
    closers.push(good.close, untrusting.close);
    await untrusting.untilPhase('Down');
    expect(untrusting.status().problem).toContain('of an authority that is not trusted');
    expect(good.seen).toEqual([]);
  });

  test('[N08] egress refuses: its reason is told', async () => {
    const tool = connectTool(1, {
      openTunnel: async () => {
        throw new TunnelRefusedError('address-refused', 'mcp.test resolves to 10.0.0.1, which is never dialled', 403);
      },
    });
    closers.push(tool.close);
    await tool.untilPhase('Down');
    expect(tool.status().problem).toBe(
      'egress does not connect to mcp.test:443: mcp.test resolves to 10.0.0.1, which is never dialled',
    );
    expect(await tool.ask('echo')).toMatchObject({
      kind: 'error',
      error: { message: expect.stringContaining('egress'), data: { 'ai.oz0/outcome': 'not-started', reason: 'down' } },
    });
  });

  test('[C05] a secret that is missing: nothing is sent, its name is told; it is used as soon as it is there', async () => {
    const values = new Map<string, Secret>();
    const headersNow = createHeaders({
      url: new URL(`https://${HOST}/mcp`),
      headers: { Authorization: 'Bearer ${TOKEN}' },
      bindings: [],
      secretsNow: () => ({ values, problems: [{ name: 'TOKEN', problem: 'missing' }] }),
    });
    const { tool, world } = await start('modern', ['echo'], {
      headersNow,
      timing: { backoffFirstMs: 60_000, backoffLongestMs: 60_000 },
    });
    await tool.untilPhase('Down');
    expect(tool.status().problem).toBe('the secret TOKEN is missing');
    expect(world.dialled()).toBe(0);
    values.set('TOKEN', new Secret('a-secret-token'));
    tool.wake();
    await tool.untilPhase('Ready');
  });

  test('[I11] [S05] nothing is sent before the walls hold, and what runs is cut when they open', async () => {
    const { tool, world } = await ready('modern', ['hang'], {}, (script) => {
      script.behave['hang'] = () => {};
    });
    const asked = tool.ask('hang');
    await eventually(() => world.seen.some((seen) => seen.body?.method === 'tools/call'), 'the call');
    tool.setSandbox(false, 'a wall is open');
    expect(await asked).toMatchObject({ error: { data: { 'ai.oz0/outcome': 'unknown', reason: 'connection' } } });
    expect(tool.status()).toMatchObject({ phase: 'Down', problem: 'a wall is open' });
    await eventually(() => world.open() === 0, 'no connection is left');
    const before = world.dialled();
    expect(await tool.ask('hang')).toMatchObject({ error: { data: { 'ai.oz0/outcome': 'not-started' } } });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(world.dialled()).toBe(before);
    tool.setSandbox(true, undefined);
    await tool.untilPhase('Ready');
  });

  test('a server that goes away is noticed by a look, and by a call', async () => {
    const { tool, world } = await ready('modern', ['echo'], { timing: { lookMs: 60_000 } });
    await world.close();
    expect(await tool.ask('echo')).toMatchObject({
      error: { data: { 'ai.oz0/outcome': 'not-started', reason: 'down' } },
    });
    await tool.untilPhase('Down');
    expect(tool.status().problem).toContain('ECONNREFUSED');
  });
});

test('draining: what runs is answered, what comes after the window is refused', async () => {
  const { tool } = await ready('modern', ['slow'], {}, (script) => {
    script.behave['slow'] = (seen, response) => void setTimeout(() => json(response, result(seen, text('done'))), 400);
  });
  const asked = tool.ask('slow');
  const drained = tool.drain();
  expect(tool.status().phase).toBe('Draining');
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(await tool.ask('slow')).toMatchObject({
    error: { data: { 'ai.oz0/outcome': 'not-started', reason: 'draining' } },
  });
  expect(await asked).toMatchObject(answered('done'));
  await drained;
});

test('a call beyond the slots is busy', async () => {
  const { tool, world } = await ready('modern', ['hang'], { config: { concurrency: 2 } }, (script) => {
    script.behave['hang'] = () => {};
  });
  const cancel = new AbortController();
  const running = [1, 2].map(() => tool.ask('hang', {}, { signal: cancel.signal }));
  await eventually(() => world.seen.filter((seen) => seen.body?.method === 'tools/call').length === 2, 'both');
  expect(await tool.ask('hang')).toMatchObject({
    error: { data: { 'ai.oz0/outcome': 'not-started', reason: 'busy' } },
  });
  cancel.abort();
  await Promise.all(running);
});
