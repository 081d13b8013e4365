import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isMachine } from '../../hack/cluster/layout.ts';
import { ctr } from '../../hack/cluster/node.ts';
import { waitFor } from '../../hack/shell/wait.ts';
import {
  agentPod,
  apply,
  callFunction,
  get,
  kubectl,
  type Live,
  OPERATOR_NAMESPACE,
  storyNamespace,
  waitForCondition,
  waitForPod,
} from './cluster.ts';
import { agentOf, probeTool } from './probe.ts';

/** One call at a time, and something killed at a step of it. The counter in the tool says what really happened. */
describe('outcomes', () => {
  let namespace = '';
  let end: () => Promise<void> = async () => {};

  beforeAll(async () => {
    const made = await storyNamespace('outcomes');
    namespace = made.name;
    end = () => made[Symbol.asyncDispose]();
    await apply(
      probeTool(namespace, 'probe', { affinity: 'any', replicas: 1, timeout: '20s' }),
      agentOf(namespace, 'all', ['agent'], ['probe.*']),
    );
    await waitForCondition('tool', namespace, 'probe', 'Ready', 'True', 240);
    await apply(...agentPod(namespace, 'agent', 'agent', 'node1'));
    await waitForPod(namespace, 'agent');
  });

  afterAll(() => end());

  const call = (name: string, args: unknown, callId?: string): Promise<Live> =>
    callFunction(
      namespace,
      'agent',
      `probe__${name}`,
      args,
      ...(callId === undefined ? [] : ['--meta', JSON.stringify({ 'ai.oz0/call-id': callId })]),
    ).catch((error: unknown) => ({ error: { message: String(error) } }));
  const count = (name: string): Promise<number> =>
    waitFor(
      'the counter is read',
      async () => {
        const answer = await call('count', { name });
        if (answer.content === undefined || answer.isError) throw new Error(JSON.stringify(answer));
        return { count: JSON.parse(answer.content[0].text).count as number };
      },
      { timeoutSeconds: 60, everyMs: 1000 },
    ).then((read) => read.count);
  const newId = () => `story-${randomBytes(6).toString('hex')}`;
  const recordOf = async (effect: string): Promise<Live> =>
    await waitFor(
      'a record of the call',
      async () => {
        const { items } = await get('toolcalls', `--namespace=${namespace}`);
        return items.find((item: Live) => item.spec.callId === effect);
      },
      { timeoutSeconds: 20, everyMs: 200 },
    );
  const settled = (name: string): Promise<Live> =>
    waitFor(
      'the record ends',
      async () => {
        const now = await get('toolcall', name, `--namespace=${namespace}`);
        if (['Succeeded', 'Failed', 'Unknown', 'Stopped', 'Refused'].includes(now.status?.phase)) return now;
        throw new Error(JSON.stringify(now.status));
      },
      { timeoutSeconds: 90, everyMs: 1000 },
    );
  async function signal(pod: Live, container: string, name: string): Promise<void> {
    const { nodeName } = pod.spec;
    const statuses: Live[] = [...(pod.status.initContainerStatuses ?? []), ...pod.status.containerStatuses];
    const id = statuses.find((status) => status.name === container).containerID.replace('containerd://', '');
    if (!isMachine(nodeName) || nodeName === 'control-plane') throw new Error(`no node ${nodeName}`);
    await ctr(nodeName, ['tasks', 'kill', '--signal', name, id]);
  }
  const gateway = async (): Promise<Live> =>
    (await get('pods', `--namespace=${OPERATOR_NAMESPACE}`, '--selector=oz0.ai/component=gateway')).items.find(
      (pod: Live) => pod.spec.nodeName === 'node1' && !pod.metadata.deletionTimestamp,
    );
  const toolPod = async (): Promise<Live> =>
    (await get('pods', `--namespace=${namespace}`, '--selector=oz0.ai/tool=probe')).items.find(
      (pod: Live) => !pod.metadata.deletionTimestamp,
    );
  /** A call that takes a while; `act` happens in the middle of it. */
  async function during(effect: string, act: () => Promise<void>): Promise<Live> {
    const running = call('counter', { name: effect, delayMs: 6_000 }, effect);
    await recordOf(effect);
    await sleep(2_000);
    await act();
    return await running;
  }
  /** What the agent gets when it asks again, once there is a gateway to ask. */
  const again = (effect: string): Promise<Live> =>
    waitFor(
      'the one outcome',
      async () => {
        const answer = await call('counter', { name: effect, delayMs: 6_000 }, effect);
        const open = ['not-started', 'running', 'waiting'].includes(answer._meta?.['ai.oz0/outcome']);
        if (answer.content !== undefined && !open) return answer;
        throw new Error(JSON.stringify(answer));
      },
      { timeoutSeconds: 90, everyMs: 2000 },
    );

  test('[R01] a write in peace: recorded before, its outcome after, once', async () => {
    const id = newId();
    const answer = await call('counter', { name: id }, id);
    expect(JSON.parse(answer.content[0].text).count).toBe(1);
    const record = await recordOf(id);
    expect((await settled(record.metadata.name)).status).toMatchObject({ phase: 'Succeeded', attempts: 1 });
    expect(record.spec.arguments).toBeUndefined();
    // Delivered again: its record answers.
    const second = await call('counter', { name: id }, id);
    expect(JSON.parse(second.content[0].text).count).toBe(1);
    expect(await count(id)).toBe(1);
  });

  test('[R02] a read that crashes its server runs again; [R05] a write that does is unknown, and does not', async () => {
    const read = newId();
    const answer = await call('readSlowly', { name: read, crashes: 1 });
    expect(answer.isError ?? false).toBe(false);
    expect(await count(read)).toBe(2);
    const id = newId();
    const crashed = await call('crash', {}, id);
    expect(crashed.isError).toBe(true);
    expect(crashed._meta['ai.oz0/outcome']).toBe('unknown');
    expect((await settled((await recordOf(id)).metadata.name)).status.phase).toBe('Unknown');
  });

  test('[R11] [case 67] the gateway is killed in mid-call: the tool ran once, and its record says so', async () => {
    const id = newId();
    await during(id, async () => signal(await gateway(), 'gateway', 'SIGKILL'));
    const answer = await again(id);
    expect(await count(id)).toBe(1);
    const record = await settled((await recordOf(id)).metadata.name);
    console.log(JSON.stringify({ phase: record.status.phase, answer: answer.content[0].text.slice(0, 120) }));
    expect(['Succeeded', 'Unknown']).toContain(record.status.phase);
  });

  test('[R11] [I13] a gateway that is paused past its grant and resumed makes nothing run', async () => {
    const id = newId();
    const paused = await gateway();
    await during(id, async () => {
      await signal(paused, 'gateway', 'SIGSTOP');
      await sleep(35_000);
      await signal(paused, 'gateway', 'SIGCONT').catch(() => {});
    });
    await again(id);
    expect(await count(id)).toBe(1);
  });

  test('[R05] [R11] the sidecar is killed in mid-call', async () => {
    const id = newId();
    const answer = await during(id, async () => signal(await toolPod(), 'sidecar', 'SIGKILL'));
    console.log(JSON.stringify(answer));
    await waitForCondition('tool', namespace, 'probe', 'Ready', 'True', 120);
    expect(await count(id)).toBe(1);
    const record = await settled((await recordOf(id)).metadata.name);
    expect(record.status.phase).toBe('Unknown');
    const later = await again(id);
    expect(later._meta['ai.oz0/outcome']).toBe('unknown');
    expect(await count(id)).toBe(1);
  });

  test('[R11] the pod is deleted in mid-call: it ends its call first', async () => {
    const id = newId();
    const answer = await during(id, async () => {
      await kubectl('delete', 'pod', (await toolPod()).metadata.name, `--namespace=${namespace}`, '--wait=false');
    });
    expect(JSON.parse(answer.content[0].text).count).toBe(1);
    expect((await settled((await recordOf(id)).metadata.name)).status.phase).toBe('Succeeded');
  });

  test('[R06] [R07] a person answers an unknown outcome', async () => {
    await apply({
      ...agentOf(namespace, 'all', ['agent'], ['probe.*']),
      spec: { serviceAccounts: ['agent'], tools: ['probe.*'], onUnknown: 'ask' },
    });
    await waitForCondition('tool', namespace, 'probe', 'Ready', 'True', 120);
    await sleep(2_000);
    const id = newId();
    expect((await call('crash', {}, id))._meta['ai.oz0/outcome']).toBe('unknown');
    const record = await settled((await recordOf(id)).metadata.name);
    expect(record.status.phase).toBe('Unknown');
    await kubectl(
      'patch',
      'toolcall',
      record.metadata.name,
      `--namespace=${namespace}`,
      '--type=merge',
      `--patch=${JSON.stringify({ spec: { answer: { outcome: 'happened', by: await whoAmI(), uid: record.metadata.uid } } })}`,
    );
    const told = await waitFor(
      'the answer is told',
      async () => {
        const answer = await call('crash', {}, id);
        return answer._meta?.['ai.oz0/outcome'] === 'unknown' ? undefined : answer;
      },
      { timeoutSeconds: 30, everyMs: 1000 },
    );
    expect(JSON.stringify(told)).toMatch(/happened/);
  });
});

async function whoAmI(): Promise<string> {
  const review = JSON.parse(await kubectl('auth', 'whoami', '--output=json'));
  return review.status.userInfo.username;
}
