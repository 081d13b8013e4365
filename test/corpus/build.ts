/** Right objects, from which a case says only what differs. */

export interface Case {
  readonly name: string;
  readonly object: { readonly kind: string; readonly metadata: { readonly name: string } } & Record<string, unknown>;
  /** Undefined: the object is right. Else the start of the path of a field that is blamed; empty for the object itself. */
  readonly wrong?: string;
}

export const API_VERSION = 'oz0.ai/v1alpha1';

export type Spec = Record<string, unknown>;

export const tool = (spec: Spec, name = 'acme-github') => ({
  apiVersion: API_VERSION,
  kind: 'Tool',
  metadata: { name },
  spec,
});
export const image = { reference: 'ghcr.example/acme/tool:2', command: ['/usr/bin/tool', '--stdio'] };
/** A right Tool, but for what is given. */
export const imageTool = (settings: Spec, name?: string) => tool({ image, ...settings }, name);

export const plugin = (spec: Spec, name = 'acme-github') => ({
  apiVersion: API_VERSION,
  kind: 'Plugin',
  metadata: { name },
  spec: { version: '1.4.0', ...spec },
});
export const entry = (id: string, settings: Spec = {}) => ({ id, image, ...settings });

export const agent = (spec: Spec, name = 'acme-reviewer') => ({
  apiVersion: API_VERSION,
  kind: 'Agent',
  metadata: { name },
  spec,
});
export const grants = (...tools: unknown[]) => agent({ serviceAccounts: ['reviewer'], tools });

export const right = (name: string, object: Case['object']): Case => ({ name, object });
export const wrong = (name: string, object: Case['object'], field: string): Case => ({ name, object, wrong: field });

/** The same, with the features that they are about in their names. */
export const about = (features: string, cases: readonly Case[]): Case[] =>
  cases.map((item) => ({ ...item, name: `${features} ${item.name}` }));

export const DIGEST = `sha256:${'0123456789abcdef'.repeat(4)}`;
export const many = <T>(count: number, make: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => make(index));

export const connection = (spec: Spec, name = 'tracker') => ({
  apiVersion: API_VERSION,
  kind: 'Connection',
  metadata: { name },
  spec,
});

export const snapshotApproval = (spec: Spec) => object('SnapshotApproval', 'acme-github-2', spec);
export const stop = (spec: Spec) => object('Stop', 'incident-12', spec);
export const toolPolicy = (spec: Spec) => object('ToolPolicy', 'default', spec);
export const clusterToolPolicy = (spec: Spec) => object('ClusterToolPolicy', 'floor', spec);
/** A right ToolCall that waits, but for what is given. */
export const toolCall = (spec: Spec) =>
  object('ToolCall', 'c-1', {
    agent: 'acme-reviewer',
    agentUid: 'a3b2',
    caller: 'system:serviceaccount:acme:reviewer',
    tool: 'acme_github',
    function: 'merge',
    argumentsHash: DIGEST,
    definition: DIGEST,
    policy: DIGEST,
    idempotencyKey: 'k-1',
    expiresAt: '2026-12-01T10:00:00Z',
    ...spec,
  });

function object(kind: string, name: string, spec: Spec) {
  return { apiVersion: API_VERSION, kind, metadata: { name }, spec };
}
