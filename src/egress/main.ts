/** Egress: the tool pods' one way out. CONNECT over TLS, judged by the certificate that was shown; nothing is kept. */
import { networkInterfaces } from 'node:os';
import { type Cidr, parseAddress, single } from '../domain/egress/cidr.ts';
import type { EgressPolicy, ToolIdentity } from '../domain/egress/decideConnect.ts';
import { type AddressVerdict, type Destination, judgeAddress, NO_NETWORKS } from '../domain/egress/judgeAddress.ts';
import { createClient, type KubeClient } from '../kube/client.ts';
import { startProcessIdentity } from '../net/processIdentity.ts';
import { createRateLimit } from '../net/rateLimit.ts';
import { createResolver, type Resolve } from '../net/resolve.ts';
import { startTlsServer } from '../net/tlsServer.ts';
import { type Log, takingAny } from '../runtime/log.ts';
import type { Running, Shell } from '../runtime/process.ts';
import { createEgressCatalog } from './catalog.ts';
import { type ConnectHandler, createConnectHandler } from './connectHandler.ts';
import { createModelRoute, type ModelGateway, type ModelRoute } from './modelRoute.ts';
import { readSettings, type Settings } from './settings.ts';
import type { ToolLimitOptions } from './toolLimits.ts';
import type { TunnelBounds } from './tunnel.ts';
import { watchEgress } from './watch.ts';

export interface EgressOptions {
  readonly trustDomain: string;
  readonly edge: { readonly host: string; readonly port: number };
  readonly tokenFile: string;
  readonly trustFile: string;
  readonly policy: EgressPolicy;
  /** Entries of a tool's list that cannot be read, in words. */
  readonly problems?: (tool: ToolIdentity) => readonly string[];
  /** Unset: by what an address is by itself; only public ones are dialled. */
  readonly judge?: (address: string, destination: Destination) => AddressVerdict;
  readonly resolve?: Resolve;
  /** Calls back after a change of what policy or judge say. Returns how to stop. */
  readonly onChange?: (listener: () => void) => () => void;
  readonly host?: string;
  readonly port: number;
  readonly signerBounds?: TunnelBounds;
  /** Unset: there is none. */
  readonly model?: ModelGateway;
  readonly toolBounds?: TunnelBounds;
  readonly toolLimits?: Partial<ToolLimitOptions>;
  readonly dialTimeoutMs?: number;
  /** How long tunnels may go on after the process was told to end. */
  readonly drainMs: number;
}

/** Below the pod's grace of 660 s. */
const DRAIN_MS = 640_000;
/** New connections of one address: handshakes cost. */
const CONNECTION_BURST = 400;
const CONNECTIONS_PER_MINUTE = 1_200;
/** Changes come in bursts (a rollout, a first list); open tunnels are looked at once for all of one. */
const RECHECK_MS = 50;

export async function start(shell: Shell): Promise<Running> {
  return startEgressProcess(shell, { settings: readSettings(shell.environment), client: createClient() });
}

export interface ProcessOptions {
  readonly settings: Settings;
  /** Closed with the process. */
  readonly client: KubeClient;
  /** Unset: this machine's. */
  readonly self?: readonly Cidr[];
  readonly resolve?: Resolve;
  readonly host?: string;
  readonly drainMs?: number;
}

/** Egress with what it learns of the cluster. */
export function startEgressProcess(
  shell: Shell,
  options: ProcessOptions,
): Running & { readonly listening: Promise<number> } {
  const { settings, client } = options;
  const stop = new AbortController();
  const catalog = createEgressCatalog({
    fixed: {
      ...NO_NETWORKS,
      self: options.self ?? ownAddresses(),
      never: settings.never,
      allow: settings.allow,
      services: settings.services,
      pods: settings.pods,
      api: settings.api,
    },
    synced: (): boolean => watching.synced(),
  });
  const watching = watchEgress({
    client,
    catalog,
    servicesKnown: settings.services.length > 0,
    signal: stop.signal,
    log: takingAny(shell.log),
  });
  shell.health.addReadiness('cluster', catalog.notReady);
  sayWhatIsOpened(shell.log, settings);
  const egress = startEgress(shell, {
    ...settings,
    policy: catalog.policy,
    problems: catalog.problems,
    judge: (address, destination) => judgeAddress(address, destination, catalog.networks()),
    onChange: catalog.onChange,
    ...(options.resolve === undefined ? {} : { resolve: options.resolve }),
    ...(options.host === undefined ? {} : { host: options.host }),
    drainMs: options.drainMs ?? DRAIN_MS,
  });
  return {
    listening: egress.listening,
    async close() {
      await egress.close();
      stop.abort(new Error('egress closes'));
      await watching.ended;
      await client.close();
    },
  };
}

