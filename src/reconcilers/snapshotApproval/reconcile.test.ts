import { describe, expect, test } from 'vitest';
import { judge } from '../../api/judge.ts';
import { snapshotApproval } from '../../api/snapshotApproval.ts';
import type { KubeObject } from '../../engine/contract.ts';
import type { Status } from '../../engine/status.ts';
import { aTool, messageOf, statusOf, verdict } from '../testing/objects.ts';
import { snapshotApprovalReconciler as reconciler } from './reconcile.ts';

const hashOf = (digit: string) => `sha256:${digit.repeat(64)}`;
const approval = (status?: Status, annotations: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'oz0.ai/v1alpha1',
  kind: 'SnapshotApproval',
  metadata: { name: 'reviewed', namespace: 'acme', generation: 1, annotations },
  spec: { tool: 'everything', hash: hashOf('1') },
  ...(status ? { status } : {}),
});
const toolWith = (snapshot?: string, pending?: string) =>
  aTool(
    {},
    {},
    {
      ...(snapshot ? { snapshot: { hash: hashOf(snapshot), from: 'FirstListing', count: 1, functions: [] } } : {}),
      ...(pending ? { pending: { runs: 'r', hash: hashOf(pending), count: 1, difference: '' } } : {}),
      listing: { hash: hashOf('2'), count: 1, functions: [] },
    },
  );
const see = (tool: KubeObject | undefined, before?: Status) =>
  statusOf(reconciler, approval(before), { reads: { tool: tool ? [tool] : [] } });
const marks = ({ conditions }: Status) =>
  conditions.map(({ type }) => type).filter((type) => ['Current', 'Pending', 'Superseded'].includes(type));

describe('[P03] what an approval is now', () => {
  const current = see(toolWith('1'));
  const superseded = see(toolWith('2'), current);

  test.for<[string, Status, string]>([
    ['before its Tool is there', see(undefined), 'Pending'],
    ['before the listing appears', see(toolWith('2')), 'Pending'],
    ['while its listing is about to be taken', see(toolWith('2', '1')), 'Pending'],
    ['while it is the snapshot', current, 'Current'],
    ['once there is another', superseded, 'Superseded'],
    ['and that stays', see(toolWith('3'), superseded), 'Superseded'],
    ['until it is listed again', see(toolWith('1'), superseded), 'Current'],
  ])('%s', ([, status, wanted]) => {
    expect(marks(status)).toEqual([wanted]);
    expect(verdict(status, 'Ready')).toBe(`True ${wanted}`);
    expect(judge(snapshotApproval.schema, { ...approval(), status })).toMatchObject({ ok: true });
  });

  test('what the tool lists instead is said', () => {
    expect(messageOf(see(toolWith('2')), 'Pending')).toContain(hashOf('2'));
  });

  test('who applied it is what admission noted, without what a terminal would obey', () => {
    const noted = approval(undefined, { 'oz0.ai/applied-by': 'jane\u001b[31m' });
    expect(statusOf(reconciler, noted)).toMatchObject({ appliedBy: 'jane\ufffd[31m' });
    expect(statusOf(reconciler, approval())).not.toHaveProperty('appliedBy');
  });
});
