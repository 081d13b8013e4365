import { describe, expect, test } from 'vitest';
import { answerCall, decideCall, listCalls } from './calls.ts';
import { holding } from './testing/cluster.ts';

const call = (name: string, spec: object, phase?: string) => ({
  apiVersion: 'oz0.ai/v1alpha1',
  kind: 'ToolCall',
  metadata: { name, namespace: 'acme', uid: `uid-${name}`, resourceVersion: '7' },
  spec: { agent: 'clerk', tool: 'office', function: 'send', arguments: { to: 'a\u202eb' }, ...spec },
  ...(phase === undefined ? {} : { status: { phase } }),
});

describe('calls', () => {
  test('what is open, in order, and nothing that could pose as something else', async () => {
    const cluster = holding(
      call('c-waits', {}, 'Waiting'),
      call('c-new', {}),
      call('c-sent', { sender: { pod: 'p' } }),
      call('c-done', {}, 'Succeeded'),
      call('c-nobody-knows', {}, 'Unknown'),
    );
    const shown = await listCalls(cluster, false);
    expect(shown.split('\n').map((line) => line.split(/\s{3,}/).slice(0, 4))).toEqual([
      ['NAME', 'PHASE', 'FUNCTION', 'AGENT'],
      ['c-waits', 'Waiting', 'office.send', 'clerk'],
      ['c-new', 'Waiting', 'office.send', 'clerk'],
      ['c-sent', 'Sending', 'office.send', 'clerk'],
      ['c-nobody-knows', 'Unknown', 'office.send', 'clerk'],
    ]);
    expect(shown).toContain('\\u{202e}');
    expect(await listCalls(cluster, true)).toContain('c-done');
    expect(await listCalls(holding(), false)).toMatch(/No call in acme waits/);
  });

  test.each(['approve', 'deny'] as const)(
    '[Y03] %s writes who decides over which object, and nothing else',
    async (verdict) => {
      const cluster = holding(call('c-1', {}, 'Waiting'));
      const said = await decideCall(cluster, 'c-1', verdict, 'seen');
      expect(cluster.written).toEqual([
        {
          ...call('c-1', {}, 'Waiting'),
          spec: {
            ...call('c-1', {}).spec,
            decision: { verdict, by: 'jane', uid: 'uid-c-1', note: 'seen' },
          },
        },
      ]);
      expect(said).toContain('as jane');
    },
  );

  test('[R06] an answer, likewise', async () => {
    const cluster = holding(call('c-1', {}, 'Unknown'));
    await answerCall(cluster, 'c-1', 'runAgain');
    expect(cluster.written[0]?.['spec']).toMatchObject({ answer: { outcome: 'runAgain', by: 'jane', uid: 'uid-c-1' } });
  });

  test.each([
    ['decide', 'Succeeded', (of: ReturnType<typeof holding>) => decideCall(of, 'c-1', 'approve', undefined)],
    ['answer', 'Waiting', (of: ReturnType<typeof holding>) => answerCall(of, 'c-1', 'stop')],
  ])('there is nothing to %s where a call is %s', async (_, phase, act) => {
    const cluster = holding(call('c-1', {}, phase));
    await expect(act(cluster)).rejects.toThrow(phase);
    expect(cluster.written).toEqual([]);
  });
});
