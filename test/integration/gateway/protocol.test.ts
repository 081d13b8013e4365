/** The rules of the protocol that bind the gateway as a server, over loopback and without an SDK. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeTool, startFakeTool, text } from './support/fakeTool.ts';
import {
  callTool,
  ENVELOPE,
  initialize,
  legacy,
  modern,
  send,
  startWorld,
  token,
  type World,
} from './support/world.ts';

let world: World;
let fake: FakeTool;

beforeAll(async () => {
  world = await startWorld();
  fake = await startFakeTool({ echo: ({ args }) => text(JSON.stringify(args)), hidden: () => text('hidden') });
  fake.listed = [
    { name: 'echo', description: 'Echoes.', inputSchema: { type: 'object' } },
    { name: 'hidden', inputSchema: { type: 'object' } },
    {
      name: 'headed',
      inputSchema: { type: 'object', properties: { n: { type: 'integer', 'x-mcp-header': 'Count' } } },
    },
  ];
  fake.functions['headed'] = ({ args }) => text(String(args['n']));
  world.tool('acme-github');
  world.agent('reviewer', ['acme_github.echo', 'acme_github.headed']);
  world.pod('acme-github', fake);
  await world.listed(['acme_github__echo', 'acme_github__headed']);
});

afterAll(async () => {
  await world.close();
  await fake.close();
});

describe('2026-07-28, as server', () => {
  test('[P01] server/discover names versions and nothing that is not served', async () => {
    const { status, body } = await modern(world, 'server/discover', {});
    expect(status).toBe(200);
    expect(body.result).toMatchObject({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: { listChanged: true } },
      cacheScope: 'private',
    });
    expect(Object.keys(body.result.capabilities)).toEqual(['tools']);
    expect(body.result._meta['io.modelcontextprotocol/serverInfo'].name).toBe('oz0-gateway');
  });

  test.each(['GET', 'DELETE', 'PUT', 'PATCH'])('%s is answered 405, with a session id or not', async (method) => {
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-session-id': 'x', 'last-event-id': '1' };
    const { status, headers: answered } = await send(world, method, undefined, { headers });
    expect(status).toBe(405);
    expect(answered.get('allow')).toContain('POST');
    expect((await send(world, method, undefined)).status).toBe(405);
  });

  test('no session id is ever minted, and one that is sent is ignored', async () => {
    const { status, headers } = await callTool(world, 'acme_github__echo', {}, { headers: { 'mcp-session-id': 'x' } });
    expect(status).toBe(200);
    expect(headers.has('mcp-session-id')).toBe(false);
  });

  test.each(['https://evil.example', 'null', 'http://127.0.0.1'])('Origin %s is refused', async (origin) => {
    const runs = fake.runs['echo'] ?? 0;
    const { status } = await callTool(world, 'acme_github__echo', {}, { headers: { origin } });
    expect(status).toBe(403);
    expect(fake.runs['echo'] ?? 0).toBe(runs);
  });

  test.each([
    ['version', { 'mcp-protocol-version': '2025-11-25' }],
    ['a later version', { 'mcp-protocol-version': '2027-01-01' }],
    ['method', { 'mcp-method': 'tools/list' }],
    ['method in other case', { 'mcp-method': 'Tools/Call' }],
    ['name', { 'mcp-name': 'acme_github__hidden' }],
    ['name in other case', { 'mcp-name': 'ACME_GITHUB__ECHO' }],
    ['broken base64', { 'mcp-name': '=?base64?YQ?=' }],
    ['base64 of another name', { 'mcp-name': `=?base64?${Buffer.from('other').toString('base64')}?=` }],
    ['marker in upper case', { 'mcp-name': `=?BASE64?${Buffer.from('acme_github__echo').toString('base64')}?=` }],
  ])('[case 22] a header that differs from the body is refused before anything runs: %s', async (_, headers) => {
    const runs = fake.runs['echo'] ?? 0;
    const records = world.records.length;
    const { status, body } = await callTool(world, 'acme_github__echo', {}, { headers });
    expect(status).toBe(400);
    expect(body.error.code).toBe(-32020);
    expect(body.id).toBe(1);
    expect(fake.runs['echo'] ?? 0).toBe(runs);
    expect(world.records.length).toBe(records);
  });

  test.each([['mcp-protocol-version'], ['mcp-method'], ['mcp-name']])('without %s: 400 and -32020', async (name) => {
    const headers: Record<string, string> = {
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'acme_github__echo',
    };
    delete headers[name];
    const params = { name: 'acme_github__echo', arguments: {}, _meta: ENVELOPE };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const answered = await send(world, 'POST', body, { headers });
    expect(answered.status).toBe(400);
    expect(answered.body.error.code).toBe(-32020);
  });

  test('a plain name and header names in any case are taken', async () => {
    const { body } = await callTool(
      world,
      'acme_github__echo',
      { a: 1 },
      { headers: { 'mcp-name': 'acme_github__echo' } },
    );
    expect(body.result.content[0].text).toBe('{"a":1}');
  });

  test('an unknown version: 400, -32022 and the supported list', async () => {
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2027-01-01' };
    const headers = { 'mcp-protocol-version': '2027-01-01' };
    const { status, body } = await modern(world, 'tools/list', {}, { meta, headers });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({
      code: -32022,
      data: { supported: ['2026-07-28'], requested: '2027-01-01' },
    });
  });

  test.each(['resources/list', 'initialize', 'ping', 'logging/setLevel', 'constructor'])(
    'an unknown method, %s: 404 and -32601',
    async (method) => {
      const { status, body } = await modern(world, method, {});
      expect(status).toBe(404);
      expect(body.error.code).toBe(-32601);
    },
  );

  test.each([
    ['no _meta', undefined],
    ['no capabilities', { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' }],
    ['capabilities of a wrong type', { ...ENVELOPE, 'io.modelcontextprotocol/clientCapabilities': [] }],
    ['a version of a wrong type', { ...ENVELOPE, 'io.modelcontextprotocol/protocolVersion': 20260728 }],
    ['clientInfo of a wrong type', { ...ENVELOPE, 'io.modelcontextprotocol/clientInfo': 'x' }],
  ])('missing or broken _meta is 400 with -32602: %s', async (_, meta) => {
    const params = meta === undefined ? {} : { _meta: meta };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/list', params });
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' };
    const answered = await send(world, 'POST', body, { headers });
    expect(answered.status).toBe(400);
    expect(answered.body).toMatchObject({ id: 7, error: { code: -32602 } });
  });

  test('every list has ttlMs and a private scope, and the same order each time', async () => {
    const first = await modern(world, 'tools/list', {});
    const second = await modern(world, 'tools/list', {});
    expect(first.body.result).toMatchObject({ resultType: 'complete', cacheScope: 'private' });
    expect(first.body.result.ttlMs).toBeGreaterThanOrEqual(0);
    expect(first.text).toBe(second.text);
    expect((await modern(world, 'tools/list', { cursor: 'x' })).body.error.code).toBe(-32602);
  });

  test('subscriptions/listen: acknowledgement first, only what was asked, tagged, and a graceful end is a result', async () => {
    const nothing = await modern(
      world,
      'subscriptions/listen',
      { notifications: { promptsListChanged: true } },
      { id: 'l' },
    );
    expect(nothing.messages).toHaveLength(2);
    expect(nothing.messages[0]).toMatchObject({
      method: 'notifications/subscriptions/acknowledged',
      params: { notifications: {}, _meta: { 'io.modelcontextprotocol/subscriptionId': 'l' } },
    });
    expect(nothing.messages[1]).toMatchObject({
      id: 'l',
      result: { resultType: 'complete', _meta: { 'io.modelcontextprotocol/subscriptionId': 'l' } },
    });
    expect(nothing.headers.get('x-accel-buffering')).toBe('no');
    expect((await modern(world, 'subscriptions/listen', {})).body.error.code).toBe(-32602);
  });

  test('arguments mirrored in Mcp-Param headers must agree, numbers by value', async () => {
    const call = (n: unknown, header?: string) =>
      callTool(
        world,
        'acme_github__headed',
        { n },
        { headers: header === undefined ? {} : { 'Mcp-Param-Count': header } },
      );
    expect((await call(42, '42')).body.result.content[0].text).toBe('42');
    expect((await call(42, '42.0')).status).toBe(200);
    expect((await call(undefined, '1')).status).toBe(200);
    for (const wrong of ['41', 'x', '=?base64?NDI?=']) {
      const { status, body } = await call(42, wrong);
      expect(status).toBe(400);
      expect(body.error.code).toBe(-32020);
    }
    expect((await call(42)).status).toBe(400);
    expect((await callTool(world, 'acme_github__echo', {}, { headers: { 'mcp-param-other': 'x' } })).status).toBe(200);
  });
});

describe('what is not one JSON message in UTF-8', () => {
  const granted = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'acme_github__echo', arguments: {}, _meta: ENVELOPE },
  });
  const headers = {
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'acme_github__echo',
  };

  test.each([
    ['both granted', [granted, granted]],
    ['one hidden', [granted, granted.replaceAll('echo', 'hidden')]],
    ['empty', []],
  ])('[case 19] a batch is refused whole: %s', async (_, messages) => {
    const before = { ...fake.runs };
    for (const session of [headers, await initialize(world)]) {
      const { status, body } = await send(world, 'POST', `[${messages.join(',')}]`, { headers: session });
      expect(status).toBe(400);
      expect(body.error.code).toBe(-32600);
    }
    expect(fake.runs).toEqual(before);
  });

  test.each([
    ['text/plain', 415],
    ['', 415],
    ['application/x-www-form-urlencoded', 415],
    ['application/json; charset=utf-16', 415],
    ['application/json; charset=latin1', 415],
    ['application/json, text/plain', 415],
    ['application/json;charset="utf-8"', 200],
    ['application/json ; charset=UTF-8', 200],
    ['Application/JSON', 200],
  ])('[case 20] content type %j: %i', async (type, status) => {
    const runs = fake.runs['echo'] ?? 0;
    const answered = await send(world, 'POST', new TextEncoder().encode(granted), {
      headers: { ...headers, 'content-type': type },
    });
    expect(answered.status).toBe(status);
    expect((fake.runs['echo'] ?? 0) - runs).toBe(status === 200 ? 1 : 0);
  });

  test.each([
    ['UTF-16', Buffer.from(`\ufeff${granted}`, 'utf16le')],
    ['a BOM', Buffer.from(`\ufeff${granted}`, 'utf8')],
    ['broken UTF-8', Buffer.concat([Buffer.from(granted.slice(0, -1)), Buffer.from([0xff, 0x7d])])],
    ['no JSON', Buffer.from('{')],
    ['nothing', Buffer.alloc(0)],
    ['JSON that is no message', Buffer.from('"tools/call"')],
    ['another version of JSON-RPC', Buffer.from(granted.replace('"2.0"', '"1.0"'))],
    ['an id that is null', Buffer.from(granted.replace('"id":1', '"id":null'))],
    ['params that are a list', Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}')],
  ])('[case 20] %s is refused', async (_, body) => {
    const runs = fake.runs['echo'] ?? 0;
    const answered = await send(world, 'POST', body, { headers });
    expect(answered.status).toBe(400);
    expect(fake.runs['echo'] ?? 0).toBe(runs);
  });

  test('[case 20] what is judged is what is sent on: the last of two equal keys', async () => {
    const twice = granted.replace(
      '"name":"acme_github__echo"',
      '"name":"acme_github__hidden","name":"acme_github__echo"',
    );
    const runs = { ...fake.runs };
    const { body } = await send(world, 'POST', twice, { headers });
    expect(body.result.content[0].text).toBe('{}');
    expect(fake.runs['hidden']).toBe(runs['hidden']);
  });
});

describe('the older era', () => {
  test.each(['2025-03-26', '2025-06-18', '2025-11-25'])('initialize, list and call in %s', async (version) => {
    const session = await initialize(world, { version });
    expect(session['mcp-session-id']).toMatch(/^[\x21-\x7e]+$/);
    expect(
      (await send(world, 'POST', '{"jsonrpc":"2.0","method":"notifications/initialized"}', { headers: session }))
        .status,
    ).toBe(202);
    const listed = await legacy(world, session, 'tools/list');
    expect(listed.body.result.tools.map((tool: { name: string }) => tool.name)).toContain('acme_github__echo');
    expect(listed.body.result.resultType).toBeUndefined();
    const called = await legacy(world, session, 'tools/call', { name: 'acme_github__echo', arguments: { b: 2 } });
    expect(called.body.result.content[0].text).toBe('{"b":2}');
    expect((await legacy(world, session, 'ping')).body.result).toEqual({});
    expect((await send(world, 'DELETE', undefined, { headers: session })).status).toBe(204);
  });

  test('an unknown version is answered with one that we speak', async () => {
    const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params });
    expect((await send(world, 'POST', body)).body.result).toMatchObject({
      protocolVersion: '2025-11-25',
      capabilities: { tools: { listChanged: true } },
    });
  });

  test('[case 4] an unknown, altered, foreign or expired session is 404; a missing one 400', async () => {
    const session = await initialize(world);
    const id = session['mcp-session-id'] ?? '';
    const altered = id.slice(0, -1) + (id.endsWith('A') ? 'B' : 'A');
    const others = [altered, 'x', 'k1.', 'k1.AAAA', `k2${id.slice(2)}`, id.slice(0, 40), 'x'.repeat(2_000)];
    for (const other of others) {
      const { status, body } = await legacy(world, { ...session, 'mcp-session-id': other }, 'tools/list');
      expect(status).toBe(404);
      expect(body).toMatchObject({ id: 1, error: { code: -32600 } });
    }
    // Another pod's token with this pod's session, and this session at another endpoint.
    world.agent('reviewer', ['acme_github.echo', 'acme_github.headed']);
    expect(
      (await legacy(world, session, 'tools/list', {}, { token: token('acme', 'reviewer', 'node1', 'pod-2') })).status,
    ).toBe(404);
    expect((await legacy(world, session, 'tools/list', {}, { path: '/tools/acme-github/mcp' })).status).toBe(404);
    const { 'mcp-session-id': _, ...without } = session;
    expect((await legacy(world, without, 'tools/list')).status).toBe(400);
    expect((await legacy(world, {}, 'tools/list')).status).toBe(400);
  });

  test('[case 3] any gateway with the key opens a session; it ends by itself', async () => {
    const keys = [{ id: 'a', key: new Uint8Array(32).fill(7) }];
    let now = Date.now();
    const [one, two] = await Promise.all([startWorld({}, { keys }), startWorld({}, { keys, now: () => now })]);
    for (const each of [one, two]) each.agent('reviewer', ['acme_github.*']);
    try {
      const session = await initialize(one);
      expect((await legacy(two, session, 'ping')).status).toBe(200);
      now += 25 * 3_600_000;
      expect((await legacy(two, session, 'ping')).status).toBe(404);
    } finally {
      await Promise.all([one.close(), two.close()]);
    }
  });

  test('a version header that differs from the session, or that we do not speak, is 400', async () => {
    const session = await initialize(world);
    for (const version of ['2025-06-18', '2024-11-05', 'x']) {
      expect((await legacy(world, { ...session, 'mcp-protocol-version': version }, 'ping')).status).toBe(400);
    }
    const { 'mcp-protocol-version': _, ...without } = session;
    expect((await legacy(world, without, 'ping')).status).toBe(200);
  });

  test('an unknown method is an error with status 200; initialize cannot be said twice', async () => {
    const session = await initialize(world);
    for (const method of ['resources/list', 'tasks/get', 'server/discover']) {
      const { status, body } = await legacy(world, session, method);
      expect(status).toBe(200);
      expect(body.error.code).toBe(-32601);
    }
  });

  test('[case 27] answers to questions that nobody asked are taken and dropped', async () => {
    const session = await initialize(world);
    for (const answer of [{ result: {} }, { error: { code: -1, message: 'no' } }]) {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 9, ...answer });
      expect((await send(world, 'POST', body, { headers: session })).status).toBe(202);
    }
  });
});
