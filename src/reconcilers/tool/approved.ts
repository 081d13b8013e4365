/** Who lets another listing in: a SnapshotApproval of its hash, or policies for new versions. */
import type { KubeObject } from '../../engine/contract.ts';
import { textAt } from '../live.ts';

/** Name of the first, by name, that approves this hash of this tool. */
export function approvalOf(approvals: readonly KubeObject[], tool: string, hash: string): string | undefined {
  return approvals
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .filter((approval) => textAt(approval, 'spec', 'tool') === tool && textAt(approval, 'spec', 'hash') === hash)
    .map(({ metadata }) => metadata.name)
    .sort()[0];
}

/** Some policy of the namespace says so, and none there or for the cluster says otherwise: the strictest wins. */
export function acceptsNewVersions(policies: readonly KubeObject[], clusterPolicies: readonly KubeObject[]): boolean {
  const said = (policy: KubeObject) => textAt(policy, 'spec', 'newVersions');
  if (clusterPolicies.some((policy) => said(policy) !== undefined)) return false;
  const words = policies.map(said).filter((word) => word !== undefined);
  return words.length > 0 && words.every((word) => word === 'accept');
}
