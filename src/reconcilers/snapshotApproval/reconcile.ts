/** SnapshotApproval: makes nothing; Tools read it. It says whether its hash is what its tool lists under approval now. */
import { type SnapshotApproval, snapshotApproval } from '../../api/snapshotApproval.ts';
import type { Fact, KubeObject, Reconciler } from '../../engine/contract.ts';
import { holds } from '../facts.ts';
import { conditionOf, textAt } from '../live.ts';
import { parseWith, type Stored } from '../parse.ts';
import { SNAPSHOT_APPROVAL, TOOL } from '../resources.ts';
import { readPending, readSnapshot } from '../tool/snapshot.ts';
import { ACCEPTED, CURRENT, PENDING, SUPERSEDED } from './reasons.ts';

export type StoredSnapshotApproval = Stored<SnapshotApproval>;

/** Stamped by admission with who applied it, where the API server can do that; else whoever applied it may have written it. */
export const APPLIED_BY_ANNOTATION = 'oz0.ai/applied-by';
const APPLIED_BY_MAX = 512;

export const snapshotApprovalReconciler: Reconciler<StoredSnapshotApproval> = {
  resource: SNAPSHOT_APPROVAL,
  parse: parseWith(snapshotApproval.schema),
  owns: [],
  reads: {
    tool: {
      resource: TOOL,
      select: ({ metadata, spec }) => ({ namespace: metadata.namespace ?? '', name: spec.tool }),
    },
  },
  sensors: [],
  conditions: ['Accepted'],
  marks: ['Current', 'Pending', 'Superseded'],
  reconcile: ({ parent, reads }) => {
    const by = parent.metadata.annotations?.[APPLIED_BY_ANNOTATION];
    return {
      do: 'converge',
      children: [],
      facts: {
        conditions: [holds('Accepted', ACCEPTED, ''), stateOf(parent, reads['tool']?.[0])],
        status: by === undefined ? {} : { appliedBy: printable(by) },
      },
    };
  },
};

function stateOf(approval: StoredSnapshotApproval, tool: KubeObject | undefined): Fact {
  const { tool: name, hash } = approval.spec;
  if (!tool) return holds('Pending', PENDING, `There is no Tool ${name} yet.`);
  const snapshot = readSnapshot(tool);
  if (snapshot?.hash === hash) return holds('Current', CURRENT, `It is the snapshot of Tool ${name}.`);
  if (readPending(tool)?.hash === hash) {
    return holds('Pending', PENDING, `Tool ${name} has a listing that this approves; it is about to be taken.`);
  }
  // That it was the snapshot once is known from its own status alone.
  if (conditionOf(approval, 'Current') || conditionOf(approval, 'Superseded')) {
    const message = `Tool ${name} has another snapshot now. Should it list this again, it would be approved: delete this to take that back.`;
    return holds('Superseded', SUPERSEDED, message);
  }
  const now = textAt(tool, 'status', 'listing', 'hash');
  return holds('Pending', PENDING, `Tool ${name} does not list this${now === undefined ? ' yet' : `, but ${now}`}.`);
}

function printable(text: string): string {
  return [...text.replaceAll(/[\p{C}\p{Zl}\p{Zp}]/gu, '\ufffd')].slice(0, APPLIED_BY_MAX / 2).join('');
}
