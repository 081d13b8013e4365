import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  agentPod,
  apply,
  callFunction,
  conditionOf,
  exec,
  get,
  kubectl,
  type Live,
  listFunctions,
  OPERATOR_NAMESPACE,
  storyNamespace,
  waitForCondition,
  waitForPod,
} from './cluster.ts';
import { agentOf, probeTool } from './probe.ts';

/** What a tool can see and reach, asked of a tool that looks around, through the gateway like any call. */
describe('the sandbox, from inside', () => {
  let namespace = '';
  let other = '';
  const dispose: (() => Promise<void>)[] = [];
  const look = async (name: string, args: unknown = {}): Promise<Live> => {
    const result = await callFunction(namespace, 'agent', `probe__${name}`, args);
    if (!result.content) throw new Error(JSON.stringify(result));
    return JSON.parse(result.content[0].text);
  };

  beforeAll(async () => {
    for (const story of ['sandbox', 'elsewhere']) {
      const made = await storyNamespace(story);
      dispose.push(() => made[Symbol.asyncDispose]());
      if (story === 'sandbox') namespace = made.name;
      else other = made.name;
    }
    await apply(
      probeTool(namespace, 'probe', { env: { DECLARED: 'yes' } }),
      agentOf(namespace, 'all', ['agent'], ['probe.*']),
      // Another tenant's agent that asks for a tool of the same name.
      agentOf(other, 'all', ['agent'], ['probe.*']),
    );
    await waitForCondition('tool', namespace, 'probe', 'Ready', 'True', 240);
    await apply(...agentPod(namespace, 'agent', 'agent'), ...agentPod(other, 'agent', 'agent'));
    await waitForPod(namespace, 'agent');
    await waitForPod(other, 'agent');
  });

  afterAll(async () => {
    for (const end of dispose) await end();
  });

  test('[S02] its environment is what was declared and a short list, and nothing of Kubernetes or the sidecar', async () => {
    const environ: Record<string, string> = await look('environ');
    expect(environ['DECLARED']).toBe('yes');
    expect(Object.keys(environ).sort()).toEqual(['DECLARED', 'HOME', 'LANG', 'PATH', 'TMPDIR']);
  });

  test('[S02] nor do the processes that it can see in /proc', async () => {
    const processes: { pid: number; environ: unknown; command: unknown; user: string }[] = await look('processes');
    expect(processes.map(({ pid }) => pid)).toContain(1);
    for (const { environ, command } of processes) {
      expect(JSON.stringify(environ)).not.toMatch(/KUBERNETES|OZ0|SERVICE_HOST/);
      expect(JSON.stringify(command)).not.toContain('sidecar');
    }
  });

  test('[S01] no capabilities, no new privileges, a filter on system calls, a read-only root', async () => {
    const status: Record<string, string> = await look('capabilities');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) expect(status[set]).toMatch(/^0+$/);
    expect(status['NoNewPrivs']).toBe('1');
    expect(status['Seccomp']).toBe('2');
    expect(status['Uid']?.split(/\s+/)[0]).not.toBe('0');
    const mounts = ((await look('mounts')) as string[]).map((line) => {
      const [, , , , target = '', options = ''] = line.split(' ');
      return { target, options: options.split(',') };
    });
    expect(mounts.find(({ target }) => target === '/')?.options).toContain('ro');
    for (const { target, options } of mounts) {
      expect(target).not.toMatch(/serviceaccount|\/oz0\/(trust|identity)/);
      if (target.startsWith('/oz0/')) expect(options).toContain('ro');
    }
  });

  test('[S01] its status says which walls are in force', async () => {
    const tool = await get('tool', 'probe', `--namespace=${namespace}`);
    expect(conditionOf(tool, 'Sandboxed')).toMatchObject({ status: 'True' });
    expect(conditionOf(tool, 'Sandboxed')?.message).toMatch(/user namespace/i);
    const { items } = await get('pods', `--namespace=${namespace}`, '--selector=oz0.ai/tool=probe');
    expect(items[0].spec.hostUsers).toBe(false);
    expect(items[0].spec.automountServiceAccountToken).toBe(false);
  });

  test('[S05] [case 101] no address answers: API server, DNS, node, other pods, metadata, Services', async () => {
    const pods = (await get('pods', '--all-namespaces')).items.filter((pod: Live) => pod.status.podIP);
    const ipOf = (match: (pod: Live) => boolean): string => pods.find(match).status.podIP;
    const own = pods.find(
      (pod: Live) => pod.metadata.labels?.['oz0.ai/tool'] === 'probe' && pod.metadata.namespace === namespace,
    );
    const service = async (name: string, where: string) =>
      (await get('service', name, `--namespace=${where}`)).spec.clusterIP as string;
    const targets: Record<string, [string, number]> = {
      'API server': [await service('kubernetes', 'default'), 443],
      'DNS, by Service': [await service('kube-dns', 'kube-system'), 53],
      'DNS, by pod': [ipOf((pod) => pod.metadata.labels?.['k8s-app'] === 'kube-dns'), 53],
      "an agent's pod": [ipOf((pod) => pod.metadata.name === 'agent' && pod.metadata.namespace === namespace), 8081],
      "another node's kubelet": [
        (await get('nodes')).items.find((node: Live) => node.metadata.name !== own.spec.nodeName).status.addresses[0]
          .address,
        10250,
      ],
      metadata: ['169.254.169.254', 80],
      'edge, past egress': [await service('oz0-edge', OPERATOR_NAMESPACE), 443],
      gateway: [await service('oz0-gateway', OPERATOR_NAMESPACE), 443],
      'the internet': ['1.1.1.1', 443],
      'the internet, IPv6': ['2606:4700:4700::1111', 443],
      "egress' metrics": [ipOf((pod) => pod.metadata.labels?.['oz0.ai/component'] === 'egress'), 9090],
    };
    const answered: string[] = [];
    for (const [name, [host, port]] of Object.entries(targets)) {
      const { connected } = await look('connect', { host, port, timeoutMs: 1500 });
      if (connected) answered.push(name);
    }
    expect(answered).toEqual([]);
    const resolved = await callFunction(namespace, 'agent', 'probe__resolve', {
      name: 'kubernetes.default.svc.cluster.local',
    });
    expect(resolved.isError).toBe(true);
  });

  test('[S05] a tool that talks to the egress itself, past its sidecar, gets nothing', async () => {
    const { data } = await get('configmap', 'oz0', `--namespace=${namespace}`);
    const [host, port] = data.egress.split(':');
    expect(await look('connect', { host, port: Number(port), timeoutMs: 1500 })).toMatchObject({ connected: true });
    const { head } = await look('connectThrough', { host, port: Number(port), target: '1.1.1.1:443' });
    expect(head).toMatch(/^HTTP\/1\.1 403/);
  });

  test('[S04] another pod cannot reach the tool pod, not even of the same namespace', async () => {
    const { items } = await get('pods', `--namespace=${namespace}`, '--selector=oz0.ai/tool=probe');
    for (const where of [namespace, other]) {
      const { stdout } = await exec(where, 'agent', [
        'node',
        '-e',
        `const s = require('node:net').connect({ host: '${items[0].status.podIP}', port: 8443, timeout: 2000 });
         for (const e of ['connect', 'error', 'timeout']) s.on(e, () => { console.log(e); process.exit() });`,
      ]);
      expect(stdout.trim()).not.toBe('connect');
    }
  });

  test('[case 130] in its pod nothing listens but the two ports of the sidecar', async () => {
    const tables = await Promise.all(
      ['tcp', 'tcp6'].map((family) =>
        callFunction(namespace, 'agent', 'probe__readFile', { path: `/proc/net/${family}` }),
      ),
    );
    const ports = tables
      .flatMap((table) => (table.content[0].text as string).trim().split('\n').slice(1))
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state]) => state === '0A')
      .map(([, local = '']) => Number.parseInt(local.split(':')[1] ?? '', 16));
    expect([...new Set(ports)].sort()).toEqual([8081, 8443]);
  });

  test('[Y04] [case 31] an agent of another namespace cannot see that the tool exists', async () => {
    expect(await listFunctions(other, 'agent')).toEqual([]);
    const granted = await callFunction(other, 'agent', 'probe__environ', {});
    const invented = await callFunction(other, 'agent', 'nothing__here', {});
    const unnamed = (error: { message: string }) => error.message.replace(/probe__environ|nothing__here/, 'X');
    expect(granted.error.code).toBe(invented.error.code);
    expect(unnamed(granted.error)).toBe(unnamed(invented.error));
  });

  test('[S06] a call of a `node` tool runs on the node of the agent that makes it', async () => {
    const agent = await get('pod', 'agent', `--namespace=${namespace}`);
    const { items } = await get('pods', `--namespace=${namespace}`, '--selector=oz0.ai/tool=probe');
    const local = items.find((pod: Live) => pod.spec.nodeName === agent.spec.nodeName);
    expect(items).toHaveLength(2);
    expect(await look('hostname')).toEqual({ hostname: local.metadata.name });
  });

  test('[case 12] files in /tmp live as long as the pod: past a call, and past the death of the process', async () => {
    const path = '/tmp/kept.txt';
    await callFunction(namespace, 'agent', 'probe__writeFile', { path, text: 'still here' });
    const read = async () => (await callFunction(namespace, 'agent', 'probe__readFile', { path })).content[0].text;
    expect(await read()).toBe('still here');
    await callFunction(namespace, 'agent', 'probe__crash', {});
    await expect.poll(read, { timeout: 30_000, interval: 1000 }).toBe('still here');
    const elsewhere = await callFunction(namespace, 'agent', 'probe__writeFile', { path: '/kept.txt', text: 'no' });
    expect(elsewhere.content[0].text).toContain('EROFS');
  });

  test('[K02] deleting the Tool leaves nothing behind', async () => {
    await kubectl('delete', 'tool', 'probe', `--namespace=${namespace}`);
    await expect
      .poll(
        async () =>
          (
            await get(
              'daemonsets,deployments,pods,services,networkpolicies,serviceaccounts',
              `--namespace=${namespace}`,
            )
          ).items
            .map((object: Live) => object.metadata.name)
            .filter((name: string) => name.startsWith('oz0t-')),
        { timeout: 90_000, interval: 1000 },
      )
      .toEqual([]);
  });
});
