/** A remote server over real TLS on loopback whose answers a test writes, and a remote tool connected to it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import type { ToolCall } from '../../../src/mcp/handler.ts';
import { createTestAuthority } from '../../../src/net/testing/authority.ts';
import { answerOf } from '../../../src/sidecar/answers.ts';
import { createLog } from '../../../src/sidecar/log.ts';
import { createHeaders, type FilledHeaders } from '../../../src/sidecar/remote/fillHeaders.ts';
import {
  type RemoteOptions,
  type RemoteTiming,
  type RemoteTool,
  startRemote,
} from '../../../src/sidecar/remote/remoteTool.ts';

export const HOST = 'mcp.test';
export const authority = createTestAuthority();

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** The body's JSON, where there is one. */
  // biome-ignore lint/suspicious/noExplicitAny: what a test looks into
  readonly body: any;
}

export type Listener = (seen: Seen, response: ServerResponse, reset: () => void) => void;

export interface RemoteWorld {
  readonly port: number;
  readonly seen: Seen[];
  /** Connections that were made, and that are open. */
  readonly dialled: () => number;
  readonly open: () => number;
  /** Called for each request whose body was read whole. */
  answer: Listener;
  /** Called at a body's first bytes; true: it was dealt with. */
  atBody: ((reset: () => void) => boolean) | undefined;
  readonly close: () => Promise<void>;
}

export async function serveRemote(answer: Listener, names: readonly string[] = [HOST]): Promise<RemoteWorld> {
  const { certificatePem, keyPem } = authority.issue({ kind: 'edge' }, 3_600_000, names);
  const sockets = new Map<number, Socket>();
  let dialled = 0;
  const server: Server = createServer({ cert: certificatePem, key: keyPem, ALPNProtocols: ['http/1.1'] });
  server.on('connection', (socket: Socket) => {
    dialled++;
    const port = socket.remotePort ?? 0;
    sockets.set(port, socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(port));
  });
  server.on('tlsClientError', () => {});
  server.on('request', (request, response) => {
    const reset = () => void sockets.get(request.socket.remotePort ?? 0)?.resetAndDestroy();
    const chunks: Buffer[] = [];
    let dealtWith = false;
    response.on('error', () => {});
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => {
      dealtWith ||= chunks.length === 0 && world.atBody?.(reset) === true;
      chunks.push(chunk);
    });
    request.on('end', () => {
      if (dealtWith) return;
      const text = Buffer.concat(chunks).toString('utf8');
      const { method = '', url = '', headers } = request;
      const seen = { method, path: url, headers, body: text === '' ? undefined : JSON.parse(text) };
      world.seen.push(seen);
      world.answer(seen, response, reset);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const world: RemoteWorld = {
    port: (server.address() as AddressInfo).port,
    seen: [],
    dialled: () => dialled,
    open: () => sockets.size,
    answer,
    atBody: undefined,
    async close() {
      server.closeAllConnections();
      for (const socket of sockets.values()) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return world;
}

export const NO_HEADERS: FilledHeaders = { ok: true, headers: {}, query: '', redact: (text) => text };

export interface ToolOptions extends Partial<Omit<RemoteOptions, 'timing' | 'config'>> {
  readonly timing?: Partial<RemoteTiming>;
  readonly config?: Partial<RemoteOptions['config']>;
}

export interface TestTool extends RemoteTool {
  readonly lines: string[];
  /** A call as the sidecar would answer it. */
  readonly ask: (
    name: string,
    args?: ToolCall['arguments'],
    more?: Partial<ToolCall>,
  ) => Promise<ReturnType<typeof answerOf>>;
  readonly untilPhase: (phase: string) => Promise<void>;
}

export function connectTool(port: number, options: ToolOptions = {}): TestTool {
  const lines: string[] = [];
  const tool = startRemote({
    url: new URL(`https://${HOST}/mcp`),
    headersNow: () => NO_HEADERS,
    openTunnel: tunnelTo(port),
    upstreamCa: authority.authority.certificatePem,
    log: createLog((line) => lines.push(line)),
    ...options,
    config: { timeoutMs: 3_000, concurrency: 16, maxMessageBytes: 1024 * 1024, ...options.config },
    timing: {
      startMs: 3_000,
      listMs: 2_000,
      backoffFirstMs: 50,
      backoffLongestMs: 200,
      relistMs: 20,
      lookAgainMs: 20,
      drainWindowMs: 50,
      graceMs: 200,
      ...options.timing,
    },
  });
  tool.setSandbox(true, undefined);
  return {
    ...tool,
    lines,
    async ask(name, args = {}, more = {}) {
      const signal = new AbortController().signal;
      return answerOf(await tool.call({ name, arguments: args, meta: {}, signal, ...more }));
    },
    async untilPhase(phase) {
      await eventually(
        () => tool.status().phase === phase,
        () => `${phase}; it is ${JSON.stringify(tool.status())}`,
      );
    },
  };
}

/** A tunnel as egress gives one, without egress. */
export function tunnelTo(port: number): RemoteOptions['openTunnel'] {
  return (_host, _port, signal) =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1');
      socket.once('connect', () => resolve(socket));
      socket.once('error', reject);
      signal.addEventListener('abort', () => socket.destroy(), { once: true });
    });
}

export { createHeaders };

export async function eventually(condition: () => boolean, what: string | (() => string), ms = 8_000): Promise<void> {
  const until = Date.now() + ms;
  while (!condition()) {
    if (Date.now() > until) throw new Error(`did not come: ${typeof what === 'string' ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
