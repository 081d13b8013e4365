import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../../hack/shell/wait.ts';
import { ask, bind, person, untilMay } from './actors.ts';
import {
  agentPod,
  apply,
  callFunction,
  get,
  kubectl,
  type Live,
  type Manifest,
  OPERATOR_NAMESPACE,
  storyNamespace,
  waitForCondition,
  waitForPod,
} from './cluster.ts';
import { agentOf, probeTool } from './probe.ts';

const JANE = person('jane');

/** A call that a person decides, from the agent's question to its one outcome. The counter in the tool is the judge. */
describe('what only a person may decide', () => {
  let namespace = '';
  let end: () => Promise<void> = async () => {};

  beforeAll(async () => {
    const made = await storyNamespace('approvals');
    namespace = made.name;
    end = () => made[Symbol.asyncDispose]();
    await apply(
      probeTool(namespace, 'probe', { affinity: 'any', replicas: 1 }),
      agentOf(namespace, 'all', ['agent'], ['probe.*']),
    );
    await waitForCondition('tool', namespace, 'probe', 'Ready', 'True', 240);
    await apply(...agentPod(namespace, 'agent', 'agent', 'node1'));
    await waitForPod(namespace, 'agent');
    await bind(namespace, JANE, 'oz0-approver');
    await untilMay(JANE, 'decide', 'toolcalls.oz0.ai', namespace);
  });

  afterAll(() => end());

  const call = (name: string, args: unknown, callId?: string, ...options: string[]) =>
    callFunction(
      namespace,
      'agent',
      `probe__${name}`,
      args,
      ...(callId === undefined ? [] : ['--meta', JSON.stringify({ 'ai.oz0/call-id': callId })]),
      ...options,
    );
  const count = async (name: string): Promise<number> =>
    JSON.parse((await call('count', { name })).content[0].text).count;
  const outcome = (answer: Live) => answer._meta?.['ai.oz0/outcome'];
  const newId = () => `story-${randomBytes(6).toString('hex')}`;
  /** Asks for an effect that needs a person; the waiting ToolCall. */
  async function asked(name: string, callId: string): Promise<Live> {
    const answer = await call('overwrite', { name }, callId);
    expect(outcome(answer)).toBe('waiting');
    const object = answer._meta['ai.oz0/call'];
    return await get('toolcall', object, `--namespace=${namespace}`);
  }
  const decision = (toolCall: Live, verdict: string) => ({
    spec: { decision: { verdict, by: JANE.user, uid: toolCall.metadata.uid } },
  });
  const decide = (toolCall: Live, verdict: string) =>
    ask(JANE, [
      'patch',
      'toolcall',
      toolCall.metadata.name,
      `--namespace=${namespace}`,
      '--type=merge',
      `--patch=${JSON.stringify(decision(toolCall, verdict))}`,
    ]);
  const ended = (toolCall: Live, phase: string) =>
    waitFor(
      `the call is ${phase}`,
      async () => {
        const now = await get('toolcall', toolCall.metadata.name, `--namespace=${namespace}`);
        if (now.status?.phase === phase) return now;
        throw new Error(JSON.stringify(now.status));
      },
      { timeoutSeconds: 60, everyMs: 500 },
    );

  test('[Y01] [Y03] it waits, a person approves with kubectl, it runs once, and the agent fetches its one outcome', async () => {
    const id = newId();
    const waiting = await asked('approved', id);
    expect(await count('approved')).toBe(0);
    expect(waiting.spec.arguments).toEqual({ name: 'approved' });
    expect(await kubectl('get', 'toolcalls', `--namespace=${namespace}`)).toContain('Waiting');
    expect(outcome(await call('overwrite', { name: 'approved' }, id))).toBe('waiting');
    expect(await decide(waiting, 'approve')).toMatchObject({ ok: true });
    await ended(waiting, 'Succeeded');
    for (const _ of [1, 2]) {
      const answer = await call('overwrite', { name: 'approved' }, id);
      expect(JSON.parse(answer.content[0].text)).toMatchObject({ count: 1 });
    }
    expect(await count('approved')).toBe(1);
    // What a person had to read is not kept.
    expect((await get('toolcall', waiting.metadata.name, `--namespace=${namespace}`)).status.phase).toBe('Succeeded');
  });

  test('[Y03] denied: it never runs, and the agent is told', async () => {
    const id = newId();
    const waiting = await asked('denied', id);
    expect(await decide(waiting, 'deny')).toMatchObject({ ok: true });
    await ended(waiting, 'Refused');
    const answer = await call('overwrite', { name: 'denied' }, id);
    expect(answer.isError).toBe(true);
    expect(answer.content[0].text).toMatch(/denied/i);
    expect(await count('denied')).toBe(0);
  });

  test('[Y03] [case 40] the same id with other arguments is refused; a second decision is refused', async () => {
    const id = newId();
    const waiting = await asked('exact', id);
    const other = await call('overwrite', { name: 'other' }, id);
    expect(other.isError ?? other.error !== undefined).toBe(true);
    expect(await decide(waiting, 'deny')).toMatchObject({ ok: true });
    expect((await decide(waiting, 'approve')).ok).toBe(false);
    expect(await count('exact')).toBe(0);
    expect(await count('other')).toBe(0);
  });

  test('[Y03] [case 40] the policy changes after the approval was asked for: it must be asked again', async () => {
    const id = newId();
    const waiting = await asked('policy', id);
    const policy: Manifest = {
      apiVersion: 'oz0.ai/v1alpha1',
      kind: 'ToolPolicy',
      metadata: { name: 'default', namespace },
      spec: {
        rules: [{ name: 'never', functions: ['probe.overwrite'], do: 'refuse', because: 'Not in this story.' }],
      },
    };
    await apply(policy);
    try {
      await waitFor(
        'the policy holds',
        async () => (outcome(await call('overwrite', { name: 'x' })) === 'waiting' ? undefined : true),
        { timeoutSeconds: 20, everyMs: 500 },
      );
      await decide(waiting, 'approve');
      await ended(waiting, 'Refused');
      expect(await count('policy')).toBe(0);
    } finally {
      await kubectl('delete', 'toolpolicy', 'default', `--namespace=${namespace}`);
    }
  });

  test('[case 38] [R11] the gateway that was asked is gone, and the agent too, when the approval comes', async () => {
    const id = newId();
    const waiting = await asked('gone', id);
    await kubectl('delete', 'pod', 'agent', `--namespace=${namespace}`);
    const gateways = await get('pods', `--namespace=${OPERATOR_NAMESPACE}`, '--selector=oz0.ai/component=gateway');
    const asker = gateways.items.find((pod: Live) => pod.spec.nodeName === 'node1');
    await kubectl('delete', 'pod', asker.metadata.name, `--namespace=${OPERATOR_NAMESPACE}`, '--wait=false');
    expect(await decide(waiting, 'approve')).toMatchObject({ ok: true });
    await ended(waiting, 'Succeeded');
    await apply(...agentPod(namespace, 'agent', 'agent', 'node1'));
    await waitForPod(namespace, 'agent');
    const answer = await call('overwrite', { name: 'gone' }, id);
    expect(JSON.parse(answer.content[0].text)).toMatchObject({ count: 1 });
    expect(await count('gone')).toBe(1);
  });

  test('[Y01] [case 34] undeclared waits at each call, until the tenant allows it', async () => {
    expect(outcome(await call('undeclared', { name: 'u' }))).toBe('waiting');
    await apply({
      apiVersion: 'oz0.ai/v1alpha1',
      kind: 'ToolPolicy',
      metadata: { name: 'default', namespace },
      spec: { kinds: { undeclared: 'run' } },
    });
    await waitFor(
      'it runs',
      async () => (outcome(await call('undeclared', { name: 'u' })) === 'waiting' ? undefined : true),
      { timeoutSeconds: 20, everyMs: 500 },
    );
    await apply({
      apiVersion: 'oz0.ai/v1alpha1',
      kind: 'ClusterToolPolicy',
      metadata: { name: `floor-${namespace}` },
      spec: { kinds: { undeclared: 'wait' } },
    });
    try {
      // The floor is no namespace's to loosen.
      await waitFor(
        'it waits again',
        async () => (outcome(await call('undeclared', { name: 'u' })) === 'waiting' ? true : undefined),
        { timeoutSeconds: 20, everyMs: 500 },
      );
    } finally {
      await kubectl('delete', 'clustertoolpolicy', `floor-${namespace}`);
      await kubectl('delete', 'toolpolicy', 'default', `--namespace=${namespace}`);
    }
  });

  test('[Y02] a rule over arguments', async () => {
    await apply({
      apiVersion: 'oz0.ai/v1alpha1',
      kind: 'ToolPolicy',
      metadata: { name: 'default', namespace },
      spec: {
        rules: [
          {
            name: 'never-force',
            functions: ['probe.counter'],
            when: "args.name == 'forced'",
            do: 'refuse',
            because: 'Forced counts are done by people.',
          },
        ],
      },
    });
    try {
      const refused = await waitFor(
        'the rule holds',
        async () => {
          const answer = await call('counter', { name: 'forced' });
          return answer.isError === true ? answer : undefined;
        },
        { timeoutSeconds: 20, everyMs: 500 },
      );
      expect(refused.content[0].text).toContain('Forced counts are done by people.');
      expect((await call('counter', { name: 'free' })).isError ?? false).toBe(false);
    } finally {
      await kubectl('delete', 'toolpolicy', 'default', `--namespace=${namespace}`);
    }
  });

  test('[Y06] a Stop ends what runs within 2 s, and nothing starts while it is there', async () => {
    const running = call('sleep', { ms: 20_000 });
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const stopped = Date.now();
    await apply({
      apiVersion: 'oz0.ai/v1alpha1',
      kind: 'Stop',
      metadata: { name: 'incident', namespace },
      spec: { tool: 'probe', because: 'A story.' },
    });
    const answer = await running;
    expect(Date.now() - stopped).toBeLessThan(4_000);
    expect(answer.isError).toBe(true);
    expect(outcome(answer)).toBe('stopped');
    const refused = await call('hostname', {});
    expect(refused.isError).toBe(true);
    expect(refused._meta['ai.oz0/reason']).toBe('stopped');
    await kubectl('delete', 'stop', 'incident', `--namespace=${namespace}`);
    await waitFor('calls run again', async () => ((await call('hostname', {})).isError ? undefined : true), {
      timeoutSeconds: 20,
      everyMs: 500,
    });
  });
});
