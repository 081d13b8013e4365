/** The gateway's process: settings, identity, watches, server, and their end in good order. Decides nothing itself. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { AUDIENCE_GATEWAY, PORT_TLS } from '../domain/naming.ts';
import type { Log as EngineLog } from '../engine/log.ts';
import { createClient } from '../kube/client.ts';
import { startIdentity } from '../net/identity.ts';
import { identityRequest } from '../net/identityRequest.ts';
import { openPeer } from '../net/peer.ts';
import { startTlsServer } from '../net/tlsServer.ts';
import type { Log } from '../runtime/log.ts';
import type { Running, Shell } from '../runtime/process.ts';
import { createCatalog } from './catalog/catalog.ts';
import { createGateway } from './gateway.ts';
import { createRecorder } from './recorder.ts';
import { readSettings } from './settings.ts';
import { watchCatalog } from './watch.ts';

/** Short, so that a black hole leaves time to dial another pod. */
const CONNECT_TIMEOUT_MS = 1_000;
const CONNECTIONS_PER_POD = 256;

export async function start(shell: Shell): Promise<Running> {
  const settings = readSettings(shell.environment);
  const { log } = shell;
  const { ownNode, trustDomain } = settings;
  const stop = new AbortController();
  const { signal } = stop;

  const identity = startIdentity({
    request: identityRequest({
      route: { kind: 'direct', ...settings.edge },
      trustDomain,
      trustBundlePem: () => readFile(settings.trustFile, 'utf8'),
      token: () => readFile(settings.tokenFile, 'utf8'),
    }),
    trustDomain,
    log: (level, event, fields) => log[level](fields ?? {}, event),
    signal,
  });

  const client = createClient();
  const catalog = createCatalog();
  const watching = watchCatalog({ client, catalog, ownNode, signal, log: engineLog(log) });
  const reviews = shell.metrics.counter('token_reviews_total', 'Reviews of tokens by the API server.', ['outcome']);

  let keysFrom: unknown;
  let keys: { id: string; key: Buffer }[] = [];
  const gateway = createGateway({
    ownNode,
    version: shell.environment['OZ0_VERSION'] ?? '0.1.0',
    catalog,
    synced: watching.synced,
    review: async (token, timeout) => {
      const review = await client.reviewToken(token, AUDIENCE_GATEWAY, { signal: timeout, timeoutMs: 5_000 });
      return review.authenticated ? { authenticated: true, user: review } : { authenticated: false };
    },
    onReview: (outcome) => reviews.inc({ outcome }),
    openConnections: ({ namespace, tool, route }) => {
      const peer = openPeer({
        address: { host: route.address, port: PORT_TLS },
        expected: { kind: 'tool', namespace, tool, podUid: route.podUid },
        trustDomain,
        credentials: identity,
        connections: CONNECTIONS_PER_POD,
        connectTimeoutMs: CONNECT_TIMEOUT_MS,
      });
      return { dispatcher: peer.dispatcher, close: peer.close };
    },
    sessionKeys: () => {
      const held = identity.current()?.sessionKeys ?? [];
      // Decoded once for each certificate, not for each request.
      if (held !== keysFrom) {
        keysFrom = held;
        keys = held.map(({ id, key }) => ({ id, key: Buffer.from(key, 'base64') }));
      }
      return keys;
    },
    recorder: createRecorder(log, shell.metrics),
    allowedOrigins: settings.allowedOrigins,
    onListingProblem: ({ namespace, name }, problem) =>
      log.warn({ namespace, tool: name, problem }, 'cannot list a tool'),
    onProblem: (error) => log.error({ error }, 'bug: a request failed'),
  });
  const running = shell.metrics.gauge('calls_in_flight', 'Calls that run now.', []);
  const measure = setInterval(() => running.set(gateway.callsInFlight()), 1_000);
  measure.unref();

  shell.health.addReadiness('identity', () => (identity.current() === undefined ? 'no certificate yet' : undefined));
  shell.health.addReadiness('gateway', gateway.notReady);

  // Not waited for: until edge answers, the process is unready and says why, and its probes are served.
  let closing = false;
  const server = startTlsServer({
    port: settings.port,
    credentials: identity,
    trustDomain,
    clientCertificate: 'none',
    handler: (request, response) => gateway.handle(request, response),
    signal,
  });
  server.catch((error: unknown) => {
    if (!closing) shell.exit(1, error instanceof Error ? error.message : 'cannot listen');
  });

  return {
    close: async () => {
      await sleep(settings.lingerMs);
      closing = true;
      const listening = await Promise.race([server.catch(() => undefined), sleep(0, undefined)]);
      const graceMs = settings.drainMs;
      const closed = listening?.close(graceMs + 2_000);
      await gateway.close(graceMs);
      stop.abort();
      await closed;
      clearInterval(measure);
      identity.close();
      await watching.ended;
      await client.close();
    },
  };
}

/** The same log, for parts that hand over any object. */
function engineLog(log: Log): EngineLog {
  return {
    debug: (fields, message) => log.debug({ ...fields }, message),
    info: (fields, message) => log.info({ ...fields }, message),
    warn: (fields, message) => log.warn({ ...fields }, message),
    error: (fields, message) => log.error({ ...fields }, message),
  };
}
