/** What a cluster has from its first moment: its nodes with their ranges of pods, the API server's right, its DNS. */

import { Resolver } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../shell/wait.ts';
import { kubectl, kubectlJson } from './kubectl.ts';
import { clusterDomain, nodeNames, podRangeOf } from './layout.ts';

export async function applyBaseObjects(): Promise<void> {
  const objects = [
    ...nodeNames.map((node) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: node },
      spec: { podCIDR: podRangeOf(node), podCIDRs: [podRangeOf(node)] },
    })),
    // As kubeadm binds it: the API server may read logs and run commands on nodes.
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'kubeadm:apiserver-kubelet' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:kubelet-api-admin' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'kube-apiserver-kubelet-client' }],
    },
  ];
  await applyServerSide(objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  await applyServerSide(readFileSync(join(import.meta.dirname, 'coredns.yaml'), 'utf8'));
}

/** Asks each DNS pod for a name: what kept data says of pods may be of an earlier life. */
export async function dnsAnswers(): Promise<void> {
  await waitFor(
    'cluster DNS',
    async () => (await Promise.all((await dnsPods()).map(resolves))).length >= 1 || undefined,
    {
      timeoutSeconds: 90,
      everyMs: 300,
      hint: 'look at `kubectl -n kube-system describe pods -l k8s-app=kube-dns`',
    },
  );
}

type Slices = { items: { endpoints?: { addresses: string[]; conditions: { ready?: boolean } }[] | null }[] };

async function dnsPods(): Promise<string[]> {
  const slices = await kubectlJson<Slices>([
    'get',
    'endpointslices',
    '--namespace=kube-system',
    '--selector=kubernetes.io/service-name=kube-dns',
  ]);
  const endpoints = slices.items.flatMap((slice) => slice.endpoints ?? []);
  return endpoints.filter((endpoint) => endpoint.conditions.ready === true).flatMap((endpoint) => endpoint.addresses);
}

async function resolves(pod: string): Promise<void> {
  const resolver = new Resolver({ timeout: 1000, tries: 1 });
  resolver.setServers([pod]);
  await resolver.resolve4(`kubernetes.default.svc.${clusterDomain}`);
}

async function applyServerSide(manifest: string): Promise<void> {
  await kubectl(['apply', '--server-side', '--force-conflicts', '--field-manager=oz0-cluster', '-f', '-'], manifest);
}
