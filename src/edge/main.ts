/** Edge: signs the identities of tool pods and of the other processes. Serves nothing else, and calls the API server only. */
import { PORT_TLS } from '../domain/naming.ts';
import { createClient, type KubeClient } from '../kube/client.ts';
import { verifyCertificateRequest } from '../net/csr.ts';
import { startIdentity } from '../net/identity.ts';
import { startTlsServer } from '../net/tlsServer.ts';
import { type Environment, readVariables } from '../runtime/configuration.ts';
import type { Running, Shell } from '../runtime/process.ts';
import { type FollowTiming, followAuthority, SHORTEST_STEP_MS, TIMING } from './followAuthority.ts';
import { createIdentityHandler } from './identityHandler.ts';
import { type IssueScope, issue } from './issue.ts';

const DRAIN_MS = 10_000;

export interface EdgeOptions {
  readonly client: KubeClient;
  readonly scope: IssueScope;
  readonly host?: string;
  readonly port: number;
  readonly timing?: Partial<FollowTiming>;
  /** Unset: an hour. */
  readonly certificateLifeMs?: number;
}

export async function start(shell: Shell): Promise<Running> {
  const client = createClient();
  const scope = readScope(shell.environment);
  const edge = startEdge(shell, { client, scope, port: PORT_TLS, timing: readTiming(shell.environment) });
  return {
    async close() {
      await edge.close();
      await client.close();
    },
  };
}

/** Returns at once; what it needs of the API server is retried, and it is unready until then. */
export function startEdge(shell: Shell, options: EdgeOptions): Running & { readonly listening: Promise<number> } {
  const { client, scope } = options;
  const stop = new AbortController();
  const { signal } = stop;
  let started = false;
  shell.health.addReadiness('signer', () => {
    if (!started) return 'starting';
    return authority.current() === undefined ? 'the authority could not be read for long' : undefined;
  });
  const identities = shell.metrics.counter('identities_total', 'Identity requests, by outcome.', ['outcome']);
  const port = Promise.withResolvers<number>();
  port.promise.catch(() => {});

  const expiry = shell.metrics.gauge('authority_expiry_seconds', 'When the authority that signs ends, Unix time.', []);
  const phases = shell.metrics.gauge('authority_phase', '1 for what its rotation is at.', ['phase']);
  const authority = followAuthority({
    client,
    namespace: scope.namespace,
    timing: { ...TIMING, ...options.timing },
    log: shell.log,
    onLook({ phase, untilMs }) {
      expiry.set(untilMs / 1000);
      phases.reset();
      phases.set({ phase }, 1);
    },
    signal,
  });

  async function run(): Promise<void> {
    await authority.ready;
    const own = startOwnIdentity();
    const server = await startTlsServer({
      ...(options.host === undefined ? {} : { host: options.host }),
      port: options.port,
      credentials: own,
      trustDomain: scope.trustDomain,
      // Whoever asks has none yet; the token is the proof.
      clientCertificate: 'none',
      limits: { requestTimeoutMs: 10_000, idleTimeoutMs: 5_000 },
      handler: createIdentityHandler({
        client,
        keys: authority.current,
        ...(options.certificateLifeMs === undefined ? {} : { lifeMs: options.certificateLifeMs }),
        scope,
        log: shell.log,
        count: (outcome) => identities.inc({ outcome }),
      }),
      signal,
    });
    closing.push(
      () => server.close(DRAIN_MS),
      async () => own.close(),
    );
    started = true;
    port.resolve(server.address.port);
    await authority.ended;
  }

  const closing: (() => Promise<void>)[] = [];

  function startOwnIdentity() {
    return startIdentity({
      async request(csrPem) {
        const publicKey = verifyCertificateRequest(csrPem);
        if (publicKey === undefined) throw new Error('our own request is not readable');
        const keys = authority.current();
        if (keys === undefined) throw new Error('the authority is not known now');
        return issue(keys, scope, { kind: 'edge' }, publicKey, Date.now(), options.certificateLifeMs);
      },
      trustDomain: scope.trustDomain,
      log: (level, event, fields) => shell.log[level](fields ?? {}, event),
      signal,
    });
  }

  const running = run().catch((error) => {
    port.reject(error);
    if (!signal.aborted) shell.exit(1, error instanceof Error ? error.message : 'edge failed');
  });
  return {
    listening: port.promise,
    async close() {
      // Requests that run are answered first; then every loop ends.
      await Promise.all(closing.map((close) => close()));
      stop.abort(new Error('edge closes'));
      await running;
    },
  };
}

function readScope(environment: Environment): IssueScope {
  const { text, check } = readVariables(environment);
  const scope = {
    namespace: text('OZ0_NAMESPACE'),
    trustDomain: text('OZ0_TRUST_DOMAIN'),
    clusterDomain: text('OZ0_CLUSTER_DOMAIN', 'cluster.local'),
  };
  check();
  return scope;
}

const HOUR_MS = 3_600_000;

function readTiming(environment: Environment): Partial<FollowTiming> {
  const { text, problems, check } = readVariables(environment);
  const whole = (name: string, least: number, unset: number): number => {
    const value = Number(text(name, String(unset)));
    if (!Number.isInteger(value) || value < least || value > 100_000) {
      problems.push(`  ${name}: must be a whole number from ${least}`);
    }
    return value;
  };
  const hours = whole('OZ0_CA_STEP_HOURS', Math.ceil(SHORTEST_STEP_MS / HOUR_MS), 24);
  const days = whole('OZ0_CA_ROTATE_AFTER_DAYS', 1, 365);
  check();
  return { stepMs: hours * HOUR_MS, rotateAfterMs: days * 24 * HOUR_MS };
}
