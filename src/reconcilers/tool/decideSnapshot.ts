/**
 * What becomes of a Tool's snapshot: the record of what was approved, against what its pods list now. Nothing here is remembered but in
 * status, so that a restart, a new leader or both at once learn nothing anew [case 52].
 *
 * The record comes first and the rollout follows it: a version is rolled out once status names it as the one that was accepted. Before,
 * the former workload is left as it is, and one pod of the new version is asked what it lists.
 */
import type { Fact } from '../../engine/contract.ts';
import { fails, holds, pending, stalls } from '../facts.ts';
import { howToApprove } from './howToApprove.ts';
import {
  ASKING,
  LISTING_CHANGED,
  NEW_VERSION_FAILS,
  NEW_VERSION_WAITS,
  NO_SNAPSHOT_YET,
  NOTHING_LISTED,
  PROBING,
  SNAPSHOT_CURRENT,
} from './reasons.ts';
import type { Hashes, Pending, Replaced, Snapshot } from './snapshot.ts';

export interface SnapshotInput {
  readonly namespace: string;
  readonly tool: string;
  /** As status has them. */
  readonly snapshot: Snapshot | undefined;
  readonly pending: Pending | undefined;
  readonly replaced: Replaced | undefined;
  /** What is written now. */
  readonly runs: string;
  /** What a ready pod of what is written now lists. `empty`: nothing; undefined: none was asked, or none answered. */
  readonly listed: Hashes | 'empty' | undefined;
  readonly probed: Probed;
  /** Pods serve that are not of the template which is rolled out. */
  readonly formerRun: boolean;
  /** A workload is there, of whatever version. */
  readonly serves: boolean;
  /** Name of the SnapshotApproval of this hash. */
  readonly approvalOf: (hash: string) => string | undefined;
  /** Policy lets new versions in that list something else. */
  readonly acceptsNew: boolean;
  /** What is new about a listing, for people. */
  readonly differenceOf: (from: Snapshot, to: Hashes, told: string | undefined) => string;
}

/** What became of the pod of a new version. */
export type Probed =
  | { readonly state: 'none' }
  | { readonly state: 'failing'; readonly message: string }
  /** `settled`: all that it can tell of itself is kept. */
  | { readonly state: 'listed'; readonly hashes: Hashes; readonly settled: boolean };

export interface SnapshotDecision {
  /** Which version the workload is to have: what is written now, or whatever it has. */
  readonly serve: 'written' | 'former';
  /** Whether a pod of the new version is wanted beside it. */
  readonly probe: boolean;
  readonly record: {
    readonly snapshot?: Snapshot;
    readonly pending?: Pending;
    readonly replaced?: Replaced;
  };
  readonly fact: Fact;
}

const TYPE = 'SnapshotCurrent';

export function decideSnapshot(input: SnapshotInput): SnapshotDecision {
  const { snapshot } = input;
  if (snapshot === undefined) return firstVersion(input);
  return snapshot.runs === input.runs ? sameVersion(input, snapshot) : newVersion(input, snapshot);
}

/** Straight in: there is nothing yet that it could differ from. */
function firstVersion({ listed, runs }: SnapshotInput): SnapshotDecision {
  if (listed === undefined || listed === 'empty') {
    const fact = pending(TYPE, NO_SNAPSHOT_YET, 'The first listing becomes the snapshot.');
    return { serve: 'written', probe: false, record: {}, fact };
  }
  const snapshot = { ...listed, from: 'FirstListing', runs };
  return { serve: 'written', probe: false, record: { snapshot }, fact: current(listed) };
}

/** The version that was accepted: what it lists now is the snapshot, or waits. */
function sameVersion(input: SnapshotInput, snapshot: Snapshot): SnapshotDecision {
  const { listed, runs } = input;
  const replaced = input.formerRun && input.replaced ? { replaced: input.replaced } : {};
  const decided = (record: SnapshotDecision['record'], fact: Fact): SnapshotDecision => ({
    serve: 'written',
    probe: false,
    record: { ...record, ...replaced },
    fact,
  });
  const waiting = input.pending?.runs === runs ? input.pending : undefined;
  if (listed === undefined) {
    // What was found out last of this version stands.
    if (waiting) return decided({ snapshot, pending: waiting }, listingChanged(input, waiting));
    return decided({ snapshot }, pending(TYPE, ASKING, 'No pod was asked yet what it lists.'));
  }
  if (listed === 'empty') {
    const message = 'The server lists no function, and its snapshot some.';
    return decided({ snapshot }, pending(TYPE, NOTHING_LISTED, message));
  }
  if (listed.hash === snapshot.hash) return decided({ snapshot }, current(listed));
  const approval = input.approvalOf(listed.hash);
  if (approval !== undefined) {
    return decided({ snapshot: { ...listed, from: 'Approval', approval, runs } }, current(listed));
  }
  const told = tell(input, snapshot, listed, waiting);
  return decided({ snapshot, pending: told }, listingChanged(input, told));
}

