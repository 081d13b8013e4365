/** etcd, API server, controller manager and scheduler, in the machine `control-plane`. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../shell/wait.ts';
import { kubectl } from './kubectl.ts';
import {
  addressOf,
  auditLog,
  clusterDomain,
  dataOf,
  kubeconfigOf,
  pkiFolder,
  podRange,
  serviceRange,
} from './layout.ts';
import { endedProgram, programLog, startProgram } from './machines.ts';

const machine = 'control-plane';
const pki = (file: string): string => join(pkiFolder, file);

/** Returns when the API server is ready. */
export async function startControlPlane(): Promise<void> {
  startEtcd();
  startApiServer();
  // Both wait for the API server by themselves, but give up for a while; so they are started when it is there.
  await waitFor('the API server', async () => ((await kubectl(['get', '--raw=/readyz'])) === 'ok' ? true : undefined), {
    timeoutSeconds: 60,
    log: programLog(machine, 'kube-apiserver'),
    hopeless: () => endedProgram(machine, 'etcd') ?? endedProgram(machine, 'kube-apiserver'),
  });
  startControllerManager();
  startScheduler();
}

function startEtcd(): void {
  const data = join(dataOf(machine), 'etcd');
  mkdirSync(data, { recursive: true, mode: 0o700 });
  startProgram(machine, 'etcd', [
    `--data-dir=${data}`,
    '--unsafe-no-fsync', // a lost machine loses a test cluster; the disk is spared
    '--log-level=warn',
  ]);
}

function startApiServer(): void {
  const address = addressOf(machine);
  startProgram(machine, 'kube-apiserver', [
    `--advertise-address=${address}`,
    `--bind-address=${address}`,
    '--etcd-servers=http://127.0.0.1:2379',
    `--client-ca-file=${pki('ca.crt')}`,
    `--tls-cert-file=${pki('apiserver.crt')}`,
    `--tls-private-key-file=${pki('apiserver.key')}`,
    `--kubelet-client-certificate=${pki('apiserver-kubelet-client.crt')}`,
    `--kubelet-client-key=${pki('apiserver-kubelet-client.key')}`,
    '--kubelet-preferred-address-types=InternalIP',
    `--service-account-issuer=https://kubernetes.default.svc.${clusterDomain}`,
    `--service-account-key-file=${pki('sa.pub')}`,
    `--service-account-signing-key-file=${pki('sa.key')}`,
    `--service-cluster-ip-range=${serviceRange}`,
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged=true',
    `--audit-policy-file=${join(import.meta.dirname, 'audit-policy.yaml')}`,
    `--audit-log-path=${auditLog}`,
    '--audit-log-maxsize=256',
    '--audit-log-maxbackup=1',
    `--requestheader-client-ca-file=${pki('front-proxy-ca.crt')}`,
    '--requestheader-allowed-names=front-proxy-client',
    '--requestheader-username-headers=X-Remote-User',
    '--requestheader-group-headers=X-Remote-Group',
    '--requestheader-extra-headers-prefix=X-Remote-Extra-',
    `--proxy-client-cert-file=${pki('front-proxy-client.crt')}`,
    `--proxy-client-key-file=${pki('front-proxy-client.key')}`,
  ]);
}

function startControllerManager(): void {
  startProgram(machine, 'kube-controller-manager', [
    `--kubeconfig=${kubeconfigOf('controller-manager')}`,
    `--service-account-private-key-file=${pki('sa.key')}`,
    `--root-ca-file=${pki('ca.crt')}`,
    `--cluster-signing-cert-file=${pki('ca.crt')}`,
    `--cluster-signing-key-file=${pki('ca.key')}`,
    '--use-service-account-credentials=true',
    // The ranges of pods are stated on the nodes: CNI, routes and policies must agree on them.
    '--allocate-node-cidrs=false',
    `--cluster-cidr=${podRange}`,
    `--service-cluster-ip-range=${serviceRange}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
    // A lost node is seen in 20 s instead of 50, so that tests of it need not wait.
    '--node-monitor-period=2s',
    '--node-monitor-grace-period=20s',
  ]);
}

function startScheduler(): void {
  startProgram(machine, 'kube-scheduler', [
    `--kubeconfig=${kubeconfigOf('scheduler')}`,
    '--leader-elect=false',
    '--bind-address=127.0.0.1',
  ]);
}
