/** Objects for the reconcilers' tests: right ones, from which a test says only what differs. */
import { type KubeObject, type Observed, type Reconciler, resourceKey, type Sensed } from '../../engine/contract.ts';
import { composeStatus, type Status } from '../../engine/status.ts';
import { DEFAULT_RESOURCES, type Operator } from '../operator.ts';

export const OPERATOR: Operator = {
  namespace: 'oz0-system',
  trustDomain: 'cluster.local',
  image: `oz0.example/oz0-operator@sha256:${'0'.repeat(64)}`,
  userNamespaces: true,
  modelGateway: false,
  resources: DEFAULT_RESOURCES,
};

const API_VERSION = 'oz0.ai/v1alpha1';

type Fields = Readonly<Record<string, unknown>>;

export const DIGEST = `sha256:${'a1'.repeat(32)}`;
export const IMAGE = { reference: `ghcr.example/acme/tool@${DIGEST}`, command: ['/usr/bin/tool', '--stdio'] };

export function aTool(spec: Fields = {}, metadata: Fields = {}, status?: Fields): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'Tool',
    metadata: { name: 'everything', namespace: 'acme', uid: 'tool-uid', generation: 1, ...metadata },
    spec: { image: IMAGE, ...spec },
    ...(status ? { status } : {}),
  };
}

/** A Tool of `aPlugin()`, that runs in its image. */
export function aPluginTool(spec: Fields = {}, metadata: Fields = {}): KubeObject {
  const owner = { apiVersion: API_VERSION, kind: 'Plugin', name: 'acme-github', uid: 'plugin-uid', controller: true };
  const tool = aTool({}, { name: 'acme-github', ownerReferences: [owner], ...metadata });
  return { ...tool, spec: { plugin: 'acme-github', mcp: ['python', '-m', 'acme_github.mcp'], ...spec } };
}

export function aPlugin(spec: Fields = {}, metadata: Fields = {}, status?: Fields): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'Plugin',
    metadata: {
      name: 'acme-github',
      namespace: 'acme',
      uid: 'plugin-uid',
      generation: 1,
      creationTimestamp: '2026-11-30T10:00:00Z',
      ...metadata,
    },
    spec: { version: '1.4.0', source: { image: `ghcr.example/acme/github@${DIGEST}` }, ...spec },
    ...(status ? { status } : {}),
  };
}

/** A server elsewhere. */
export function aRemoteTool(spec: Fields = {}, metadata: Fields = {}, status?: Fields): KubeObject {
  const { spec: _, ...tool } = aTool({}, { name: 'tracker', ...metadata }, status);
  return { ...tool, spec: { url: 'https://mcp.example.com/mcp', ...spec } };
}

/** For the tool `tracker`. */
export function aConnection(spec: Fields = {}, metadata: Fields = {}, status?: Fields): KubeObject {
  return {
    apiVersion: API_VERSION,
    kind: 'Connection',
    metadata: { name: 'tracker', namespace: 'acme', uid: 'connection-uid', generation: 1, ...metadata },
    spec: {
      tools: ['tracker'],
      kind: 'secret',
      secret: { secretRef: { name: 'tracker-token' }, key: 'token' },
      bind: [{ host: 'gitlab.example.com' }],
      ...spec,
    },
    ...(status ? { status } : {}),
  };
}

export function anAgent(tools: readonly string[]): KubeObject {
  const metadata = { name: 'acme-reviewer', namespace: 'acme', uid: 'agent-uid', generation: 1 };
  return { apiVersion: API_VERSION, kind: 'Agent', metadata, spec: { serviceAccounts: ['reviewer'], tools } };
}

export interface Seen {
  readonly children?: readonly KubeObject[];
  readonly reads?: Readonly<Record<string, readonly KubeObject[]>>;
  readonly sensed?: Readonly<Record<string, Sensed>>;
}

/** What a reconciler is shown, by its own reading of the parent. */
export function observe<P extends KubeObject>(
  reconciler: Reconciler<P>,
  raw: KubeObject,
  seen: Seen = {},
): Observed<P> {
  const parsed = reconciler.parse(raw);
  if (!parsed.ok) throw new Error(parsed.problem);
  const ofKind = (key: string) => (seen.children ?? []).filter((child) => resourceKey(child) === key);
  return {
    parent: parsed.value,
    children: Object.fromEntries(reconciler.owns.map(resourceKey).map((key) => [key, ofKind(key)])),
    reads: Object.fromEntries(Object.keys(reconciler.reads).map((name) => [name, seen.reads?.[name] ?? []])),
    sensed: Object.fromEntries(reconciler.sensors.map(({ name }) => [name, seen.sensed?.[name] ?? { state: 'none' }])),
  };
}

/** The whole status that the engine would write. */
export function statusOf<P extends KubeObject>(reconciler: Reconciler<P>, raw: KubeObject, seen: Seen = {}): Status {
  const { facts } = reconciler.reconcile(observe(reconciler, raw, seen));
  return composeStatus({
    before: raw['status'],
    facts,
    declared: reconciler.conditions,
    marks: reconciler.marks ?? [],
    trouble: undefined,
    generation: raw.metadata.generation ?? 0,
    nowMs: 0,
  });
}

/** `False Unschedulable`, the short form of one condition. */
export function verdict(status: Status, type: string): string {
  const condition = status.conditions.find((candidate) => candidate.type === type);
  return condition ? `${condition.status} ${condition.reason}` : 'absent';
}

export function messageOf(status: Status, type: string): string {
  return status.conditions.find((candidate) => candidate.type === type)?.message ?? '';
}
