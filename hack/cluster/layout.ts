/**
 * The embedded cluster's machines, addresses and folders, in one place. Its network is one bridge on this machine:
 *
 *   this machine 10.99.0.1 ─┬─ control-plane 10.99.0.2   API server on 6443
 *                           ├─ node1         10.99.0.11  pods 10.244.1.0/24
 *                           └─ node2         10.99.0.12  pods 10.244.2.0/24
 */
import { join } from 'node:path';
import { cacheFolder } from '../shell/cache.ts';

export type MachineName = 'control-plane' | NodeName;
export type NodeName = 'node1' | 'node2';

export const nodeNames: readonly NodeName[] = ['node1', 'node2'];
export const machineNames: readonly MachineName[] = ['control-plane', ...nodeNames];

export const bridge = 'oz0';
export const bridgeAddress = '10.99.0.1';
export const serviceRange = '10.96.0.0/16';
export const dnsAddress = '10.96.0.10';
export const podRange = '10.244.0.0/16';
export const clusterDomain = 'cluster.local';
export const kubernetesVersion = '1.36.3';
/** All of the cluster's cgroups are below this one. */
export const cgroup = 'oz0';

const lastByte: Record<MachineName, number> = { 'control-plane': 2, node1: 11, node2: 12 };

export const addressOf = (machine: MachineName): string => `10.99.0.${lastByte[machine]}`;
/** Fixed, so that a machine that comes back is not looked for at the card it had before. */
export const hardwareAddressOf = (machine: MachineName): string =>
  `02:00:0a:63:00:${lastByte[machine].toString(16).padStart(2, '0')}`;
export const linkOf = (machine: MachineName): string => `${bridge}-${machine === 'control-plane' ? 'cp' : machine}`;
export const podRangeOf = (node: NodeName): string => `10.244.${lastByte[node] - 10}.0/24`;
export const apiServer = `https://${addressOf('control-plane')}:6443`;

/** The cluster's state; there is one embedded cluster a machine, since its addresses are fixed. */
export const clusterFolder: string = join(cacheFolder, 'cluster');
export const kubeconfig: string = join(clusterFolder, 'kubeconfig');
export const logFolder: string = join(clusterFolder, 'log');
export const logOf = (name: string): string => join(logFolder, `${name}.log`);
/** What the operator's accounts asked of the API server, as it recorded it; tests of what is written, and refused, read it. */
export const auditLog: string = logOf('audit');
export const pkiFolder: string = join(clusterFolder, 'pki');
export const dataOf = (machine: MachineName): string => join(clusterFolder, machine);
export const kubeconfigOf = (user: 'controller-manager' | 'scheduler' | NodeName): string =>
  user === 'node1' || user === 'node2' ? join(dataOf(user), 'kubelet.conf') : join(pkiFolder, `${user}.conf`);

export function isMachine(name: string): name is MachineName {
  return (machineNames as readonly string[]).includes(name);
}
