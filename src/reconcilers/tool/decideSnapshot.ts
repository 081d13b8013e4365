/**
 * What becomes of a Tool's snapshot: the record of what was approved, against what its pods list now. Nothing here is remembered but in
 * status, so that a restart, a new leader or both at once learn nothing anew [case 52].
 */
import type { Fact } from '../../engine/contract.ts';
import { holds, pending, stalls } from '../facts.ts';
import { howToApprove } from './howToApprove.ts';
import { ASKING, LISTING_CHANGED, NO_SNAPSHOT_YET, NOTHING_LISTED, SNAPSHOT_CURRENT } from './reasons.ts';
import type { Hashes, Pending, Replaced, Snapshot } from './snapshot.ts';

export interface SnapshotInput {
  readonly namespace: string;
  readonly tool: string;
  readonly snapshot: Snapshot | undefined;
  readonly pending: Pending | undefined;
  /** What is written now. */
  readonly runs: string;
  /** What a ready pod of what is written now lists. `empty`: nothing; undefined: none was asked, or none answered. */
  readonly listed: Hashes | 'empty' | undefined;
  /** Name of the SnapshotApproval of this hash. */
  readonly approvalOf: (hash: string) => string | undefined;
  /** What is new about a listing, for people. */
  readonly differenceOf: (from: Snapshot, to: Hashes) => string;
}

export interface SnapshotDecision {
  readonly snapshot?: Snapshot;
  readonly pending?: Pending;
  readonly replaced?: Replaced;
  readonly fact: Fact;
}

const TYPE = 'SnapshotCurrent';

export function decideSnapshot(input: SnapshotInput): SnapshotDecision {
  const { snapshot, listed, runs } = input;
  if (snapshot === undefined) {
    if (listed === undefined || listed === 'empty') {
      return { fact: pending(TYPE, NO_SNAPSHOT_YET, 'The first listing becomes the snapshot.') };
    }
    return { snapshot: { ...listed, from: 'FirstListing', runs }, fact: current(listed) };
  }
  if (listed === undefined) return unseen(input, snapshot);
  if (listed === 'empty') {
    const message = 'The server lists no function, and its snapshot some.';
    return { snapshot, fact: pending(TYPE, NOTHING_LISTED, message) };
  }
  if (listed.hash === snapshot.hash) return { snapshot: { ...snapshot, runs }, fact: current(listed) };
  const approval = input.approvalOf(listed.hash);
  if (approval !== undefined) {
    return { snapshot: { ...listed, from: 'Approval', approval, runs }, fact: current(listed) };
  }
  const { hash, count } = listed;
  const known = input.pending?.hash === hash && input.pending.runs === runs ? input.pending : undefined;
  const waiting = known ?? { runs, hash, count, difference: input.differenceOf(snapshot, listed) };
  return { snapshot, pending: waiting, fact: changed(input, waiting) };
}

/** Nobody lists anything now: what was found out last of this version stands. */
function unseen(input: SnapshotInput, snapshot: Snapshot): SnapshotDecision {
  const waiting = input.pending?.runs === input.runs ? input.pending : undefined;
  if (waiting) return { snapshot, pending: waiting, fact: changed(input, waiting) };
  return { snapshot, fact: pending(TYPE, ASKING, 'No pod was asked yet what it lists.') };
}

function current({ count }: Hashes): Fact {
  return holds(TYPE, SNAPSHOT_CURRENT, `The server lists what its snapshot has: ${count} functions.`);
}

function changed({ tool, namespace }: SnapshotInput, { hash }: Pending): Fact {
  const what =
    'The server lists something else than its snapshot; functions that changed are refused. See status.pending.difference.';
  return stalls(TYPE, LISTING_CHANGED, `${what} ${howToApprove(namespace, tool, hash)}`);
}
