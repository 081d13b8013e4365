import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decideHello, readClientHello } from '../domain/egress/clientHello.ts';
import { type TunnelOptions, tunnel } from './tunnel.ts';

const server = createServer({ allowHalfOpen: true });
let port = 0;
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  port = typeof address === 'object' ? (address?.port ?? 0) : 0;
});
afterAll(() => void server.close());

/** Two ends of one connection. */
async function pair(): Promise<readonly [Socket, Socket]> {
  const arrived = once(server, 'connection') as Promise<[Socket]>;
  const near = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  const [far] = await arrived;
  for (const socket of [near, far]) socket.on('error', () => {});
  return [near, far];
}

async function carry(more: Partial<TunnelOptions> = {}) {
  const [tool, client] = await pair();
  const [upstream, host] = await pair();
  let got = '';
  host.on('data', (part) => {
    got += String(part);
  });
  const running = tunnel({
    client,
    upstream,
    head: Buffer.alloc(0),
    bounds: { maxMs: 5_000, maxBytes: 1_000_000 },
    ...more,
  });
  return { tool, host, running, got: () => got };
}

const port443 = { kind: 'name', host: 'api.example.com', port: 443 } as const;
const first = { judge: (bytes: Uint8Array) => decideHello(readClientHello(bytes), port443), withinMs: 100 };

test.each([
  ['HTTP', 'GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n'],
  ['SSH', 'SSH-2.0-x\r\n'],
])('[case 104] on 443, %s is cut off, and the other side sees nothing', async (_name, text) => {
  const { tool, running, got } = await carry({ first });
  tool.write(text);
  expect(await running.ended).toMatchObject({ end: 'tls-required', bytesUp: 0 });
  expect(got()).toBe('');
});

test('[case 104] what came behind the CONNECT is looked at as well', async () => {
  const { running, got } = await carry({ first, head: Buffer.from('GET / HTTP/1.1\r\n') });
  expect((await running.ended).end).toBe('tls-required');
  expect(got()).toBe('');
});

test('a client that opens a tunnel and says nothing, or never ends its first message', async () => {
  const silent = await carry({ first });
  expect((await silent.running.ended).end).toBe('silent');
  const slow = await carry({ first });
  slow.tool.write(Buffer.from([22, 3, 1, 2, 0]));
  expect((await slow.running.ended).end).toBe('silent');
  const parts = await carry({ first: { ...first, judge: () => 'more' as const, withinMs: 5_000 } });
  for (let i = 0; i < 80 && !parts.tool.destroyed; i++) {
    parts.tool.write('x');
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  expect((await parts.running.ended).end).toBe('odd-hello');
});

test('an end of one side is passed on, and the answer still comes', async () => {
  const { tool, host, running } = await carry();
  tool.end('question');
  await once(host, 'end');
  host.end('answer');
  const [answer] = await once(tool, 'data');
  expect(String(answer)).toBe('answer');
  expect((await running.ended).end).toBe('ended');
});

test('what was sent before a side went is delivered whole', async () => {
  const { tool, host, running } = await carry();
  let got = 0;
  tool.on('data', (part: Buffer) => {
    got += part.length;
  });
  tool.once('end', () => tool.end());
  host.end(Buffer.alloc(900_000));
  expect(await running.ended).toMatchObject({ end: 'ended', bytesDown: 900_000 });
  expect(got).toBe(900_000);
});

test('sides that are gone already', async () => {
  const [, client] = await pair();
  const [upstream] = await pair();
  client.destroy();
  await once(client, 'close');
  const running = tunnel({ client, upstream, head: Buffer.alloc(0), bounds: { maxMs: 5_000, maxBytes: 1 } });
  expect((await running.ended).end).toBe('ended');
  expect(upstream.destroyed).toBe(true);
});
