/** What runs and what does not, asked of the programs and of the API server, in well under a second. */
import { kubectl, kubectlJson } from './kubectl.ts';
import { type MachineName, machineNames, type NodeName, nodeNames } from './layout.ts';
import { machineRuns, programsOf } from './machines.ts';

export type Health = {
  ok: boolean;
  /** Machines that are off, or lack a program: they do not come right by themselves. */
  broken: MachineName[];
  lines: string[];
};

const programs: Record<'control-plane' | 'node', readonly string[]> = {
  'control-plane': ['etcd', 'kube-apiserver', 'kube-controller-manager', 'kube-scheduler'],
  node: ['containerd', 'kubelet', 'kube-proxy', 'kube-router'],
};

export async function health(): Promise<Health> {
  const machines = machineNames.map((machine) => ({ machine, ...machineHealth(machine) }));
  const server = await ask(async () => (await kubectl(['get', '--raw=/readyz'])) === 'ok');
  const [nodes, dns] = await Promise.all([
    server ? nodesReady() : new Map<NodeName, boolean>(),
    server && ask(async () => (await readyDns()) > 0),
  ]);
  const lines = machines.map(({ machine, line }) => {
    if (machine === 'control-plane') return `${line}; API server ${server ? 'ready' : 'does not answer'}`;
    return `${line}; node ${nodes.get(machine) === true ? 'Ready' : 'not Ready'}`;
  });
  return {
    ok: server && dns && machines.every(({ ok }) => ok) && nodeNames.every((node) => nodes.get(node) === true),
    broken: machines.flatMap(({ machine, ok }) => (ok ? [] : [machine])),
    lines: [...lines, `cluster DNS: ${dns ? 'ready' : 'not ready'}`],
  };
}

function machineHealth(machine: MachineName): { ok: boolean; line: string } {
  if (!machineRuns(machine)) return { ok: false, line: `${machine}: off` };
  const expected = machine === 'control-plane' ? programs['control-plane'] : programs.node;
  const running = new Set(programsOf(machine).flatMap(({ name, runs }) => (runs ? [name] : [])));
  const ended = expected.filter((name) => !running.has(name));
  return {
    ok: ended.length === 0,
    line: `${machine}: ${ended.length === 0 ? 'on' : `on, but not running: ${ended.join(', ')}`}`,
  };
}

type Nodes = { items: { metadata: { name: string }; status?: { conditions?: { type: string; status: string }[] } }[] };

async function nodesReady(): Promise<Map<NodeName, boolean>> {
  const { items } = await kubectlJson<Nodes>(['get', 'nodes']).catch((): Nodes => ({ items: [] }));
  return new Map(
    nodeNames.map((node) => {
      const conditions = items.find(({ metadata }) => metadata.name === node)?.status?.conditions ?? [];
      return [node, conditions.some(({ type, status }) => type === 'Ready' && status === 'True')];
    }),
  );
}

type Deployment = { status?: { readyReplicas?: number } };

async function readyDns(): Promise<number> {
  const deployment = await kubectlJson<Deployment>(['get', 'deployment', 'coredns', '--namespace=kube-system']);
  return deployment.status?.readyReplicas ?? 0;
}

async function ask(question: () => Promise<boolean>): Promise<boolean> {
  return await question().catch(() => false);
}
