/** Workloads, pods and sidecars' answers, for tests of a Tool's conditions. */
import type { SidecarStatus } from '../../domain/config/sidecar.ts';
import type { KubeObject } from '../../engine/contract.ts';

type Fields = Readonly<Record<string, unknown>>;

/** A DaemonSet or Deployment as it is wanted, with a status; by default all of its two pods are ready. */
export function live(wanted: KubeObject, status: Fields = {}): KubeObject {
  const all =
    wanted.kind === 'DaemonSet'
      ? {
          desiredNumberScheduled: 2,
          currentNumberScheduled: 2,
          updatedNumberScheduled: 2,
          numberReady: 2,
          numberAvailable: 2,
        }
      : { replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 };
  return {
    ...wanted,
    metadata: { ...wanted.metadata, uid: 'workload-uid', generation: 1 },
    status: { observedGeneration: 1, ...all, ...status },
  };
}

/** A pod of a workload; by default it is ready. */
export function podOf(workload: KubeObject, name: string, status: Fields = {}, metadata: Fields = {}): KubeObject {
  const { template } = workload['spec'] as { template: { metadata: { labels: object; annotations: object } } };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'acme',
      uid: `${name}-uid`,
      ...template.metadata,
      ...metadata,
    } as KubeObject['metadata'],
    spec: { nodeName: 'node1' },
    status: {
      phase: 'Running',
      podIP: '10.1.0.7',
      conditions: [{ type: 'Ready', status: 'True' }],
      initContainerStatuses: [{ name: 'sidecar', state: { running: {} } }],
      ...status,
    },
  };
}

export const NOT_READY = { conditions: [{ type: 'Ready', status: 'False' }] };

/** The ConfigMap that the pods mount. */
export const TRUST: KubeObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {
    name: 'oz0',
    namespace: 'acme',
    ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: 'acme', uid: 'n', controller: true }],
  },
};

/** Of a listing. */
export const HASH = '1'.repeat(64);

export function anAnswer(fields: Partial<SidecarStatus> = {}): SidecarStatus {
  return {
    podUid: 'a-uid',
    phase: 'Ready',
    process: { starts: 1 },
    sandbox: { holds: true, open: [], userNamespace: true, pidsLimit: 1024 },
    listing: { hash: HASH, functions: [{ name: 'get_pr', kind: 'ReadOnly', hash: '2'.repeat(64) }] },
    ...fields,
  };
}
