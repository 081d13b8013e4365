import { describe, expect, test } from 'vitest';
import { approveSnapshot, showDifference } from './snapshots.ts';
import { holding } from './testing/cluster.ts';

const OLD = `sha256:${'a'.repeat(64)}`;
const NEW = `sha256:${'b'.repeat(64)}`;
const tool = (status: object) => ({
  apiVersion: 'oz0.ai/v1alpha1',
  kind: 'Tool',
  metadata: { name: 'clock', namespace: 'acme' },
  status,
});

describe('snapshots', () => {
  test('[P05] the difference, with its hash and what lets it in', async () => {
    const waiting = tool({ snapshot: { hash: OLD }, pending: { hash: NEW, difference: 'now: description\nx\u200by' } });
    const shown = await showDifference(holding(waiting), 'clock');
    expect(shown).toContain(`approved  ${OLD}`);
    expect(shown).toContain('now: description\nx\\u{200b}y');
    expect(shown).toContain(`oz0 snapshot approve clock ${NEW} -n acme`);
    expect(await showDifference(holding(tool({ snapshot: { hash: OLD } })), 'clock')).toMatch(/Nothing waits/);
    expect(await showDifference(holding(tool({})), 'clock')).toMatch(/not been listed/);
  });

  test('[P03] only what was named is approved: what one has read, not what is there by now', async () => {
    const cluster = holding(tool({ pending: { hash: NEW, difference: '' } }));
    await expect(approveSnapshot(cluster, 'clock', undefined, undefined)).rejects.toThrow(NEW);
    await expect(approveSnapshot(cluster, 'clock', 'sha256:short', undefined)).rejects.toThrow('no hash');
    expect(cluster.written).toEqual([]);
    await approveSnapshot(cluster, 'clock', OLD, 'change 812');
    expect(cluster.written).toMatchObject([
      { kind: 'SnapshotApproval', spec: { tool: 'clock', hash: OLD, note: 'change 812' } },
    ]);
  });
});
