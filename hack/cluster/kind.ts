/** The same cluster where Docker runs: kind, with two workers. Kept thin; everything after it is shared. */
import { existsSync, mkdirSync } from 'node:fs';
import { run } from '../shell/command.ts';
import { step } from '../shell/steps.ts';
import { clusterFolder, kubeconfig, logOf } from './layout.ts';

const name = 'oz0';
const config = `
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes: [{ role: control-plane }, { role: worker }, { role: worker }]
`;
const hint = 'see https://kind.sigs.k8s.io for how to install kind; Docker must run';

export async function kindRuns(): Promise<boolean> {
  return (await run('kind', ['get', 'clusters'], { hint })).split('\n').includes(name);
}

export async function kindUp(): Promise<void> {
  mkdirSync(clusterFolder, { recursive: true });
  if (await kindRuns()) {
    if (!existsSync(kubeconfig))
      await run('kind', ['export', 'kubeconfig', '--name', name, '--kubeconfig', kubeconfig]);
    return;
  }
  await step('kind cluster with two workers', () =>
    run('kind', ['create', 'cluster', '--name', name, '--kubeconfig', kubeconfig, '--config=-', '--wait=180s'], {
      input: config,
      log: logOf('kind'),
      timeoutSeconds: 900,
      hint,
    }),
  );
}

export async function kindDown(): Promise<void> {
  await step('delete the kind cluster', () =>
    run('kind', ['delete', 'cluster', '--name', name, '--kubeconfig', kubeconfig]),
  );
}

export async function kindLoad(archives: readonly string[]): Promise<void> {
  for (const archive of archives)
    await run('kind', ['load', 'image-archive', archive, '--name', name], { timeoutSeconds: 300 });
}

/** A node of the embedded cluster, as kind names its containers. */
export async function kindNode(action: 'stop' | 'start', node: string): Promise<void> {
  const container =
    { 'control-plane': `${name}-control-plane`, node1: `${name}-worker`, node2: `${name}-worker2` }[node] ?? node;
  await run('docker', action === 'stop' ? ['kill', container] : ['start', container]);
}
