import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { isMachine } from '../../hack/cluster/layout.ts';
import { ctr } from '../../hack/cluster/node.ts';
import { script } from '../../hack/operator.ts';
import { waitFor } from '../../hack/shell/wait.ts';
import {
  agentPod,
  apply,
  callFunction,
  get,
  kubectl,
  type Live,
  OPERATOR_NAMESPACE,
  type SteadyLine,
  startSteady,
  storyNamespace,
  waitForCondition,
  waitForPod,
} from './cluster.ts';
import { agentOf, probeTool } from './probe.ts';

/**
 * Each part is killed during steady calls. A call may fail, with words that say whether it ran; it never runs twice, and
 * calls work again without anybody's help. The counter in the tool's process is the judge: a process that counted further
 * than it answered ran a call twice, or ran one that was told as not made.
 */
function judge(lines: readonly SteadyLine[]) {
  const answered = lines.filter(({ ok }) => ok);
  const failed = lines.filter(({ ok }) => !ok);
  const unknown = failed.filter(
    ({ meta, text = '', error = '' }) => meta?.['ai.oz0/outcome'] === 'unknown' || /unknown/.test(text + error),
  );
  // The agent's own connection to its gateway broke: the agent cannot know either.
  const broken = failed.filter(({ error }) => error !== undefined);
  const counts = new Map<string, number[]>();
  for (const { text = '' } of answered) {
    const { instance, count } = JSON.parse(text);
    counts.set(instance, [...(counts.get(instance) ?? []), count]);
  }
  let gaps = 0;
  let repeats = 0;
  for (const seen of counts.values()) {
    repeats += seen.length - new Set(seen).size;
    gaps += Math.max(...seen) - Math.min(...seen) + 1 - new Set(seen).size;
  }
  const mayHaveRun = new Set([...unknown, ...broken]).size;
  const lastFailure = failed.at(-1);
  const firstFailure = failed[0];
  return {
    answered: answered.length,
    failed: failed.length,
    unknown: unknown.length,
    messages: [...new Set(failed.map(({ text, error }) => (text ?? error ?? '').slice(0, 160)))],
    instances: counts.size,
    repeats,
    /** Effects that no answer accounts for, beyond those told as unknown: must be none. */
    unaccounted: Math.max(0, gaps - mayHaveRun),
    brokenForMs:
      firstFailure && lastFailure ? Date.parse(lastFailure.at) + lastFailure.ms - Date.parse(firstFailure.at) : 0,
    lastOk: lines.at(-1)?.ok ?? false,
    slowestMs: Math.max(...lines.map(({ ms }) => ms)),
  };
}

