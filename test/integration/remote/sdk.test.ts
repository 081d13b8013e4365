/** Remote tools against servers of the SDKs: v2 with the stateless era, v1 with sessions. */
import type { IncomingMessage } from 'node:http';
import { McpServer as OldServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { connectTool, eventually, type Seen, serveRemote, type TestTool } from './world.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});
const answered = (value: string) => ({ kind: 'result', result: { content: [{ type: 'text', text: value }] } });

async function use(tool: TestTool) {
  await tool.untilPhase('Ready');
  const heard: number[] = [];
  const progress = ({ progress: value }: { progress: number }) => heard.push(value);
  expect(await tool.ask('add', { a: 1, b: 2 }, { progress })).toMatchObject(answered('3'));
  expect(heard).toEqual([1]);
  expect(await tool.ask('add', { a: 1, b: 'x' })).toSatisfy(
    (answer: { kind: string; result?: { isError?: boolean } }) =>
      answer.kind === 'error' || answer.result?.isError === true,
  );
}

test('[K06] the SDK’s v2 server, stateless', async () => {
  let calls = 0;
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: 'sdk', version: '2' });
      server.registerTool(
        'add',
        { inputSchema: z.object({ a: z.number(), b: z.number() }) },
        async ({ a, b }, context) => {
          calls++;
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
  const world = await serveRemote(async ({ method, headers, path, body }: Seen, response) => {
    const init = {
      method,
      headers: Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
    };
    const answer = await handler.fetch(
      new Request(`https://mcp.test${path}`, method === 'POST' ? { ...init, body: JSON.stringify(body) } : init),
    );
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    for await (const chunk of answer.body ?? []) response.write(chunk);
    response.end();
  });
  const tool = connectTool(world.port);
  closers.push(world.close, tool.close);
  await use(tool);
  expect(tool.status().server).toEqual({ name: 'sdk', version: '2', protocolVersion: '2026-07-28' });
  expect(calls).toBe(1);
});

test('[K06] the SDK’s v1 server, with sessions', async () => {
  const transports = new Map<string, StreamableHTTPServerTransport>();
  let calls = 0;
  const begin = async () => {
    const server = new OldServer({ name: 'old', version: '1' });
    server.registerTool('add', { inputSchema: { a: z.number(), b: z.number() } }, async ({ a, b }, extra) => {
      calls++;
      const progressToken = extra._meta?.progressToken;
      if (progressToken !== undefined) {
        await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 1 } });
      }
      return { content: [{ type: 'text', text: String(a + b) }] };
    });
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void transports.set(id, transport),
      onsessionclosed: (id) => void transports.delete(id),
    });
    await server.connect(transport as unknown as Parameters<OldServer['connect']>[0]);
    return transport;
  };
  const world = await serveRemote(async ({ headers, body }, response) => {
    const id = headers['mcp-session-id'];
    const held = typeof id === 'string' ? transports.get(id) : undefined;
    if (typeof id === 'string' && held === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } }));
      return;
    }
    const request = (response as unknown as { req: IncomingMessage }).req;
    await (held ?? (await begin())).handleRequest(request, response, body);
  });
  const tool = connectTool(world.port);
  closers.push(world.close, tool.close);
  await use(tool);
  expect(tool.status().server).toEqual({ name: 'old', version: '1', protocolVersion: '2025-11-25' });
  expect(calls).toBe(1);
  // Its sessions are gone, as after a restart.
  for (const transport of transports.values()) await transport.close();
  transports.clear();
  expect(await tool.ask('add', { a: 2, b: 2 })).toMatchObject(answered('4'));
  expect(calls).toBe(2);
  await tool.close();
  await eventually(() => transports.size === 0, 'the session is ended');
});
