/** A tool's listing that waits for approval: what changed, and the approval of exactly that. */
import { API_GROUP_VERSION } from '../domain/naming.ts';
import type { KubeObject } from '../engine/contract.ts';
import { at, textAt } from '../reconcilers/live.ts';
import type { Cluster } from './cluster.ts';
import { UsageFailure } from './failure.ts';
import { plain } from './output.ts';

function pendingOf(tool: KubeObject): { hash: string; difference: string } | undefined {
  const hash = textAt(tool, 'status', 'pending', 'hash');
  if (at(tool, 'status', 'pending') === undefined || hash === undefined) return undefined;
  return { hash, difference: textAt(tool, 'status', 'pending', 'difference') ?? '' };
}

export async function showDifference(cluster: Cluster, name: string): Promise<string> {
  const tool = await cluster.get('Tool', name);
  const pending = pendingOf(tool);
  const approved = textAt(tool, 'status', 'snapshot', 'hash');
  if (pending === undefined) {
    return approved === undefined
      ? `${name} has not been listed yet.`
      : `Nothing waits: ${name} lists what was approved, ${approved}.`;
  }
  return [
    `approved  ${approved ?? 'nothing yet'}`,
    `waits     ${pending.hash}`,
    '',
    plain(pending.difference, true),
    '',
    `To let it in: oz0 snapshot approve ${name} ${pending.hash} -n ${cluster.namespace}`,
  ].join('\n');
}

/**
 * @param hash what the person has read; where it is left out and something waits, the failure names it, so that nobody
 *   approves unread what came in between
 */
export async function approveSnapshot(
  cluster: Cluster,
  name: string,
  hash: string | undefined,
  note: string | undefined,
): Promise<string> {
  if (hash === undefined) {
    const pending = pendingOf(await cluster.get('Tool', name));
    throw new UsageFailure(
      pending === undefined
        ? `Nothing of ${name} waits for approval.`
        : `Say which listing you have read. \`oz0 snapshot diff ${name}\` shows what waits: ${pending.hash}`,
    );
  }
  if (!/^sha256:[0-9a-f]{64}$/.test(hash))
    throw new UsageFailure(`${plain(hash)} is no hash: sha256: and 64 hex digits.`);
  const approval: KubeObject = {
    apiVersion: API_GROUP_VERSION,
    kind: 'SnapshotApproval',
    metadata: { name: `${name}-${hash.slice(7, 19)}`, namespace: cluster.namespace },
    spec: { tool: name, hash, ...(note === undefined ? {} : { note }) },
  };
  const made = await cluster.create('SnapshotApproval', approval);
  return `Approved: ${name} ${hash} (snapshotapproval/${made.metadata.name}).`;
}