describe('killed during steady calls', () => {
  let namespace = '';
  let end: () => Promise<void> = async () => {};

  beforeAll(async () => {
    const made = await storyNamespace('kills');
    namespace = made.name;
    end = () => made[Symbol.asyncDispose]();
    await apply(
      probeTool(namespace, 'one', { affinity: 'any', replicas: 1 }),
      probeTool(namespace, 'two', { affinity: 'any', replicas: 2 }),
      agentOf(namespace, 'all', ['agent'], ['one.*', 'two.*', 'far.*']),
    );
    for (const tool of ['one', 'two']) await waitForCondition('tool', namespace, tool, 'Ready', 'True', 240);
    await apply(...agentPod(namespace, 'agent', 'agent', 'node1'));
    await waitForPod(namespace, 'agent');
  });

  afterEach(async () => {
    for (const tool of ['one', 'two']) await waitForCondition('tool', namespace, tool, 'Ready', 'True', 240);
  });

  afterAll(() => end());

  const podsOf = async (tool: string): Promise<Live[]> =>
    (await get('pods', `--namespace=${namespace}`, `--selector=oz0.ai/tool=${tool}`)).items.filter(
      (pod: Live) => pod.metadata.deletionTimestamp === undefined,
    );

  /** SIGKILL from outside, as the kernel would when memory runs out. */
  async function killContainer(pod: Live, container: string): Promise<void> {
    const { nodeName } = pod.spec;
    const statuses: Live[] = [...(pod.status.initContainerStatuses ?? []), ...pod.status.containerStatuses];
    const id = statuses.find(({ name }) => name === container).containerID.replace('containerd://', '');
    if (!isMachine(nodeName) || nodeName === 'control-plane') throw new Error(`no node ${nodeName}`);
    await ctr(nodeName, ['tasks', 'kill', '--signal', 'SIGKILL', id]);
  }

  async function during(seconds: number, tool: string, act: () => Promise<void>, callers = 2): Promise<SteadyLine[]> {
    const steady = startSteady(
      namespace,
      'agent',
      `${tool}__counter`,
      {},
      `--seconds=${seconds}`,
      `--callers=${callers}`,
    );
    await waitFor('calls flow', () => (steady.linesSoFar() > 10 ? true : undefined), { timeoutSeconds: 20 });
    await act();
    return await steady.ended;
  }

  function expectHealed(lines: readonly SteadyLine[], brokenForMs: number) {
    const verdict = judge(lines);
    console.log(JSON.stringify(verdict));
    expect(verdict.repeats).toBe(0);
    expect(verdict.unaccounted).toBe(0);
    expect(verdict.lastOk).toBe(true);
    expect(verdict.brokenForMs).toBeLessThan(brokenForMs);
    return verdict;
  }

  test("[R01] [R05] [case 1] [case 17] the tool's process crashes: calls work again by themselves", async () => {
    const lines = await during(20, 'one', async () => {
      const crash = await callFunction(namespace, 'agent', 'one__crash', {});
      expect(crash.isError).toBe(true);
      expect(crash.content[0].text).toMatch(/unknown/);
    });
    expectHealed(lines, 10_000);
  });

  test('[S08] the container of the tool is killed', async () => {
    const lines = await during(30, 'one', async () => {
      const [pod] = await podsOf('one');
      await killContainer(pod, 'tool');
    });
    expectHealed(lines, 20_000);
  });

  test('[D04] the sidecar is killed', async () => {
    const lines = await during(40, 'one', async () => {
      const [pod] = await podsOf('one');
      await killContainer(pod, 'sidecar');
    });
    expectHealed(lines, 30_000);
  });

  test('[case 6] its pod is deleted: with a second one beside it, no call fails', async () => {
    const lines = await during(25, 'two', async () => {
      const [pod] = await podsOf('two');
      await kubectl('delete', 'pod', pod.metadata.name, `--namespace=${namespace}`, '--wait=false');
    });
    const verdict = expectHealed(lines, 1);
    expect(verdict.failed).toBe(0);
  });

  test('[case 6] a rolling update of the tool fails no call', async () => {
    const lines = await during(45, 'one', async () => {
      await apply(probeTool(namespace, 'one', { affinity: 'any', replicas: 1, env: { VERSION: '2' } }));
    });
    const verdict = expectHealed(lines, 1);
    expect(verdict.failed).toBe(0);
    expect(verdict.instances).toBe(2);
  });

  test("[case 18] the gateway's pod is deleted: what it began it ends", async () => {
    const lines = await during(40, 'two', async () => {
      const gateway = (
        await get('pods', `--namespace=${OPERATOR_NAMESPACE}`, '--selector=oz0.ai/component=gateway')
      ).items.find((pod: Live) => pod.spec.nodeName === 'node1');
      await kubectl('delete', 'pod', gateway.metadata.name, `--namespace=${OPERATOR_NAMESPACE}`, '--wait=false');
    });
    expectHealed(lines, 25_000);
  });

  test('[R11] the gateway is killed', async () => {
    const lines = await during(40, 'two', async () => {
      const gateway = (
        await get('pods', `--namespace=${OPERATOR_NAMESPACE}`, '--selector=oz0.ai/component=gateway')
      ).items.find((pod: Live) => pod.spec.nodeName === 'node1' && !pod.metadata.deletionTimestamp);
      await killContainer(gateway, 'gateway');
    });
    expectHealed(lines, 25_000);
  });

  test('[case 18] a rolling update of the gateways fails no call', async () => {
    const lines = await during(60, 'two', async () => {
      await kubectl('rollout', 'restart', 'daemonset/oz0-gateway', `--namespace=${OPERATOR_NAMESPACE}`);
      await kubectl(
        'rollout',
        'status',
        'daemonset/oz0-gateway',
        `--namespace=${OPERATOR_NAMESPACE}`,
        '--timeout=110s',
      );
    });
    const verdict = expectHealed(lines, 1);
    expect(verdict.failed).toBe(0);
  });

  test('[O07] every replica of the controller, of edge and of egress is down: calls go on, and what is applied is not blocked', async () => {
    const parts = ['oz0-controller', 'oz0-edge', 'oz0-egress'];
    const lines = await during(30, 'two', async () => {
      for (const part of parts) {
        await kubectl('scale', `deployment/${part}`, '--replicas=0', `--namespace=${OPERATOR_NAMESPACE}`);
      }
      await sleep(5_000);
      await apply(probeTool(namespace, 'later', { affinity: 'any' }));
      await kubectl('delete', 'tool', 'later', `--namespace=${namespace}`);
      await sleep(10_000);
      for (const part of parts) {
        await kubectl('scale', `deployment/${part}`, '--replicas=2', `--namespace=${OPERATOR_NAMESPACE}`);
      }
    });
    const verdict = expectHealed(lines, 1);
    expect(verdict.failed).toBe(0);
    for (const part of parts) {
      await kubectl('rollout', 'status', `deployment/${part}`, `--namespace=${OPERATOR_NAMESPACE}`, '--timeout=110s');
    }
  });

  test('[O07] the leader is killed: another takes over, and calls notice nothing', async () => {
    const holder = async () =>
      (await get('lease', 'oz0-controller', `--namespace=${OPERATOR_NAMESPACE}`)).spec.holderIdentity as string;
    const leader = await holder();
    const lines = await during(25, 'two', async () => {
      const name = leader.split('_')[0] ?? leader;
      await killContainer(await get('pod', name, `--namespace=${OPERATOR_NAMESPACE}`), 'controller');
      await waitFor(
        'another leader, or the same started anew',
        async () => ((await holder()) === leader ? undefined : true),
        {
          timeoutSeconds: 60,
          everyMs: 1000,
        },
      );
    });
    expect(expectHealed(lines, 1).failed).toBe(0);
    await apply(probeTool(namespace, 'after', { affinity: 'any' }));
    await waitForCondition('tool', namespace, 'after', 'Ready', 'True', 120);
    await kubectl('delete', 'tool', 'after', `--namespace=${namespace}`);
  });

  test('[R05] [R11] [case 123] a node is lost: the call it ran is told as unknown, other tools go on, and it comes back', async () => {
    // Its one pod is on node2, the agent on node1: a call is under way when the node goes.
    await apply(
      probeTool(namespace, 'far', {
        affinity: 'any',
        timeout: '20s',
        nodeSelector: { 'kubernetes.io/hostname': 'node2' },
      }),
    );
    await waitForCondition('tool', namespace, 'far', 'Ready', 'True', 120);
    const far = startSteady(namespace, 'agent', 'far__counter', { delayMs: 500 }, '--seconds=100', '--callers=2');
    await waitFor('calls of the far tool flow', () => (far.linesSoFar() > 4 ? true : undefined), {
      timeoutSeconds: 20,
    });
    const near = await during(95, 'two', async () => {
      await script('cluster.ts', 'node', 'stop', 'node2');
      await sleep(25_000);
      await script('cluster.ts', 'node', 'start', 'node2');
    });
    expect(expectHealed(near, 20_000).answered).toBeGreaterThan(100);
    const lost = judge(await far.ended);
    console.log(JSON.stringify(lost));
    expect(lost.repeats).toBe(0);
    expect(lost.unaccounted).toBe(0);
    expect(lost.failed).toBeGreaterThan(0);
    expect(lost.messages.every((message) => /unknown|not made/.test(message))).toBe(true);
    await kubectl('wait', 'node/node2', '--for=condition=Ready', '--timeout=120s');
    await kubectl('rollout', 'status', 'daemonset/oz0-gateway', `--namespace=${OPERATOR_NAMESPACE}`, '--timeout=115s');
    await waitForCondition('tool', namespace, 'far', 'Ready', 'True', 240);
    const again = await callFunction(namespace, 'agent', 'far__counter', {});
    expect(again.isError ?? false).toBe(false);
  });
});
