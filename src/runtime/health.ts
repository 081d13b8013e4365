/** Plaintext health for the kubelet's probes: `/livez` says the process turns, `/readyz` that each named check holds. */
import { createServer, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Log } from './log.ts';

export interface Health {
  /** Adds a check to `/readyz`; it answers undefined when all is well, else why not, in words for a person. */
  addReadiness(name: string, check: () => string | undefined): void;
  /** Makes `/readyz` fail from now on, whatever the checks say: shutdown has begun. */
  startDraining(): void;
  /** Makes `/livez` fail: only a restart can help. */
  fail(problem: string): void;
  notReady(): Readonly<Record<string, string>>;
  listen(port: number): Promise<void>;
  close(): Promise<void>;
  /** The port listened on, once listening. */
  port(): number | undefined;
}

export function createHealth(log: Log): Health {
  const checks = new Map<string, () => string | undefined>();
  let draining = false;
  let failed: string | undefined;
  let said = '';

  const notReady = (): Record<string, string> => {
    const problems: Record<string, string> = draining ? { shutdown: 'draining' } : {};
    for (const [name, check] of checks) {
      const problem = check();
      if (problem !== undefined) problems[name] = problem;
    }
    return problems;
  };

  const server: Server = createServer((request, response) => {
    const answer = (problems: Record<string, string>) => {
      const ok = Object.keys(problems).length === 0;
      response.writeHead(ok ? 200 : 503, { 'content-type': 'application/json' });
      response.end(JSON.stringify(ok ? { ok } : { ok, problems }));
    };
    switch (request.url) {
      case '/livez':
        return answer(failed === undefined ? {} : { process: failed });
      case '/readyz': {
        const problems = notReady();
        const now = JSON.stringify(problems);
        // One line per change, not per probe.
        if (now !== said) log.info({ problems }, now === '{}' ? 'ready' : 'not ready');
        said = now;
        return answer(problems);
      }
      default:
        response.writeHead(404).end();
    }
  });
  server.headersTimeout = 5_000;
  server.requestTimeout = 5_000;
  server.maxConnections = 64;

  return {
    addReadiness: (name, check) => void checks.set(name, check),
    startDraining: () => {
      draining = true;
    },
    fail: (problem) => {
      failed = problem;
    },
    notReady,
    listen: (port) => listenOn(server, port),
    close: () => closeServer(server),
    port: () => portOf(server),
  };
}

/** Listens on all addresses; rejects with the socket's error (a port in use) instead of an uncaught event. */
export function listenOn(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Stops accepting, gives running answers a moment, then cuts what is left. */
export async function closeServer(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  await Promise.race([closed, sleep(1_000, undefined, { ref: false })]);
  server.closeAllConnections();
  await closed;
}

function portOf(server: Server): number | undefined {
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : undefined;
}
