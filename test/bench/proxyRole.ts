/**
 * One process of the credential proxy's benchmark, told by its parent what to be: the host behind TLS, egress, a bare CONNECT
 * proxy, or the credential proxy. Answers `usage` with its CPU time and memory.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp, type IncomingMessage } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connectTunnel } from '../../src/net/connectTunnel.ts';
import { createPodAuthority } from '../../src/sidecar/proxy/podAuthority.ts';
import { startCredentialProxy } from '../../src/sidecar/proxy/startCredentialProxy.ts';

export const HOST = 'api.example.test';

export type ProxyRoleOptions =
  | { readonly role: 'host' }
  | { readonly role: 'egress'; readonly hostPort: number }
  | { readonly role: 'bare'; readonly egressPort: number }
  | { readonly role: 'proxy'; readonly egressPort: number; readonly upstreamCa: string };

export type ProxyRoleMessage =
  | { readonly kind: 'listening'; readonly port: number; readonly ca?: string; readonly placeholder?: string }
  | { readonly kind: 'usage'; readonly cpuUs: number; readonly rssBytes: number; readonly privateBytes: number };

const ANSWER = JSON.stringify({ ok: true, text: 'x'.repeat(1_000) });

process.on('message', (message: ProxyRoleOptions | 'usage') => {
  if (message === 'usage') void usage();
  else void start(message).then((listening) => say({ kind: 'listening', ...listening }));
});
process.on('disconnect', () => process.exit(0));

function say(message: ProxyRoleMessage): void {
  process.send?.(message);
}

async function usage(): Promise<void> {
  const { readFile } = await import('node:fs/promises');
  const { user, system } = process.cpuUsage();
  const rollup = await readFile('/proc/self/smaps_rollup', 'utf8').catch(() => '');
  const kib = (name: string): number => Number(new RegExp(`^${name}:\\s+([0-9]+)`, 'm').exec(rollup)?.[1] ?? 0);
  const privateBytes = (kib('Private_Clean') + kib('Private_Dirty')) * 1_024;
  say({ kind: 'usage', cpuUs: user + system, rssBytes: process.memoryUsage().rss, privateBytes });
}

async function start(options: ProxyRoleOptions): Promise<{ port: number; ca?: string; placeholder?: string }> {
  switch (options.role) {
    case 'host': {
      const authority = createPodAuthority([HOST], Date.now);
      const server = createHttps(
        { SNICallback: (name, callback) => callback(null, authority.contextFor(name)) },
        (request, response) => {
          request.resume();
          request.on('end', () =>
            response
              .writeHead(200, { 'content-type': 'application/json', 'content-length': ANSWER.length })
              .end(ANSWER),
          );
        },
      );
      server.keepAliveTimeout = 120_000;
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return { port: (server.address() as AddressInfo).port, ca: authority.certificatePem };
    }
    case 'egress':
      return { port: await connectProxy(async () => connect(options.hostPort, '127.0.0.1')) };
    case 'bare':
      return { port: await connectProxy((target) => way(options.egressPort, target)) };
    case 'proxy': {
      const folder = mkdtempSync(join(tmpdir(), 'oz0-bench-'));
      process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
      writeFileSync(join(folder, 'KEY'), 'the-value-of-the-secret-4711');
      writeFileSync(join(folder, 'ca.crt'), options.upstreamCa);
      const proxy = await startCredentialProxy({
        config: {
          secrets: [{ name: 'KEY', file: 'KEY' }],
          bindings: [
            {
              secret: 'KEY',
              host: HOST,
              port: 443,
              in: 'header',
              name: 'Authorization',
              // biome-ignore lint/suspicious/noTemplateCurlyInString: what a binding says
              format: 'Bearer ${value}',
              websocket: false,
            },
          ],
        },
        secretsDir: folder,
        upstreamCaFile: join(folder, 'ca.crt'),
        openTunnel: (host, port) => way(options.egressPort, `${host}:${port}`),
        log: () => {},
        signal: new AbortController().signal,
        port: 0,
      });
      const [ca] = proxy.bundleFiles();
      return { port: proxy.port, ca: String(ca?.content ?? ''), placeholder: proxy.environment()['KEY'] ?? '' };
    }
  }
}

async function way(egressPort: number, target: string): Promise<Socket> {
  const socket = connect({ port: egressPort, host: '127.0.0.1', noDelay: true });
  await connectTunnel(socket, target, AbortSignal.timeout(5_000));
  return socket;
}

/** The least that a CONNECT proxy can do in Node. */
async function connectProxy(open: (target: string) => Promise<Socket>): Promise<number> {
  const server = createHttp();
  server.on('connect', async (request: IncomingMessage, client: Socket) => {
    client.on('error', () => {});
    try {
      const upstream = await open(request.url ?? '');
      upstream.on('error', () => client.destroy());
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.setNoDelay(true);
      client.pipe(upstream).pipe(client);
    } catch {
      client.destroy();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}
