/** The gateway's process: settings, identity, watches, server, and their end in good order. Decides nothing itself. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AUDIENCE_GATEWAY, PORT_TLS } from '../domain/naming.ts';
import { createClient, type KubeClient } from '../kube/client.ts';
import type { SessionKey } from '../mcp/sealedSession.ts';
import type { IdentityHolder } from '../net/identity.ts';
import { openPeer } from '../net/peer.ts';
import { startProcessIdentity } from '../net/processIdentity.ts';
import { startTlsServer } from '../net/tlsServer.ts';
import { takingAny } from '../runtime/log.ts';
import type { Running, Shell } from '../runtime/process.ts';
import { watchApiSilence } from './apiSilence.ts';
import { createCatalog } from './catalog/catalog.ts';
import { createGateway } from './gateway.ts';
import type { OpenConnections } from './hops.ts';
import { createRecorder } from './recorder.ts';
import { readSettings, type Settings } from './settings.ts';
import { watchToolCalls } from './toolCalls/watchToolCalls.ts';
import { watchCatalog } from './watch.ts';

/** Short, so that a black hole leaves time to dial another pod. */
const CONNECT_TIMEOUT_MS = 1_000;
const CONNECTIONS_PER_POD = 256;
/** Of one pod: its calls and event streams at once, each a connection of its own. */
const CONNECTIONS_PER_AGENT = 256;
const REVIEW_TIMEOUT_MS = 5_000;
const CLOSE_MARGIN_MS = 2_000;

export async function start(shell: Shell): Promise<Running> {
  const settings = readSettings(shell.environment);
  return startGateway(shell, { settings, client: createClient() });
}

export interface StartOptions {
  readonly settings: Settings;
  /** Closed with the gateway. */
  readonly client: KubeClient;
  /** Unset: all addresses. */
  readonly host?: string;
  readonly toolPort?: number;
  /** For tests: how often the API server is asked for a sign of life, and when it counts as silent. */
  readonly heartbeat?: { readonly intervalMs: number; readonly silentAfterMs: number };
}

/** `listening`: the port, once there is a certificate to show; the rest of the process does not wait for it. */
export function startGateway(shell: Shell, options: StartOptions): Running & { readonly listening: Promise<number> } {
  const { settings, client } = options;
  const { log } = shell;
  const { ownNode, trustDomain } = settings;
  const stop = new AbortController();
  const { signal } = stop;

  const identity = startProcessIdentity(settings, (level, event, fields) => log[level](fields ?? {}, event), signal);
  const catalog = createCatalog({
    operatorNamespace: settings.namespace,
    onProblem: (kind, namespace, name, problem) =>
      log.warn({ kind, namespace, name, problem }, 'an object denies what it governs'),
  });
  const watching = watchCatalog({ client, catalog, ownNode, signal, log: takingAny(log) });
  const silence = watchApiSilence({
    ask: watching.askForStops,
    signal,
    ...options.heartbeat,
  });
  const reviews = shell.metrics.counter('token_reviews_total', 'Reviews of tokens by the API server.', ['outcome']);
  const gateway = createGateway({
    ownNode,
    version: settings.version,
    catalog,
    synced: watching.synced,
    apiSilent: silence.silent,
    review: async (token, timeout) => {
      const review = await client.reviewToken(token, AUDIENCE_GATEWAY, {
        signal: timeout,
        timeoutMs: REVIEW_TIMEOUT_MS,
      });
      return review.authenticated ? { authenticated: true, user: review } : { authenticated: false };
    },
    onReview: (outcome) => reviews.inc({ outcome }),
    openConnections: dialTools(identity, trustDomain, options.toolPort ?? PORT_TLS),
    sessionKeys: decodedKeys(identity),
    recorder: createRecorder(log, shell.metrics),
    limits: { resultTokens: settings.resultTokens },
    record: { door: client, podUid: settings.podUid },
    allowedOrigins: settings.allowedOrigins,
    onListingProblem: ({ namespace, name }, problem) => {
      log.warn({ namespace, tool: name, problem }, 'cannot list a tool');
    },
    onProblem: (error) => log.error({ error }, 'bug: a request failed'),
  });
  const toolCalls = watchToolCalls({ client, upkeep: gateway.upkeep, ownNode, signal, log: takingAny(log) });
  const inFlight = shell.metrics.gauge('calls_in_flight', 'Calls that run now.', []);
  const silent = shell.metrics.gauge(
    'api_server_silent',
    '1 while the API server was not heard for so long that only calls that read are made.',
    [],
  );
  const measure = setInterval(() => {
    inFlight.set(gateway.callsInFlight());
    silent.set(silence.silent() ? 1 : 0);
  }, 1_000);
  measure.unref();
  shell.health.addReadiness('identity', () => (identity.current() === undefined ? 'no certificate yet' : undefined));
  shell.health.addReadiness('gateway', gateway.notReady);

  // Not waited for: until edge answers, the process is unready and says why, and its probes are served.
  const server = startTlsServer({
    ...(options.host === undefined ? {} : { host: options.host }),
    port: settings.port,
    credentials: identity,
    trustDomain,
    clientCertificate: 'none',
    limits: { maxConnectionsPerAddress: CONNECTIONS_PER_AGENT },
    handler: (request, response) => gateway.handle(request, response),
    signal,
  });
  server.catch((error: unknown) => {
    if (!signal.aborted) shell.exit(1, error instanceof Error ? error.message : 'cannot listen');
  });

  return {
    listening: server.then(({ address }) => address.port),
    close: async () => {
      // Services still lead here for a moment: new calls are taken until they do not.
      await sleep(settings.lingerMs);
      const listening = await Promise.race([server.catch(() => undefined), sleep(0, undefined)]);
      const closed = listening?.close(settings.drainMs + CLOSE_MARGIN_MS);
      await gateway.close(settings.drainMs);
      stop.abort(new Error('the gateway is closed'));
      await closed;
      clearInterval(measure);
      identity.close();
      await Promise.all([watching.ended, silence.ended, toolCalls.ended]);
      await client.close();
    },
  };
}

/** Connections to a tool's pod that its certificate has to prove: whoever took over its address is not called. */
function dialTools(credentials: IdentityHolder, trustDomain: string, port: number): OpenConnections {
  return ({ namespace, tool, route }) => {
    const peer = openPeer({
      address: { host: route.address, port },
      expected: { kind: 'tool', namespace, tool, podUid: route.podUid },
      trustDomain,
      credentials,
      connections: CONNECTIONS_PER_POD,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
    });
    return { dispatcher: peer.dispatcher, close: peer.close };
  };
}

/** The keys that came with the certificate, decoded once for each certificate. */
function decodedKeys(identity: IdentityHolder): () => readonly SessionKey[] {
  let from: unknown;
  let keys: readonly SessionKey[] = [];
  return () => {
    const held = identity.current()?.sessionKeys;
    if (held !== from) {
      from = held;
      keys = (held ?? []).map(({ id, key }) => ({ id, key: Buffer.from(key, 'base64') }));
    }
    return keys;
  };
}
