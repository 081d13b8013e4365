/** Plaintext health for the kubelet: started (the tool may be), ready (calls are served), alive. */
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface HealthOptions {
  readonly host?: string;
  readonly port: number;
  /** Undefined when it is so, else why not. */
  readonly started: () => string | undefined;
  readonly ready: () => string | undefined;
}

export interface HealthServer {
  readonly port: number;
  readonly close: () => Promise<void>;
}

/** The rest is for the kubelet, whatever the tool beside this process does. */
const MAX_CONNECTIONS = 32;
const MAX_OWN_CONNECTIONS = 8;

export async function startHealth(options: HealthOptions): Promise<HealthServer> {
  const checks: Readonly<Record<string, () => string | undefined>> = {
    '/livez': () => undefined,
    '/startedz': options.started,
    '/readyz': options.ready,
  };
  const server = createServer((request, response) => {
    const check = checks[request.url ?? ''];
    const problem = check?.();
    response.writeHead(check === undefined ? 404 : problem === undefined ? 200 : 503, { 'content-type': 'text/plain' });
    response.end(check === undefined ? '' : (problem ?? 'ok'));
  });
  server.headersTimeout = 5_000;
  server.requestTimeout = 5_000;
  server.maxConnections = MAX_CONNECTIONS;
  let own = 0;
  server.on('connection', (socket) => {
    if (!isOwn(socket)) return;
    own++;
    socket.once('close', () => own--);
    if (own > MAX_OWN_CONNECTIONS) socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: options.host, port: options.port }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** From this very pod: the kubelet is elsewhere. */
export function isOwn({ remoteAddress, localAddress }: Pick<Socket, 'remoteAddress' | 'localAddress'>): boolean {
  return remoteAddress === undefined || remoteAddress === localAddress || /^(::ffff:)?127\.|^::1$/.test(remoteAddress);
}
