/** The operator's own reconcilers in the simulated world: who runs the pods, what must never happen, and a story to be disturbed. */

import type { Definitions } from '../../src/domain/snapshot/difference.ts';
import { snapshotListing } from '../../src/domain/snapshot/snapshotListing.ts';
import { sleep } from '../../src/engine/clock.ts';
import { type KubeObject, type Resource, resourceKey } from '../../src/engine/contract.ts';
import type { Status } from '../../src/engine/status.ts';
import { agentReconciler } from '../../src/reconcilers/agent/reconcile.ts';
import { recordsAt, textAt } from '../../src/reconcilers/live.ts';
import type { Operator } from '../../src/reconcilers/operator.ts';
import { pluginReconciler } from '../../src/reconcilers/plugin/reconcile.ts';
import {
  CONFIG_MAP,
  DAEMON_SET,
  DEPLOYMENT,
  NETWORK_POLICY,
  PLUGIN,
  POD,
  SERVICE,
  SERVICE_ACCOUNT,
  TOOL,
} from '../../src/reconcilers/resources.ts';
import { snapshotApprovalReconciler } from '../../src/reconcilers/snapshotApproval/reconcile.ts';
import { anAgent, aPlugin, aTool, IMAGE, OPERATOR } from '../../src/reconcilers/testing/objects.ts';
import { anAnswer } from '../../src/reconcilers/testing/tools.ts';
import { type PodTemplate, TEMPLATE_ANNOTATION } from '../../src/reconcilers/tool/pod.ts';
import { toolReconciler } from '../../src/reconcilers/tool/reconcile.ts';
import type { SidecarAddress } from '../../src/reconcilers/tool/sensors.ts';
import { trustReconciler } from '../../src/reconcilers/trust/reconcile.ts';
import { refTo } from './api-server.ts';
import { checkStatus } from './status-rules.ts';
import { childrenOf, createWorld, type Invariant, isOurs, type World, type WorldOptions } from './world.ts';

const ACME = 'acme';

export interface OperatorWorldOptions extends Partial<WorldOptions> {
  /** What the server in this pod lists now; throws where it does not answer. */
  readonly lists?: (pod: KubeObject) => Definitions;
  /** Of a process that starts now. */
  readonly operator?: () => Operator;
}

export const LISTING: Definitions = {
  tools: [{ name: 'get_pr', description: 'Reads one.', inputSchema: {}, annotations: { readOnlyHint: true } }],
};

export function operatorWorld({
  lists = () => LISTING,
  operator = () => OPERATOR,
  ...options
}: OperatorWorldOptions = {}) {
  const world: World = createWorld({
    reconcilers: (clock) => [
      trustReconciler(operator()),
      pluginReconciler,
      toolReconciler(operator(), async ({ podUid }: SidecarAddress, path) => {
        await sleep(clock, 20);
        const pod = world.server.list(resourceKey(POD)).find(({ metadata }) => metadata.uid === podUid);
        if (!pod) throw new Error('no route to host');
        const listing = lists(pod);
        const { hash, functions, tools } = snapshotListing(listing.tools, listing.instructions);
        return path === '/listing' ? { hash, ...listing, tools } : anAnswer({ podUid, listing: { hash, functions } });
      }),
      snapshotApprovalReconciler,
      agentReconciler,
    ],
    invariants: INVARIANTS,
    actors: [runPods],
    ...options,
  });
  return world;
}

/** Of a pod: an environment variable of its tool, as the Tool writes it. */
export function envOf(pod: KubeObject, name: string): string | undefined {
  const { env } = JSON.parse(pod.metadata.annotations?.[CONFIG] ?? '{}') as { env?: Record<string, string> };
  return env?.[name];
}

const CONFIG = 'test/sidecar';

