/** Egress: the tool pods' one way out. CONNECT over TLS, judged by the certificate that was shown; nothing is kept. */
import { readFile } from 'node:fs/promises';
import type { EgressPolicy } from '../domain/egress/decideConnect.ts';
import { PORT_TLS } from '../domain/naming.ts';
import { startIdentity } from '../net/identity.ts';
import { identityRequest } from '../net/identityRequest.ts';
import { createRateLimit } from '../net/rateLimit.ts';
import { startTlsServer } from '../net/tlsServer.ts';
import { ConfigurationError, type Environment } from '../runtime/configuration.ts';
import type { Running, Shell } from '../runtime/process.ts';
import { createConnectHandler } from './connectHandler.ts';
import type { TunnelBounds } from './tunnel.ts';

export interface EgressOptions {
  readonly trustDomain: string;
  readonly edge: { readonly host: string; readonly port: number };
  readonly tokenFile: string;
  readonly trustFile: string;
  readonly policy: EgressPolicy;
  readonly host?: string;
  readonly port: number;
  readonly signerBounds?: TunnelBounds;
  /** How long tunnels may go on after the process was told to end. */
  readonly drainMs: number;
}

/** Below the pod's grace of 660 s. */
const DRAIN_MS = 640_000;
/** New connections of one address: handshakes cost. */
const CONNECTION_BURST = 400;
const CONNECTIONS_PER_MINUTE = 1_200;

/** No Tool names a host yet. */
const CLOSED: EgressPolicy = { hosts: () => new Set() };

export async function start(shell: Shell): Promise<Running> {
  return startEgress(shell, readOptions(shell.environment));
}

/** Returns at once, and is unready until it has a certificate. */
export function startEgress(shell: Shell, options: EgressOptions): Running & { readonly listening: Promise<number> } {
  const stop = new AbortController();
  const { signal } = stop;
  const identity = startIdentity({
    request: identityRequest({
      route: { kind: 'direct', ...options.edge },
      trustDomain: options.trustDomain,
      trustBundlePem: () => readFile(options.trustFile, 'utf8'),
      token: () => readFile(options.tokenFile, 'utf8'),
    }),
    trustDomain: options.trustDomain,
    log: (level, event, fields) => shell.log[level](fields ?? {}, event),
    signal,
  });
  shell.health.addReadiness('identity', () => (identity.current() ? undefined : 'no certificate'));
  const connects = shell.metrics.counter('connects_total', 'Requests to connect, by outcome.', ['outcome']);
  const tunnels = shell.metrics.gauge('open_tunnels', 'Tunnels that are open.', []);
  const handler = createConnectHandler({
    policy: options.policy,
    signer: options.edge,
    ...(options.signerBounds === undefined ? {} : { signerBounds: options.signerBounds }),
    log: shell.log,
    count(outcome) {
      connects.inc({ outcome });
      tunnels.set(handler.open());
    },
    signal,
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
    limits: { maxConnections: 10_000, requestTimeoutMs: 10_000, idleTimeoutMs: 5_000 },
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
      await server?.close(options.drainMs);
      identity.close();
      stop.abort(new Error('egress closes'));
    },
  };
}

function readOptions(environment: Environment): EgressOptions {
  const required = (name: string): string => {
    const value = environment[name];
    if (!value) throw new ConfigurationError(`These environment variables are missing or wrong:\n  ${name}: is needed`);
    return value;
  };
  const namespace = required('OZ0_NAMESPACE');
  return {
    trustDomain: required('OZ0_TRUST_DOMAIN'),
    // Absolute, so that no search list is tried.
    edge: { host: `oz0-edge.${namespace}.svc.${environment['OZ0_CLUSTER_DOMAIN'] || 'cluster.local'}.`, port: 443 },
    tokenFile: '/oz0/identity/token',
    trustFile: '/oz0/trust/ca.crt',
    policy: CLOSED,
    port: PORT_TLS,
    drainMs: DRAIN_MS,
  };
}
