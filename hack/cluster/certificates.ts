/** Keys, certificates and kubeconfigs, all made by kubeadm; a cluster keeps them until its data is removed. */
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../shell/command.ts';
import {
  addressOf,
  clusterDomain,
  dataOf,
  kubeconfig,
  kubernetesVersion,
  logOf,
  nodeNames,
  pkiFolder,
  podRange,
  serviceRange,
} from './layout.ts';
import { program } from './programs.ts';

export async function createCertificates(): Promise<void> {
  if (existsSync(kubeconfig)) return; // written last
  mkdirSync(pkiFolder, { recursive: true });
  const config = join(pkiFolder, 'kubeadm.yaml');
  writeFileSync(config, kubeadmConfig);
  const phase = (...args: string[]) =>
    run(program('kubeadm'), ['init', 'phase', ...args, '--config', config], { log: logOf('certificates') });
  const user = (name: string, folder: string, ...args: string[]) =>
    phase('kubeconfig', name, '--kubeconfig-dir', folder, ...args);

  await phase('certs', 'all');
  await Promise.all([
    user('super-admin', pkiFolder),
    user('controller-manager', pkiFolder),
    user('scheduler', pkiFolder),
    ...nodeNames.map((node) => user('kubelet', dataOf(node), '--node-name', node)),
  ]);
  renameSync(join(pkiFolder, 'super-admin.conf'), kubeconfig);
}

const kubeadmConfig = `
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: { advertiseAddress: ${addressOf('control-plane')}, bindPort: 6443 }
nodeRegistration: { criSocket: 'unix:///none', name: control-plane }
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: oz0
kubernetesVersion: v${kubernetesVersion}
certificatesDir: ${pkiFolder}
networking: { serviceSubnet: ${serviceRange}, podSubnet: ${podRange}, dnsDomain: ${clusterDomain} }
`;
