/** Edge: signs the identities of tool pods and of the other processes. Serves nothing else, and calls the API server only. */
import { setTimeout as sleep } from 'node:timers/promises';
import { PORT_TLS } from '../domain/naming.ts';
import { createClient, type KubeClient } from '../kube/client.ts';
import { verifyCertificateRequest } from '../net/csr.ts';
import { startIdentity } from '../net/identity.ts';
import { startTlsServer } from '../net/tlsServer.ts';
import { ConfigurationError, type Environment } from '../runtime/configuration.ts';
import type { Running, Shell } from '../runtime/process.ts';
import { type EdgeKeys, loadEdgeKeys } from './authority.ts';
import { createIdentityHandler } from './identityHandler.ts';
import { type IssueScope, issue } from './issue.ts';
import { publishTrustBundle } from './trustBundle.ts';

const RETRY_MS = 2_000;
const REPUBLISH_MS = 300_000;
const DRAIN_MS = 10_000;

export interface EdgeOptions {
  readonly client: KubeClient;
  readonly scope: IssueScope;
  readonly host?: string;
  readonly port: number;
}

export async function start(shell: Shell): Promise<Running> {
  const client = createClient();
  const scope = readScope(shell.environment);
  const edge = startEdge(shell, { client, scope, port: PORT_TLS });
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
  let problem: string | undefined = 'starting';
  shell.health.addReadiness('signer', () => problem);
  const identities = shell.metrics.counter('identities_total', 'Identity requests, by outcome.', ['outcome']);
  const port = Promise.withResolvers<number>();
  port.promise.catch(() => {});

  async function run(): Promise<void> {
    const keys = await retried('authority', () => loadEdgeKeys(client, scope.namespace, signal));
    const own = startOwnIdentity(keys);
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
        keys,
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
    await retried('trust bundle', () => publish(keys));
    problem = undefined;
    port.resolve(server.address.port);
    while (true) {
      await sleep(REPUBLISH_MS, undefined, { signal });
      await retried('trust bundle', () => publish(keys));
    }
  }

  const closing: (() => Promise<void>)[] = [];
  const publish = (keys: EdgeKeys) =>
    publishTrustBundle(client, scope.namespace, keys.authority.certificatePem, signal);

  function startOwnIdentity(keys: EdgeKeys) {
    return startIdentity({
      async request(csrPem) {
        const publicKey = verifyCertificateRequest(csrPem);
        if (publicKey === undefined) throw new Error('our own request is not readable');
        return issue(keys, scope, { kind: 'edge' }, publicKey, Date.now());
      },
      trustDomain: scope.trustDomain,
      log: (level, event, fields) => shell.log[level](fields ?? {}, event),
      signal,
    });
  }

  async function retried<T>(what: string, attempt: () => Promise<T>): Promise<T> {
    while (true) {
      try {
        return await attempt();
      } catch (error) {
        signal.throwIfAborted();
        shell.log.warn({ error }, `${what}: trying again`);
        await sleep(RETRY_MS, undefined, { signal });
      }
    }
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
  const required = (name: string): string => {
    const value = environment[name];
    if (!value) throw new ConfigurationError(`These environment variables are missing or wrong:\n  ${name}: is needed`);
    return value;
  };
  return {
    namespace: required('OZ0_NAMESPACE'),
    trustDomain: required('OZ0_TRUST_DOMAIN'),
    clusterDomain: environment['OZ0_CLUSTER_DOMAIN'] || 'cluster.local',
  };
}
