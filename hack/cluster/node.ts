/** A node's programs, each in the node's machine: containerd, kubelet, kube-proxy and the enforcer of NetworkPolicy. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { waitFor } from '../shell/wait.ts';
import { cgroupOf } from './cgroups.ts';
import { kubectlJson } from './kubectl.ts';
import {
  addressOf,
  clusterDomain,
  dataOf,
  dnsAddress,
  kubeconfig,
  kubeconfigOf,
  type NodeName,
  pkiFolder,
  podRange,
  podRangeOf,
  serviceRange,
} from './layout.ts';
import { endedProgram, programLog, runIn, startProgram } from './machines.ts';
import { cniFolder, program } from './programs.ts';

export const pauseImage = 'oz0.local/pause:dev';

const socketOf = (node: NodeName): string => join(dataOf(node), 'containerd.sock');

/** Runs containerd's client on a node. */
export async function ctr(node: NodeName, args: readonly string[]): Promise<string> {
  return await runIn(node, [program('ctr'), `--address=${socketOf(node)}`, '--namespace=k8s.io', ...args], 300);
}

export async function startContainerd(node: NodeName): Promise<void> {
  const data = dataOf(node);
  mkdirSync(join(data, 'cni'), { recursive: true });
  writeFileSync(join(data, 'cni', '10-pods.conflist'), JSON.stringify(cniConfig(node)));
  writeFileSync(join(data, 'containerd.toml'), containerdConfig(node));
  startProgram(node, 'containerd', [`--config=${join(data, 'containerd.toml')}`]);
  await waitFor(`containerd on ${node}`, () => ctr(node, ['version']), {
    timeoutSeconds: 30,
    log: programLog(node, 'containerd'),
    hopeless: () => endedProgram(node, 'containerd'),
  });
}

/** Needs the API server and, in containerd, the pause image. */
export function startKubelet(node: NodeName): void {
  const data = dataOf(node);
  const config = (name: string, content: unknown): string => {
    const file = join(data, name);
    writeFileSync(file, stringify(content));
    return `--config=${file}`;
  };
  startProgram(node, 'kubelet', [
    config('kubelet.yaml', kubeletConfig(node)),
    `--kubeconfig=${kubeconfigOf(node)}`,
    `--hostname-override=${node}`,
    `--node-ip=${addressOf(node)}`,
    `--root-dir=${join(data, 'kubelet')}`,
    `--cert-dir=${join(data, 'kubelet', 'pki')}`,
  ]);
  startProgram(node, 'kube-proxy', [config('kube-proxy.yaml', proxyConfig(node))]);
}

/** Waits until the node says that it is ready, having said so after `since`: kept data remembers an earlier life. */
export async function nodeReady(node: NodeName, since: Date): Promise<void> {
  await waitFor(`node ${node}`, async () => ((await readyAt(node)) >= since.getTime() - 1000 ? true : undefined), {
    timeoutSeconds: 90,
    everyMs: 300,
    log: programLog(node, 'kubelet'),
    hopeless: () => endedProgram(node, 'kubelet') ?? endedProgram(node, 'containerd'),
  });
}

/** Enforces NetworkPolicy from here on; needs a node that has told its address. */
export async function startPolicies(node: NodeName): Promise<void> {
  // Only its firewall; a refused connection is rejected at once, not dropped.
  startProgram(node, 'kube-router', [
    `--kubeconfig=${kubeconfig}`,
    `--hostname-override=${node}`,
    '--run-firewall=true',
    '--run-router=false',
    '--run-service-proxy=false',
    '--run-loadbalancer=false',
    `--service-cluster-ip-range=${serviceRange}`,
    '--health-port=0',
    '--metrics-port=0',
  ]);
  await waitFor(`policies on ${node}`, () => runIn(node, ['iptables', '-S', 'KUBE-ROUTER-FORWARD']), {
    timeoutSeconds: 30,
    log: programLog(node, 'kube-router'),
    hopeless: () => endedProgram(node, 'kube-router'),
  });
}

type NodeObject = { status?: { conditions?: { type: string; status: string; lastHeartbeatTime: string }[] } };

async function readyAt(node: NodeName): Promise<number> {
  const { status } = await kubectlJson<NodeObject>(['get', 'node', node]);
  const ready = status?.conditions?.find((condition) => condition.type === 'Ready');
  return ready?.status === 'True' ? Date.parse(ready.lastHeartbeatTime) : 0;
}

function cniConfig(node: NodeName): unknown {
  return {
    cniVersion: '1.0.0',
    name: 'pods',
    plugins: [
      {
        type: 'ptp',
        ipMasq: false, // pods of other nodes are reached, and seen, by their own addresses
        ipam: {
          type: 'host-local',
          dataDir: '/run/cni-addresses', // forgotten at a power cut, as the pods are
          ranges: [[{ subnet: podRangeOf(node) }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
}

function containerdConfig(node: NodeName): string {
  return `version = 3
root = "${join(dataOf(node), 'containerd')}"
state = "/run/containerd/state"

[grpc]
address = "${socketOf(node)}"

[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "${pauseImage}"

[plugins."io.containerd.cri.v1.runtime"]
# Where CAP_SYS_RESOURCE is missing no score below the current one can be set, and without this no pod starts.
restrict_oom_score_adj = true

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["${cniFolder()}"]
conf_dir = "${join(dataOf(node), 'cni')}"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "${program('runc')}"
`;
}

function kubeletConfig(node: NodeName): unknown {
  const data = dataOf(node);
  const resolvConf = join(data, 'resolv.conf');
  writeFileSync(resolvConf, `nameserver ${dnsAddress}\n`); // nothing of this machine's own resolver reaches a pod
  return {
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    address: addressOf(node),
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(pkiFolder, 'ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    cgroupDriver: 'cgroupfs',
    cgroupRoot: cgroupOf(node),
    clusterDNS: [dnsAddress],
    clusterDomain,
    containerRuntimeEndpoint: `unix://${socketOf(node)}`,
    evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1Gi', 'imagefs.available': '1Gi' },
    failCgroupV1: false,
    failSwapOn: false,
    imageGCHighThresholdPercent: 100, // images are loaded, not pulled: one collected could not be had again
    nodeLeaseDurationSeconds: 20,
    podCIDR: podRangeOf(node),
    podLogsDir: join(data, 'pod-logs'),
    podPidsLimit: 256,
    resolvConf,
    shutdownGracePeriod: '0s',
    volumePluginDir: join(data, 'kubelet', 'volume-plugins'),
  };
}

function proxyConfig(node: NodeName): unknown {
  return {
    apiVersion: 'kubeproxy.config.k8s.io/v1alpha1',
    kind: 'KubeProxyConfiguration',
    mode: 'nftables',
    clusterCIDR: podRange,
    clientConnection: { kubeconfig },
    hostnameOverride: node,
    bindAddress: addressOf(node),
    healthzBindAddress: `${addressOf(node)}:10256`,
    metricsBindAddress: `${addressOf(node)}:10249`,
    // Limits of the whole kernel, which are not a node's to set.
    conntrack: { maxPerCore: 0, tcpEstablishedTimeout: '0s', tcpCloseWaitTimeout: '0s' },
  };
}