/** Returns at once, and is unready until it has a certificate. */
export function startEgress(shell: Shell, options: EgressOptions): Running & { readonly listening: Promise<number> } {
  const stop = new AbortController();
  const { signal } = stop;
  const identity = startProcessIdentity(
    options,
    (level, event, fields) => shell.log[level](fields ?? {}, event),
    signal,
  );
  shell.health.addReadiness('identity', () => (identity.current() ? undefined : 'no certificate'));
  const handler = handleConnects(shell, options, signal);
  let rechecking: NodeJS.Timeout | undefined;
  const unfollow = options.onChange?.(() => {
    rechecking ??= setTimeout(() => {
      rechecking = undefined;
      handler.recheck();
    }, RECHECK_MS);
  });
  const arrivals = createRateLimit(CONNECTION_BURST, CONNECTIONS_PER_MINUTE, 20_000, Date.now);
  const starting = startTlsServer({
    ...(options.host === undefined ? {} : { host: options.host }),
    port: options.port,
    credentials: identity,
    trustDomain: options.trustDomain,
    clientCertificate: 'optional',
    handler: handler.onRequest,
    onConnect: handler.onConnect,
    acceptAddress: (address) => arrivals.take(address),
    limits: { maxConnections: 10_000, maxHeaderBytes: 8 * 1024, requestTimeoutMs: 10_000, idleTimeoutMs: 5_000 },
    signal,
  });
  starting.catch((error) => {
    if (!signal.aborted) shell.exit(1, error instanceof Error ? error.message : 'egress failed');
  });
  const listening = starting.then((server) => server.address.port);
  listening.catch(() => {});
  return {
    listening,
    async close() {
      if (identity.current() === undefined) stop.abort(new Error('egress closes'));
      const server = await starting.catch(() => undefined);
      const closing = server?.close(options.drainMs);
      handler.wane();
      await closing;
      unfollow?.();
      clearTimeout(rechecking);
      identity.close();
      stop.abort(new Error('egress closes'));
    },
  };
}

function handleConnects(shell: Shell, options: EgressOptions, signal: AbortSignal): ConnectHandler {
  const { metrics } = shell;
  const connects = metrics.counter('connects_total', 'Requests to connect, by outcome.', ['outcome']);
  const addresses = metrics.counter('refused_addresses_total', 'Hosts refused for an address, by its class.', [
    'class',
  ]);
  const ends = metrics.counter('tunnel_ends_total', 'Ends of tunnels of tools, by why.', ['end']);
  const bytes = metrics.counter('tunnel_bytes_total', 'Bytes through tunnels of tools that have ended.', ['direction']);
  const tunnels = metrics.gauge('open_tunnels', 'Tunnels that are open.', []);
  const handler = createConnectHandler({
    policy: options.policy,
    ...(options.problems === undefined ? {} : { problems: options.problems }),
    judge: options.judge ?? ((address, destination) => judgeAddress(address, destination, NO_NETWORKS)),
    resolve: options.resolve ?? createResolver(),
    signer: options.edge,
    ...(options.signerBounds === undefined ? {} : { signerBounds: options.signerBounds }),
    ...(options.model === undefined ? {} : { model: modelRoute(shell, options.model) }),
    ...(options.toolBounds === undefined ? {} : { toolBounds: options.toolBounds }),
    ...(options.toolLimits === undefined ? {} : { toolLimits: options.toolLimits }),
    ...(options.dialTimeoutMs === undefined ? {} : { dialTimeoutMs: options.dialTimeoutMs }),
    log: shell.log,
    count(outcome) {
      connects.inc({ outcome });
      tunnels.set(handler.open());
    },
    countRefusedAddress: (what) => addresses.inc({ class: what }),
    countEnd({ end, bytesUp, bytesDown }) {
      ends.inc({ end });
      bytes.inc({ direction: 'up' }, bytesUp);
      bytes.inc({ direction: 'down' }, bytesDown);
      tunnels.set(handler.open());
    },
    signal,
  });
  return handler;
}

function modelRoute({ log, metrics }: Shell, gateway: ModelGateway): ModelRoute {
  const requests = metrics.counter('model_requests_total', 'Requests to the model gateway, by outcome.', ['outcome']);
  return createModelRoute({ gateway, log, count: (outcome) => requests.inc({ outcome }) });
}

function ownAddresses(): readonly Cidr[] {
  return Object.values(networkInterfaces()).flatMap((entries) =>
    (entries ?? []).flatMap(({ address }) => {
      const read = parseAddress(address.split('%')[0] ?? '');
      return read === undefined ? [] : [single(read)];
    }),
  );
}

function sayWhatIsOpened(log: Log, { allow, never }: Settings): void {
  const networks = allow.map(({ cidr, namespaces, ports }) => ({ cidr: cidr.text, namespaces, ports }));
  log.info({ connectAllowNet: networks, never: never.map(({ text }) => text) }, 'networks');
}
