/** The hop's client and our endpoint, against each other and against the SDK's server of the stateless era. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { Pool } from 'undici';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createMcpEndpoint } from '../../../src/mcp/endpoint.ts';
import type { McpHandler } from '../../../src/mcp/handler.ts';
import { callHop, type Hop, type HopCall, listenHop } from '../../../src/mcp/hop.ts';

const open: { server: Server; pool: Pool }[] = [];

afterEach(async () => {
  for (const { server, pool } of open.splice(0)) {
    await pool.destroy();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

async function serve(listener: RequestListener): Promise<Hop> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', () => resolve()));
  const pool = new Pool(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, { pipelining: 1 });
  open.push({ server, pool });
  return { dispatcher: pool, path: '/mcp', client: { name: 'test', version: '1' } };
}

function call(hop: Hop, method: string, params: object, more: Partial<HopCall> = {}) {
  return callHop(hop, {
    id: 1,
    method,
    params: params as Record<string, unknown>,
    signal: new AbortController().signal,
    timeoutMs: 5_000,
    maxAnswerBytes: 1_000_000,
    ...more,
  });
}

/** The SDK's server behind node:http. */
function sdkServer(): RequestListener {
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'sdk', version: '1' });
      server.registerTool(
        'add',
        { inputSchema: z.object({ a: z.number(), b: z.number() }) },
        async ({ a, b }, context) => {
          const progressToken = context.mcpReq._meta?.progressToken;
          if (progressToken !== undefined) {
            await context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
          }
          return { content: [{ type: 'text', text: String(a + b) }] };
        },
      );
      return server;
    },
    { legacy: 'reject' },
  );
  return (req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', async () => {
      const response = await handler.fetch(
        new Request(`http://localhost${req.url}`, {
          method: req.method ?? 'POST',
          headers: Object.entries(req.headers).map(([name, value]) => [name, String(value)] as [string, string]),
          body: Buffer.concat(chunks),
        }),
      );
      res.writeHead(response.status, Object.fromEntries(response.headers));
      for await (const chunk of response.body ?? []) res.write(chunk);
      res.end();
    });
  };
}

describe('against the SDK’s server', () => {
  test('discover, list, call with and without progress, and errors', async () => {
    const hop = await serve(sdkServer());
    expect(await call(hop, 'server/discover', {})).toMatchObject({
      kind: 'result',
      result: { supportedVersions: ['2026-07-28'] },
    });
    expect(await call(hop, 'tools/list', {})).toMatchObject({ kind: 'result', result: { tools: [{ name: 'add' }] } });
    const params = { name: 'add', arguments: { a: 1, b: 2 } };
    expect(await call(hop, 'tools/call', params)).toMatchObject({
      kind: 'result',
      result: { content: [{ type: 'text', text: '3' }] },
    });
    const seen: unknown[] = [];
    const onNotification = (method: string, told: object) => seen.push([method, told]);
    expect(await call(hop, 'tools/call', params, { meta: { progressToken: 'p' }, onNotification })).toMatchObject({
      kind: 'result',
    });
    expect(seen).toEqual([['notifications/progress', { progressToken: 'p', progress: 1 }]]);
    expect(await call(hop, 'resources/list', {})).toMatchObject({ kind: 'error', error: { code: -32601 } });
  });
});

describe('our endpoint, the stateless era alone', () => {
  const handler: McpHandler<string> = {
    serverInfo: { name: 'ours', version: '1' },
    listTools: () => ({ kind: 'result', result: { tools: [] } }),
    callTool: async (context, { name, signal, progress }) => {
      switch (name) {
        case 'who':
          return { kind: 'result', result: { content: [{ type: 'text', text: context }] } };
        case 'busy':
          return {
            kind: 'error',
            error: { code: -32603, message: 'busy', data: { 'ai.oz0/outcome': 'not-started', reason: 'busy' } },
            status: 503,
          };
        case 'hang':
          progress?.({ progress: 1 });
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
          aborted += 1;
          return { kind: 'result', result: {} };
        default:
          throw new Error('bug');
      }
    },
    subscribe: (_, onChange) => {
      changed = onChange;
      return () => {
        changed = undefined;
      };
    },
  };
  let aborted = 0;
  let changed: (() => void) | undefined;

  async function ours() {
    const problems: unknown[] = [];
    const endpoint = createMcpEndpoint<string>({
      handler,
      admit: () => ({ ok: true, context: 'gateway' }),
      onProblem: (problem) => problems.push(problem),
    });
    return { endpoint, problems, hop: await serve(endpoint.handle) };
  }

  test('results, refusals, bugs', async () => {
    const { hop, problems } = await ours();
    expect(await call(hop, 'tools/call', { name: 'who' })).toMatchObject({
      kind: 'result',
      result: { resultType: 'complete', content: [{ text: 'gateway' }] },
    });
    expect(await call(hop, 'tools/call', { name: 'busy' })).toEqual({
      kind: 'not-started',
      reason: 'busy',
      message: 'busy',
    });
    expect(await call(hop, 'tools/call', { name: 'bug' })).toMatchObject({ kind: 'lost', reason: 'unreadable' });
    expect(problems).toHaveLength(1);
    expect(await call(hop, 'initialize', {})).toMatchObject({ kind: 'error', error: { code: -32601 } });
  });

  test('cancellation and timeout close the stream, and the handler hears of it', async () => {
    const { hop, endpoint } = await ours();
    const cancel = new AbortController();
    const onNotification = () => cancel.abort();
    const meta = { progressToken: 1 };
    expect(await call(hop, 'tools/call', { name: 'hang' }, { signal: cancel.signal, meta, onNotification })).toEqual({
      kind: 'cancelled',
      sent: true,
    });
    expect(await call(hop, 'tools/call', { name: 'hang' }, { timeoutMs: 100 })).toMatchObject({
      kind: 'lost',
      reason: 'timeout',
    });
    while (aborted < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(endpoint.open()).toBe(0);
    expect(await call(hop, 'tools/call', { name: 'who' }, { signal: AbortSignal.abort() })).toEqual({
      kind: 'cancelled',
      sent: false,
    });
  });

  test('listening: ready, told, ended gracefully', async () => {
    const { hop, endpoint } = await ours();
    const told: string[] = [];
    const listening = listenHop(
      hop,
      'l',
      new AbortController().signal,
      () => told.push('ready'),
      () => told.push('changed'),
    );
    while (changed === undefined || told.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    changed();
    while (told.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    endpoint.endStreams();
    expect(await listening).toBe('ended');
    expect(told).toEqual(['ready', 'changed']);
    expect(changed).toBeUndefined();
  });

  test('[R08] nobody listens: nothing was sent', async () => {
    const { hop } = await ours();
    for (const { server } of open) {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }
    expect(await call(hop, 'tools/call', { name: 'who' })).toMatchObject({ kind: 'not-sent' });
  });

  test('the older era and batches are told what is spoken here', async () => {
    const { hop } = await ours();
    const origin = open[0]?.server.address() as AddressInfo;
    const post = async (body: object) => {
      const response = await fetch(`http://127.0.0.1:${origin.port}${hop.path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      return { status: response.status, body: (await response.json()) as { error: { code: number; data?: unknown } } };
    };
    expect(await post({ jsonrpc: '2.0', id: 1, method: 'initialize', params: {} })).toMatchObject({
      status: 400,
      body: { error: { code: -32022, data: { supported: ['2026-07-28'] } } },
    });
    expect((await post([])).body.error.code).toBe(-32600);
  });
});
