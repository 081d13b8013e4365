/** The controller's process: settings, identity, leadership, engine, and their end in good order. Decides nothing itself. */
import { randomUUID } from 'node:crypto';
import { LABEL_TOOL } from '../domain/naming.ts';
import { type KubeObject, resourceKey } from '../engine/contract.ts';
import { type Engine, type PassReport, startEngine } from '../engine/engine.ts';
import { guardWrites, startLeaderElection } from '../engine/leader.ts';
import { createClient, type KubeClient } from '../kube/client.ts';
import { systemClock } from '../kube/system-clock.ts';
import { createWatchDoor } from '../kube/watch-door.ts';
import { startProcessIdentity } from '../net/processIdentity.ts';
import type { Operator } from '../reconcilers/operator.ts';
import { POD } from '../reconcilers/resources.ts';
import { type Log, takingAny } from '../runtime/log.ts';
import type { Running, Shell } from '../runtime/process.ts';
import { createAskSidecar } from './askSidecar.ts';
import { limitConfigMaps } from './limitWatch.ts';
import { allReconcilers } from './reconcilers.ts';
import { readSettings, type Settings } from './settings.ts';
import { sweepRegularly } from './sweepToolCalls.ts';
import { decideUserNamespaces } from './userNamespaces.ts';

const NAME = 'oz0-controller';
/** Holds a hash of what was applied last, so that an unchanged child is not applied again. */
const APPLIED_ANNOTATION = 'oz0.ai/applied';
const NODES = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false } as const;

export async function start(shell: Shell): Promise<Running> {
  const settings = readSettings(shell.environment);
  const log = takingAny(shell.log);
  const stop = new AbortController();
  const { signal } = stop;
  const client = createClient();

  // Only sensors need it: without a certificate everything but listings is kept up.
  const identity = startProcessIdentity(
    settings,
    (level, event, fields) => shell.log[level](fields ?? {}, event),
    signal,
  );

  const operator: Operator = {
    namespace: settings.namespace,
    trustDomain: settings.trustDomain,
    image: settings.image,
    userNamespaces: decideUserNamespaces(settings.userNamespaces, await lookAtNodes(client, settings, shell.log)),
    resources: settings.resources,
    modelGateway: settings.modelGateway,
  };
  shell.log.info({ userNamespaces: operator.userNamespaces, image: operator.image }, 'tool pods are made so');

  // Given back only when no pass runs any more.
  const resign = new AbortController();
  const leads = shell.metrics.gauge('leading', 'Whether this replica leads.', []);
  let engine: Engine | undefined;
  const leading = new AbortController();
  const leader = startLeaderElection({
    door: client,
    clock: systemClock,
    random: Math.random,
    log,
    namespace: settings.namespace,
    name: NAME,
    identity: `${settings.podName}_${randomUUID()}`,
    signal: resign.signal,
    onLead: (until) => {
      until.addEventListener('abort', () => leading.abort(until.reason), { once: true });
      leads.set(1);
      engine?.lead();
    },
  });
  leader.ended.then(
    (how) => {
      leads.set(0);
      if (how === 'lost') shell.exit(1, 'another replica leads');
    },
    (error: unknown) => {
      shell.log.error({ error }, 'bug: the election failed');
      shell.exit(70, 'the election failed');
    },
  );

  engine = startEngine({
    reconcilers: allReconcilers(operator, createAskSidecar(identity, settings.trustDomain)),
    door: guardWrites(client, leader.mayWrite, leading.signal),
    watch: limitConfigMaps(createWatchDoor(client, log), settings.namespace),
    clock: systemClock,
    random: Math.random,
    log,
    fieldManager: NAME,
    annotation: APPLIED_ANNOTATION,
    controller: 'oz0.ai/controller',
    instance: settings.podName,
    labelSelectors: { [resourceKey(POD)]: LABEL_TOOL },
    signal,
    onPass: countPasses(shell),
  });
  const swept = sweepRegularly(
    { client, retentionMs: settings.callRetentionMs, leads: leader.mayWrite, now: Date.now, log },
    signal,
  );
  const { synced, load, ended } = engine;
  if (leader.mayWrite()) engine.lead();

  const waiting = shell.metrics.gauge('queue_length', 'Objects that wait to be looked at.', ['state']);
  const measure = setInterval(() => {
    for (const [state, count] of Object.entries(load())) waiting.set({ state }, count);
  }, 5_000);
  measure.unref();
  shell.health.addReadiness('views', () => (synced() ? undefined : 'not everything was listed yet'));

  return {
    close: async () => {
      clearInterval(measure);
      stop.abort(new Error('shutting down'));
      await Promise.all([ended, swept]);
      resign.abort(new Error('shutting down'));
      await leader.ended;
      identity.close();
      await client.close();
    },
  };
}

/** Undefined where they cannot be looked at, and where nobody asks. */
async function lookAtNodes(
  client: KubeClient,
  settings: Settings,
  log: Log,
): Promise<readonly KubeObject[] | undefined> {
  if (settings.userNamespaces !== 'prefer') return undefined;
  try {
    return (await client.list({ resource: NODES }, { timeoutMs: 10_000 })).items;
  } catch (error) {
    log.warn({ error }, 'cannot look at the nodes: they are taken to have user namespaces');
    return undefined;
  }
}

function countPasses({ metrics }: Shell): (report: PassReport) => void {
  const passes = metrics.counter('passes_total', 'Looks at one object, by what came of it.', ['kind', 'result']);
  const writes = metrics.counter('writes_total', 'Writes to the API server.', ['kind']);
  const seconds = metrics.histogram(
    'pass_seconds',
    'How long a look takes, writes included.',
    ['kind'],
    [0.001, 0.01, 0.1, 1, 10],
  );
  return ({ kind, result, writes: count, ms }) => {
    passes.inc({ kind, result });
    writes.inc({ kind }, count);
    seconds.observe({ kind }, ms / 1000);
  };
}
