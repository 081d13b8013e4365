/** The cluster that a command talks to: one connection, one namespace, every request bounded. */
import { API_GROUP_VERSION } from '../domain/naming.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import { createClient } from '../kube/client.ts';
import { loadConnection } from '../kube/connection.ts';

const TIMEOUT_MS = 20_000;

export interface Cluster {
  readonly namespace: string;
  readonly get: (kind: Kind, name: string) => Promise<KubeObject>;
  readonly list: (kind: Kind) => Promise<readonly KubeObject[]>;
  readonly create: (kind: Kind, object: KubeObject) => Promise<KubeObject>;
  /** PUT with the resourceVersion that was read: what changed meanwhile is a conflict. */
  readonly replace: (kind: Kind, object: KubeObject) => Promise<KubeObject>;
  /** The user name that the API server knows the caller by. */
  readonly whoAmI: () => Promise<string>;
  readonly close: () => Promise<void>;
}

const resource = (kind: string, plural: string, namespaced = true): Resource => ({
  apiVersion: API_GROUP_VERSION,
  kind,
  plural,
  namespaced,
});

const KINDS = {
  ToolCall: resource('ToolCall', 'toolcalls'),
  Tool: resource('Tool', 'tools'),
  SnapshotApproval: resource('SnapshotApproval', 'snapshotapprovals'),
  Agent: resource('Agent', 'agents'),
  ToolPolicy: resource('ToolPolicy', 'toolpolicies'),
  ClusterToolPolicy: resource('ClusterToolPolicy', 'clustertoolpolicies', false),
} as const;

export type Kind = keyof typeof KINDS;

export function openCluster({ namespace, kubeconfig }: { namespace?: string; kubeconfig?: string }): Cluster {
  const source = loadConnection(kubeconfig === undefined ? {} : { kubeconfig });
  const client = createClient(source);
  const within = namespace ?? source.namespace ?? 'default';
  const options = { timeoutMs: TIMEOUT_MS };
  return {
    namespace: within,
    get: (kind, name) => client.get({ resource: KINDS[kind], namespace: within, name }, options),
    list: async (kind) => {
      const resource = KINDS[kind];
      return (await client.list(resource.namespaced ? { resource, namespace: within } : { resource }, options)).items;
    },
    create: (kind, object) => client.create(KINDS[kind], object, options),
    replace: (kind, object) => client.replace(KINDS[kind], object, options),
    whoAmI: () => client.whoAmI(options),
    close: client.close,
  };
}
