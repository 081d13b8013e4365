/** Who may see and call what, by every way in: identity, grants, names, tenants, nodes, and broken objects. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeTool, startFakeTool, text } from './support/fakeTool.ts';
import {
  callTool,
  initialize,
  legacy,
  modern,
  type SendOptions,
  send,
  startWorld,
  token,
  until,
  type World,
} from './support/world.ts';

let world: World;
let github: FakeTool;
let search: FakeTool;

beforeEach(async () => {
  world = await startWorld({ dialWindowMs: 300 });
  github = await startFakeTool({ get_pr: () => text('pr'), merge: () => text('merged') });
  search = await startFakeTool({ get_pr: () => text('searched') });
  world.tool('acme-github');
  world.tool('acme-search');
  world.pod('acme-github', github);
  world.pod('acme-search', search);
});

afterEach(async () => {
  await Promise.all([world.close(), github.close(), search.close()]);
  expect(world.problems).toEqual([]);
});

const namesOf = async (options: SendOptions = {}): Promise<string[]> =>
  (await modern(world, 'tools/list', {}, options)).body.result?.tools.map((tool: { name: string }) => tool.name);

describe('who', () => {
  test.each([
    ['no header', undefined],
    ['an empty token', ''],
    ['a token that the API server does not know', 'a.b.c'],
    ['another scheme', 'Basic eDp5'],
  ])('[D05] %s: 401 with a challenge, nothing runs', async (_, written) => {
    world.agent('reviewer', ['acme_github.*']);
    const headers: Record<string, string> = {};
    if (written !== undefined) headers['authorization'] = written.includes(' ') ? written : `Bearer ${written}`;
    const answered = await callTool(world, 'acme_github__merge', {}, { token: undefined, headers });
    expect(answered.status).toBe(401);
    expect(answered.headers.get('www-authenticate')).toContain('Bearer');
    expect(github.runs['merge'] ?? 0).toBe(0);
  });

  test('[D05] users, other audiences and a failing API server are refused', async () => {
    world.agent('reviewer', ['acme_github.*']);
    world.review = () => ({ authenticated: true, user: { username: 'jane', extra: {} } });
    expect((await callTool(world, 'acme_github__merge', {}, { token: token('acme', 'a') })).status).toBe(403);
    world.review = () => ({
      authenticated: true,
      user: { username: 'system:serviceaccount:acme:reviewer:x', extra: {} },
    });
    expect((await callTool(world, 'acme_github__merge', {}, { token: token('acme', 'b') })).status).toBe(403);
    world.review = () => ({ authenticated: false });
    expect((await callTool(world, 'acme_github__merge', {}, { token: token('acme', 'c') })).status).toBe(401);
    world.review = () => Promise.reject(new Error('500'));
    const failed = await callTool(world, 'acme_github__merge', {}, { token: token('acme', 'd') });
    expect(failed.status).toBe(503);
    expect(failed.headers.get('retry-after')).toBe('1');
    expect(github.runs['merge'] ?? 0).toBe(0);
  });

  test('before agents and tools are known, nobody is told that something does not exist', async () => {
    world.synced = false;
    expect(world.gateway.notReady()).toBeDefined();
    expect((await callTool(world, 'acme_github__merge')).status).toBe(503);
    world.synced = true;
    await until(() => world.gateway.notReady() === undefined, 'ready');
  });
});

describe('[Y04] only what was granted exists', () => {
  test('[case 44] every mix of agent, grant, tool and function', async () => {
    const cases: [grants: string[] | undefined, name: string, ran: boolean][] = [
      [undefined, 'acme_github__get_pr', false],
      [[], 'acme_github__get_pr', false],
      [['acme_github.get_pr'], 'acme_github__get_pr', true],
      [['acme_github.get_pr'], 'acme_github__merge', false],
      [['acme_github.get_pr'], 'acme_search__get_pr', false],
      [['acme_github.*'], 'acme_github__merge', true],
      [['acme_github.*'], 'acme_github__absent', false],
      [['acme_github.*'], 'acme_search__get_pr', false],
      [['acme_github.absent'], 'acme_github__absent', false],
      [['acme_absent.*'], 'acme_absent__get_pr', false],
      [['acme_absent.get_pr'], 'acme_absent__get_pr', false],
      [['acme_github.get'], 'acme_github__get_pr', false],
      [['acme_github.get_pr', 'acme_search.get_pr'], 'acme_search__get_pr', true],
    ];
    world.agent('all', ['acme_github.*', 'acme_search.*'], { serviceAccounts: ['all'] });
    await world.listed(['acme_github__get_pr', 'acme_github__merge', 'acme_search__get_pr'], token('acme', 'all'));
    for (const [grants, name, ran] of cases) {
      if (grants === undefined) world.removeAgent('reviewer');
      else world.agent('reviewer', grants);
      const runs = () =>
        Object.values({ ...github.runs })
          .concat(Object.values(search.runs))
          .reduce((a, b) => a + b, 0);
      const before = runs();
      const { status, body } = await callTool(world, name);
      expect(runs() - before, `${grants} ${name}`).toBe(ran ? 1 : 0);
      if (grants === undefined) expect(status).toBe(403);
      else if (ran) expect(body.result.isError).toBeUndefined();
      else expect(body.error).toEqual({ code: -32602, message: `Unknown tool: ${name}` });
      const listed = (await namesOf()) ?? [];
      expect(listed.includes(name), `${grants} ${name} listed`).toBe(ran);
    }
  });

  test('[case 31] a hidden function by its exact, prefixed, upper-case and trimmed name, as one that does not exist', async () => {
    world.agent('reviewer', ['acme_github.get_pr']);
    await world.listed(['acme_github__get_pr']);
    const session = await initialize(world);
    const one = '/tools/acme-github/mcp';
    const oneSession = await initialize(world, { path: one });
    const hidden = [
      'merge',
      'acme_github__merge',
      'acme_github.merge',
      'acme-github__merge',
      'acme_github__acme_github__merge',
    ];
    const spelt = hidden.flatMap((name) => [
      name,
      name.toUpperCase(),
      ` ${name}`,
      `${name} `,
      `${name}\t`,
      `${name}\u0000`,
      `./${name}`,
    ]);
    for (const name of [
      ...spelt,
      'acme_github__GET_PR',
      'ACME_GITHUB__get_pr',
      'acme_github__get_pr ',
      'get_pr',
      '__proto__',
      'constructor',
      '',
    ]) {
      const answers = [
        await callTool(world, name),
        await legacy(world, session, 'tools/call', { name }),
        ...(name === 'get_pr'
          ? []
          : [
              await callTool(world, name, {}, { path: one }),
              await legacy(world, oneSession, 'tools/call', { name }, { path: one }),
            ]),
      ];
      for (const { status, body } of answers) {
        expect(status).toBe(200);
        expect(body.error).toEqual({ code: -32602, message: `Unknown tool: ${name}` });
      }
    }
    expect(github.runs).toEqual({});
  });

  test('another namespace’s tools do not exist, whatever it is called', async () => {
    world.tool('other-tool', { namespace: 'other' });
    world.pod('other-tool', search, { namespace: 'other' });
    world.agent('spy', ['other_tool.*'], { namespace: 'other', serviceAccounts: ['spy'] });
    await world.listed(['other_tool__get_pr'], token('other', 'spy'));
    world.agent('reviewer', ['other_tool.*', 'absent_tool.*', 'acme_github.get_pr']);
    await world.listed(['acme_github__get_pr']);
    const { body } = await modern(world, 'tools/list', {});
    expect(body.result._meta['ai.oz0/missing']).toEqual([
      { tool: 'absent_tool', reason: 'no-such-tool' },
      { tool: 'other_tool', reason: 'no-such-tool' },
    ]);
    for (const id of ['other_tool', 'absent_tool']) {
      expect((await callTool(world, `${id}__get_pr`)).body.error.code).toBe(-32602);
      const path = `/tools/${id.replace('_', '-')}/mcp`;
      const answered = await send(world, 'POST', '{}', { path });
      expect([answered.status, answered.body.error.message]).toEqual([404, 'Not found']);
    }
    expect(search.runs).toEqual({});
  });

  test('two Agents with one ServiceAccount: the union; two ServiceAccounts of one Agent: the same', async () => {
    world.agent('one', ['acme_github.get_pr'], { serviceAccounts: ['reviewer', 'second'] });
    world.agent('two', ['acme_github.merge', 'acme_search.*']);
    await world.listed(['acme_github__get_pr', 'acme_github__merge', 'acme_search__get_pr']);
    expect(await namesOf({ token: token('acme', 'second') })).toEqual(['acme_github__get_pr']);
    world.removeAgent('two');
    expect(await namesOf()).toEqual(['acme_github__get_pr']);
  });

  test('[case 45] a grant taken away in mid-session takes effect with the next call, and equal names stay apart', async () => {
    world.agent('reviewer', ['acme_github.*', 'acme_search.*']);
    await world.listed(['acme_github__get_pr', 'acme_github__merge', 'acme_search__get_pr']);
    const session = await initialize(world);
    const call = (name: string) => legacy(world, session, 'tools/call', { name });
    expect((await call('acme_github__get_pr')).body.result.content[0].text).toBe('pr');
    expect((await call('acme_search__get_pr')).body.result.content[0].text).toBe('searched');
    world.agent('reviewer', ['acme_search.*']);
    expect((await call('acme_github__get_pr')).body.error.code).toBe(-32602);
    expect((await call('acme_search__get_pr')).body.result.content[0].text).toBe('searched');
    expect(github.runs['get_pr']).toBe(1);
  });

  test('[case 32] every way to a tool gives the same verdict', async () => {
    world.agent('reviewer', ['acme_github.get_pr']);
    await world.listed(['acme_github__get_pr']);
    const one = '/tools/acme-github/mcp';
    const listed = await modern(world, 'tools/list', {}, { path: one });
    expect(listed.body.result.tools.map((tool: { name: string }) => tool.name)).toEqual(['get_pr']);
    expect((await callTool(world, 'get_pr', {}, { path: one })).body.result.content[0].text).toBe('pr');
    expect((await callTool(world, 'merge', {}, { path: one })).body.error.code).toBe(-32602);
    expect((await callTool(world, 'acme_github__get_pr', {}, { path: one })).body.error.code).toBe(-32602);
    const paths = [
      '/',
      '/mcp/',
      '/MCP',
      '/tools/acme-search/mcp',
      '/tools/acme_github/mcp',
      '/tools/acme-github',
      '/tools//mcp',
      '/tools/acme-github/mcp/',
      '/tools/../mcp/x',
      '/metrics',
      '/status',
    ];
    for (const path of paths) {
      expect((await callTool(world, 'get_pr', {}, { path })).status, path).toBe(404);
    }
    for (const method of ['resources/read', 'prompts/get', 'resources/list', 'tasks/get', 'completion/complete']) {
      expect(
        (await modern(world, method, { name: 'merge', uri: 'ui://x', taskId: '1' })).status,
      ).toBeGreaterThanOrEqual(400);
    }
    expect(github.runs).toEqual({ get_pr: 1 });
  });
});

describe('nodes', () => {
  test('[R08] a `node` tool runs for callers of this node alone, and says so to others', async () => {
    world.agent('reviewer', ['acme_github.*']);
    await world.listed(['acme_github__get_pr', 'acme_github__merge']);
    for (const node of ['node2', '']) {
      const far = token('acme', 'reviewer', node, 'far');
      const { body } = await callTool(world, 'acme_github__get_pr', {}, { token: far });
      expect(body.result).toMatchObject({ isError: true, _meta: { 'ai.oz0/reason': 'other-node' } });
      expect(body.result.content[0].text).toMatch(/another node/);
      const { body: listed } = await modern(world, 'tools/list', {}, { token: far });
      expect(listed.result.tools).toEqual([]);
      expect(listed.result._meta['ai.oz0/missing']).toEqual([{ tool: 'acme_github', reason: 'other-node' }]);
    }
    expect(github.runs).toEqual({});
  });

  test('[case 112] an `any` tool prefers the own node, and spreads over the others', async () => {
    const fakes = await Promise.all([0, 1, 2].map(() => startFakeTool({ go: () => text('gone') })));
    const [a, b, c] = fakes;
    if (a === undefined || b === undefined || c === undefined) throw new Error('three');
    try {
      world.tool('wide', { affinity: 'any' });
      world.agent('reviewer', ['wide.*']);
      world.endpoints('wide', [
        { fake: a, node: 'node2', uid: 'a' },
        { fake: b, node: 'node3', uid: 'b' },
        { fake: c, node: 'node4', uid: 'c' },
      ]);
      await world.listed(['wide__go']);
      for (let index = 0; index < 60; index += 1) {
        await callTool(world, 'wide__go', {}, { token: token('acme', 'reviewer', 'node9', 'far') });
      }
      for (const fake of fakes) expect(fake.runs['go']).toBeGreaterThanOrEqual(15);
      world.endpoints('wide', [
        { fake: a, node: 'node2', uid: 'a' },
        { fake: b, node: 'node1', uid: 'b' },
      ]);
      const before = b.runs['go'] ?? 0;
      for (let index = 0; index < 20; index += 1) await callTool(world, 'wide__go');
      expect((b.runs['go'] ?? 0) - before).toBe(20);
      await b.refuse();
      expect((await callTool(world, 'wide__go')).body.result.content[0].text).toBe('gone');
      await b.reopen();
    } finally {
      await Promise.all(fakes.map((fake) => fake.close()));
    }
  });
});

describe('what is broken harms itself alone', () => {
  test('[case 56] [case 26] one broken function is held back, its neighbours are listed', async () => {
    const sound = { type: 'object', properties: { a: { type: 'string' } } };
    const broken: [string, object][] = [
      ['no_schema', {}],
      ['schema_null', { inputSchema: null }],
      ['schema_list', { inputSchema: [] }],
      ['not_an_object', { inputSchema: { type: 'string' } }],
      ['bad_type', { inputSchema: { type: 'object', properties: { a: { type: 'text' } } } }],
      ['bad_required', { inputSchema: { type: 'object', properties: { a: { required: true } } } }],
      ['bad_pattern', { inputSchema: { type: 'object', properties: { a: { pattern: '(' } } } }],
      ['bad_properties', { inputSchema: { type: 'object', properties: { a: 'string' } } }],
      ['bad_ref', { inputSchema: { type: 'object', properties: { a: { $ref: '#/$defs/x' } } } }],
      ['far_ref', { inputSchema: { type: 'object', properties: { a: { $ref: 'https://evil.example/x' } } } }],
      ['bad_output', { inputSchema: sound, outputSchema: { type: 'nothing' } }],
      ['bad_header', { inputSchema: { type: 'object', properties: { a: { type: 'number', 'x-mcp-header': 'A' } } } }],
      ['bad_description', { inputSchema: sound, description: 7 }],
      ['deep', { inputSchema: deep(200) }],
      ['huge', { inputSchema: { type: 'object', description: 'x'.repeat(300_000) } }],
    ];
    github.listed = [
      {
        name: 'good',
        inputSchema: sound,
        annotations: { readOnlyHint: 'true', destructiveHint: false, title: 'Good' },
      },
      ...broken.map(([name, rest]) => ({ name, ...rest })),
      null as unknown as object,
      { inputSchema: sound },
      { name: 'spaced name', inputSchema: sound },
      { name: 'twice', inputSchema: sound },
      { name: 'twice', inputSchema: sound, description: 'another' },
      {
        name: 'fine',
        inputSchema: { ...sound, $defs: { x: {} }, allOf: [{ $ref: '#/$defs/x' }] },
        outputSchema: { type: 'array' },
      },
    ];
    world.agent('reviewer', ['acme_github.*']);
    github.changed();
    await world.listed(['acme_github__fine', 'acme_github__good']);
    const { body } = await modern(world, 'tools/list', {});
    const missing = body.result._meta['ai.oz0/missing'];
    expect(missing.map((entry: { function: string }) => entry.function).sort()).toEqual(
      [...broken.map(([name]) => name), 'twice'].sort(),
    );
    expect(new Set(missing.map((entry: { reason: string }) => entry.reason))).toEqual(new Set(['held-back']));
    const good = body.result.tools.find((tool: { name: string }) => tool.name === 'acme_github__good');
    // The one that is of the wrong type was meant to say something: neither counts.
    expect(good.annotations).toEqual({ title: 'Good' });
    const refused = await callTool(world, 'acme_github__bad_type');
    expect(refused.body.result._meta['ai.oz0/reason']).toBe('held-back');
    const old = await legacy(world, await initialize(world), 'tools/list');
    const fine = old.body.result.tools.find((tool: { name: string }) => tool.name === 'acme_github__fine');
    expect(fine.outputSchema).toBeUndefined();
    expect(github.runs).toEqual({});
  });

  test('[case 114] [I9] an object that cannot be read denies what it governs, and harms no other', async () => {
    world.agent('reviewer', ['acme_github.get_pr']);
    await world.listed(['acme_github__get_pr']);
    world.agent('broken', 7 as unknown as string[]);
    world.agent('odd', ['acme_github.*', 'nonsense']);
    world.tool('acme-search', { spec: { image: 'x', affinity: 'moon' } });
    world.agent('searcher', ['acme_search.*'], { serviceAccounts: ['searcher'] });
    expect(await namesOf()).toEqual(['acme_github__get_pr']);
    expect((await callTool(world, 'acme_github__merge')).body.error.code).toBe(-32602);
    const searcher = token('acme', 'searcher');
    const { body } = await callTool(world, 'acme_search__get_pr', {}, { token: searcher });
    expect(body.result._meta['ai.oz0/reason']).toBe('tool-broken');
    const { body: listed } = await modern(world, 'tools/list', {}, { token: searcher });
    expect(listed.result._meta['ai.oz0/missing']).toEqual([{ tool: 'acme_search', reason: 'tool-broken' }]);
    expect(search.runs).toEqual({});
  });

  test('[case 55] a listing that fails never replaces a good one; status 206 and junk are no listing', async () => {
    world.agent('reviewer', ['acme_github.*']);
    await world.listed(['acme_github__get_pr', 'acme_github__merge']);
    const lies: ((res: import('node:http').ServerResponse, id: unknown) => void)[] = [
      (res) => res.writeHead(500).end(),
      (res) => res.writeHead(206, { 'content-type': 'text/plain' }).end('{"tools":[]}'),
      (res, id) =>
        res
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result: {} })),
      (res) => res.destroy(),
    ];
    for (const lie of lies) {
      const lists = github.lists;
      github.onList = (_, res, id) => {
        lie(res, id);
        return true;
      };
      github.changed();
      await until(() => github.lists > lists, 'listed again');
      expect((await namesOf()).length).toBe(2);
    }
  });

  test('[case 26] a listing split over chunks and inside a character, with a junk line: still filtered', async () => {
    github.listed = [
      { name: 'get_pr', description: 'Grüße 🎉', inputSchema: { type: 'object' } },
      { name: 'merge', inputSchema: { type: 'object' } },
    ];
    github.onList = (_, res, id) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id, result: { tools: github.listed } });
      const bytes = Buffer.from(`junk\n: x\n\ndata: ${body}\n\n`);
      const middle = bytes.indexOf('🎉') + 2;
      res.writeHead(200, { 'content-type': 'text/event-stream' });
      res.write(bytes.subarray(0, middle));
      setTimeout(() => res.end(bytes.subarray(middle)), 30);
      return true;
    };
    world.agent('reviewer', ['acme_github.get_pr']);
    github.changed();
    await until(() => github.lists > 1, 'listed again');
    await world.listed(['acme_github__get_pr']);
  });
});

describe('aggregation', () => {
  test('[case 128] names stay the same when tools come and go, and long ones are short and distinct', async () => {
    const long = 'x'.repeat(120);
    github.functions = { [`${long}a`]: () => text('a'), [`${long}b`]: () => text('b'), short: () => text('s') };
    github.changed();
    world.agent('reviewer', ['acme_github.*']);
    await until(() => github.lists > 1, 'listed again');
    await new Promise((resolve) => setTimeout(resolve, 50));
    const before = await namesOf();
    expect(before).toHaveLength(3);
    for (const name of before) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    world.agent('reviewer', ['acme_github.*', 'acme_search.*']);
    expect((await namesOf()).filter((name) => name.startsWith('acme_github'))).toEqual(before);
    world.removeTool('acme-search');
    expect(await namesOf()).toEqual(before);
    const answers = await Promise.all(before.map((name) => callTool(world, name)));
    expect(answers.map(({ body }) => body.result.content[0].text).sort()).toEqual(['a', 'b', 's']);
    // The whole long name is not another way in.
    expect((await callTool(world, `acme_github__${long}a`)).body.error.code).toBe(-32602);
  });

  test('[case 123] [case 125] a dead tool is left out and named, and does not slow the others', async () => {
    world.agent('reviewer', ['acme_github.*', 'acme_search.get_pr']);
    await world.listed(['acme_github__get_pr', 'acme_github__merge', 'acme_search__get_pr']);
    search.functions['get_pr'] = () => undefined;
    const stuck = Array.from({ length: 20 }, () => callTool(world, 'acme_search__get_pr').catch(() => {}));
    await until(() => search.calls.length === 20, 'twenty calls hang');
    const times: number[] = [];
    for (let index = 0; index < 100; index += 1) {
      const started = performance.now();
      await callTool(world, 'acme_github__get_pr');
      times.push(performance.now() - started);
    }
    expect(times.sort((a, b) => a - b)[98]).toBeLessThan(2_000);
    world.pod('acme-search', search, { uid: 'pod-of-acme-search-2', ready: false });
    world.pod('acme-search', undefined, { uid: 'pod-of-acme-search-2' });
    search.cut();
    await Promise.all(stuck);
    const { body } = await modern(world, 'tools/list', {});
    expect(body.result.tools).toHaveLength(2);
    expect(body.result._meta['ai.oz0/missing']).toEqual([{ tool: 'acme_search', reason: 'no-pod' }]);
    const { body: called } = await callTool(world, 'acme_search__get_pr');
    expect(called.result).toMatchObject({ isError: true, _meta: { 'ai.oz0/reason': 'no-pod' } });
  });

  test('[case 61] a thousand notices a second: listings are bounded, and the last change is seen', async () => {
    world.agent('reviewer', ['acme_github.*']);
    await world.listed(['acme_github__get_pr', 'acme_github__merge']);
    const lists = github.lists;
    for (let index = 0; index < 100; index += 1) {
      for (let each = 0; each < 10; each += 1) github.changed();
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    github.functions['last'] = () => text('last');
    github.changed();
    await world.listed(['acme_github__get_pr', 'acme_github__last', 'acme_github__merge']);
    // At most one in 50 ms, over a bit more than a second.
    expect(github.lists - lists).toBeLessThan(40);
  });

  test('[case 23] a tool without change notices is listed, and not asked without end', async () => {
    const quiet = await startFakeTool({ go: () => text('gone') });
    quiet.intercept = (req, res) => {
      if (req.headers['mcp-method'] !== 'subscriptions/listen') return false;
      res.writeHead(405).end();
      return true;
    };
    try {
      world.tool('quiet');
      world.pod('quiet', quiet);
      world.agent('reviewer', ['quiet.*']);
      await world.listed(['quiet__go']);
      const lists = quiet.lists;
      await new Promise((resolve) => setTimeout(resolve, 500));
      expect(quiet.lists - lists).toBeLessThanOrEqual(1);
    } finally {
      await quiet.close();
    }
  });
});

function deep(levels: number): object {
  let schema: object = { type: 'string' };
  for (let level = 0; level < levels; level += 1) schema = { type: 'object', properties: { a: schema } };
  return schema;
}