const INVARIANTS: readonly Invariant[] = [
  // [S04] [S05] No pod without its walls: account and policy of this very Tool are there before its workload.
  (entry, server) => {
    const { object } = entry;
    if (entry.type !== 'ADDED' || !isOurs(entry) || !['DaemonSet', 'Deployment'].includes(object.kind)) return;
    const { name, namespace } = object.metadata;
    const tool = controllerOf(object);
    // Of a Tool that is gone nothing stays anyway.
    if (!server.list(resourceKey(TOOL)).some(({ metadata }) => metadata.uid === tool)) return;
    for (const wall of [SERVICE_ACCOUNT, NETWORK_POLICY]) {
      const standing = server.get(resourceKey(wall), name.replace(/--probe$/, ''), namespace);
      if (standing === undefined || controllerOf(standing) !== tool)
        throw new Error(`[S05] ${name} stands without its ${wall.kind}`);
    }
  },
  // [K10] Whose a Tool is never changes.
  (entry, server) => {
    if (entry.object.kind !== 'Tool') return;
    const first = server.log.find(({ object }) => object.metadata.uid === entry.object.metadata.uid);
    if (first && controllerOf(first.object) !== controllerOf(entry.object)) {
      throw new Error(`[K10] Tool ${entry.object.metadata.name} changed hands`);
    }
  },
  // [case 115] Ready means a listing of a pod that runs what is written now.
  (entry, server) => {
    const { object } = entry;
    if (object.kind !== 'Tool' || !isOurs(entry) || readyOf(object) !== 'True') return;
    const status = object['status'] as Status;
    if (!status['listing']) throw new Error(`[case 115] ${object.metadata.name} is Ready and lists nothing`);
    const pods = server
      .list(resourceKey(POD))
      .filter(({ metadata }) => metadata.labels?.['oz0.ai/tool'] === object.metadata.name);
    if (pods.length === 0) throw new Error(`[case 115] ${object.metadata.name} is Ready without a pod`);
  },
  // [I2] Nothing of users is ever deleted.
  (entry, server) => {
    if (entry.type !== 'DELETED' || !isOurs(entry)) return;
    const first = server.log.find(({ object }) => object.metadata.uid === entry.object.metadata.uid);
    if (first?.by === 'user') throw new Error(`[I2] ${entry.object.kind} ${entry.object.metadata.name} is a user's`);
  },
  // [I3] Conditions keep their rules.
  (entry) => {
    if (isOurs(entry) && ['Plugin', 'Tool', 'Agent'].includes(entry.object.kind) && entry.object['status']) {
      checkStatus(entry.object);
    }
  },
];

export function readyOf(object: KubeObject | undefined): string | undefined {
  const status = object?.['status'] as Status | undefined;
  return status?.conditions.find(({ type }) => type === 'Ready')?.status;
}

function controllerOf(object: KubeObject): string | undefined {
  return object.metadata.ownerReferences?.find(({ controller }) => controller)?.uid;
}

/** Kubernetes' workload controllers and kubelets in small: two ready pods of the current template, 50 ms after each change. */
function runPods(entry: { readonly object: KubeObject; readonly type: string }, world: World): void {
  const { object } = entry;
  if ((object.kind !== 'DaemonSet' && object.kind !== 'Deployment') || entry.type === 'DELETED') return;
  world.clock.after(50, () => {
    const { name, namespace, uid } = object.metadata;
    const live = world.server.get(resourceKey(object), name, namespace);
    if (!live || live.metadata.uid !== uid) return;
    const { template } = live['spec'] as { template: { metadata: { annotations: Record<string, string> } } };
    const hash = template.metadata.annotations[TEMPLATE_ANNOTATION] ?? '';
    const pods = childrenOf(world.server, POD, uid);
    for (const { metadata } of pods) {
      if (metadata.annotations?.[TEMPLATE_ANNOTATION] !== hash)
        world.server.delete(inAcme(POD, metadata.name), 'kubernetes');
    }
    const { replicas = 2 } = live['spec'] as { replicas?: number };
    for (const node of ['node1', 'node2'].slice(0, replicas)) {
      const podName = `${name}-${object.kind.toLowerCase()}-${hash.slice(0, 6)}-${node}`;
      if (world.server.get(resourceKey(POD), podName, namespace)) continue;
      const created = world.server.create(pod(live, podName, node), 'kubernetes');
      world.server.replace({ ...created, status: RUNNING }, 'kubernetes', 'status');
    }
    const status = rolledOut(live);
    if (JSON.stringify(live['status']) !== JSON.stringify(status))
      world.server.replace({ ...live, status }, 'kubernetes', 'status');
  });
}

const RUNNING = {
  phase: 'Running',
  podIP: '10.1.0.7',
  conditions: [{ type: 'Ready', status: 'True' }],
  initContainerStatuses: [{ name: 'sidecar', state: { running: {} } }],
};

function pod(workload: KubeObject, name: string, nodeName: string): KubeObject {
  const { template } = workload['spec'] as { template: PodTemplate };
  const { apiVersion, kind, metadata } = workload;
  const containers = [...recordsAt(template, 'spec', 'initContainers'), ...recordsAt(template, 'spec', 'containers')];
  const config = textAt(
    recordsAt(
      containers.find((container) => container['name'] === 'sidecar'),
      'env',
    )[0],
    'value',
  );
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...template.metadata,
      annotations: { ...template.metadata.annotations, [CONFIG]: config ?? '' },
      name,
      namespace: ACME,
      ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid ?? '', controller: true }],
    },
    spec: { nodeName },
  };
}