function newVersion(input: SnapshotInput, snapshot: Snapshot): SnapshotDecision {
  const { probed, replaced } = input;
  const waiting = input.pending?.runs === input.runs ? input.pending : undefined;
  const decided = (probe: boolean, record: SnapshotDecision['record'], fact: Fact): SnapshotDecision => ({
    serve: 'former',
    probe,
    record: { snapshot, ...(replaced && input.formerRun ? { replaced } : {}), ...record },
    fact,
  });
  if (probed.state === 'listed') {
    const accepted = accept(input, snapshot, probed.hashes);
    // The pod stays until this is written down; the next look rolls out what it says.
    if (accepted) return decided(true, accepted, pending(TYPE, PROBING, 'The new version is accepted.'));
    const told = tell(input, snapshot, probed.hashes, waiting);
    const written = waiting?.hash === told.hash && waiting.difference === told.difference;
    return decided(!(written && probed.settled), { pending: told }, newVersionWaits(input, told));
  }
  // What waits needs no pod; what has since been approved is asked once more, and is rolled out only if it still lists that.
  if (waiting && !basisOf(input, snapshot, waiting.hash)) {
    return decided(false, { pending: waiting }, newVersionWaits(input, waiting));
  }
  return decided(true, waiting ? { pending: waiting } : {}, probing(input));
}

type Basis = Pick<Snapshot, 'from' | 'approval'>;

/** Why a listing of a new version may replace the snapshot; undefined: nobody said so. */
function basisOf(input: SnapshotInput, snapshot: Snapshot, hash: string): Basis | undefined {
  if (hash === snapshot.hash) {
    const { from, approval } = snapshot;
    return { from, ...(approval === undefined ? {} : { approval }) };
  }
  const approval = input.approvalOf(hash);
  if (approval !== undefined) return { from: 'Approval', approval };
  // Back to what still serves while its successor is rolled out: nobody has to ask for that.
  const back = input.formerRun && hash === input.replaced?.hash;
  return input.acceptsNew || back ? { from: 'NewVersion' } : undefined;
}

function accept(input: SnapshotInput, snapshot: Snapshot, hashes: Hashes): SnapshotDecision['record'] | undefined {
  const basis = basisOf(input, snapshot, hashes.hash);
  if (!basis) return undefined;
  const { hash, functions } = snapshot;
  return {
    snapshot: { ...hashes, ...basis, runs: input.runs },
    ...(hashes.hash !== hash && input.serves ? { replaced: { hash, functions } } : {}),
  };
}

function tell(input: SnapshotInput, from: Snapshot, to: Hashes, waiting: Pending | undefined): Pending {
  const { hash, count } = to;
  const told = waiting?.hash === hash ? waiting.difference : undefined;
  return { runs: input.runs, hash, count, difference: input.differenceOf(from, to, told) };
}

function current({ count }: Hashes): Fact {
  const functions = count === 1 ? 'its one function is' : `its ${count} functions are`;
  return holds(TYPE, SNAPSHOT_CURRENT, `The server lists its snapshot: ${functions} as approved.`);
}

function listingChanged({ tool, namespace }: SnapshotInput, { hash }: Pending): Fact {
  const what =
    'The server lists something else than its snapshot; functions that changed are refused. See status.pending.difference.';
  return stalls(TYPE, LISTING_CHANGED, `${what} ${howToApprove(namespace, tool, hash)}`);
}

function newVersionWaits(input: SnapshotInput, { hash }: Pending): Fact {
  const what = `The new version lists something else than the snapshot and waits. ${goesOn(input)} See status.pending.difference.`;
  return stalls(TYPE, NEW_VERSION_WAITS, `${what} ${howToApprove(input.namespace, input.tool, hash)}`);
}

function probing(input: SnapshotInput): Fact {
  if (input.probed.state === 'failing') {
    const message = `The new version does not come up. ${goesOn(input)} ${input.probed.message}`;
    return fails(TYPE, NEW_VERSION_FAILS, message);
  }
  return pending(TYPE, PROBING, `A pod of the new version is asked what it lists. ${goesOn(input)}`);
}

function goesOn({ serves }: SnapshotInput): string {
  return serves ? 'The former version goes on.' : 'No pod serves meanwhile.';
}