function rolledOut({ kind, metadata, spec }: KubeObject): object {
  const { replicas = 2 } = spec as { replicas?: number };
  const counts =
    kind === 'DaemonSet'
      ? { desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberReady: 2, numberAvailable: 2 }
      : { replicas, updatedReplicas: replicas, readyReplicas: replicas, availableReplicas: replicas };
  return { observedGeneration: metadata.generation, ...counts };
}

export const inAcme = (resource: Resource, name: string) => refTo(resource, name, ACME);

/** As a user applies it: uid and generation are the API server's to give. */
export function applied(object: KubeObject): KubeObject {
  const { uid: _, generation: __, creationTimestamp: ___, ...metadata } = object.metadata;
  return JSON.parse(JSON.stringify({ ...object, metadata })) as KubeObject;
}

export const service = (name: string, namespace: string, clusterIP: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: { clusterIP, ports: [{ port: 443 }] },
});

const TOOLS = [
  { id: 'acme_github', mcp: ['python', '-m', 'acme_github.mcp'] },
  { id: 'acme_fetch', image: IMAGE, affinity: 'any', replicas: 2 },
];

/** What people and edge do, step by step; after each the world comes to rest. */
export const STORY: readonly { readonly name: string; readonly act: (world: World) => void }[] = [
  {
    name: 'a Tool and an Agent, before edge has published its CA',
    act: ({ server }) => {
      server.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: ACME } }, 'user');
      server.create(service('kubernetes', 'default', '10.96.0.1'), 'kubernetes');
      server.create(service('oz0-egress', 'oz0-system', '10.96.0.20'), 'helm');
      server.create(service('oz0-edge', 'oz0-system', '10.96.0.30'), 'helm');
      server.create(applied(aTool()), 'user');
      server.create(applied(anAgent(['everything.*', 'acme_github.get_pr'])), 'user');
    },
  },
  {
    name: 'edge publishes its CA',
    act: ({ server }) => {
      const metadata = { name: 'oz0-trust', namespace: 'oz0-system' };
      server.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { 'ca.crt': 'first' } }, 'edge');
    },
  },
  { name: 'a Plugin', act: ({ server }) => void server.create(applied(aPlugin({ tools: TOOLS })), 'user') },
  {
    name: 'another Plugin that wants an id of the first',
    act: ({ server }) =>
      void server.create(
        applied(aPlugin({ tools: [{ id: 'acme_fetch', image: IMAGE }] }, { name: 'acme-web' })),
        'user',
      ),
  },
  { name: 'a Tool changes', act: (world) => edit(world, TOOL, 'everything', { env: { A: '1' } }) },
  { name: 'a Tool moves', act: (world) => edit(world, TOOL, 'everything', { affinity: 'any' }) },
  {
    name: "the Plugin's image changes",
    act: (world) => edit(world, PLUGIN, 'acme-github', { source: { image: 'ghcr.example/acme/github:2' } }),
  },
  {
    name: 'the CA changes',
    act: ({ server }) => {
      server.edit(refTo(CONFIG_MAP, 'oz0-trust', 'oz0-system'), 'edge', (map) => ({
        ...map,
        data: { 'ca.crt': 'second' },
      }));
    },
  },
  {
    name: 'a tool is taken out of the Plugin',
    act: (world) => edit(world, PLUGIN, 'acme-github', { tools: TOOLS.slice(0, 1) }),
  },
];

export function edit({ server }: World, resource: Resource, name: string, spec: object): void {
  server.edit(inAcme(resource, name), 'user', (object) => ({
    ...object,
    spec: { ...(object['spec'] as object), ...spec },
  }));
}

/** Runs the story; `between` is called after each act, before the world comes to rest. */
export async function tell(world: World, between: (step: number) => Promise<void> | void = () => {}): Promise<void> {
  for (const [step, { act }] of STORY.entries()) {
    act(world);
    await between(step);
    await world.settle();
  }
}

/** Every kind that the operator makes in a tenant's namespace. */
export const MADE = [TOOL, SERVICE_ACCOUNT, NETWORK_POLICY, SERVICE, DAEMON_SET, DEPLOYMENT, CONFIG_MAP];
