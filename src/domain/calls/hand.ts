/**
 * What one process knows of a call while it deals with it, and how each thing that happens changes that. A hand makes at
 * most one attempt. Nothing in it outlives the process: whoever comes after starts from the record.
 */
import type { Call, Learned } from './call.ts';

export interface Hand {
  /** `deliver`: an agent waits for the answer; `upkeep`: nobody does. */
  readonly purpose: 'deliver' | 'upkeep';
  /** What a delivery of a call that is not on record yet is to become: sent at once, or asked of a person. */
  readonly plan?: 'send' | 'ask';
  /** As `Call.what`, of the delivery. */
  readonly what?: string;
  /** The mark on this hand's writes. */
  readonly nonce: string;
  /** As last read or written. */
  readonly call?: Call;
  /** A write of ours may have happened, or another's did: nothing is done before the record was read. */
  readonly unsure: boolean;
  /** How far our own attempt is: not ours, claimed, found to be allowed still, given to the network. */
  readonly stage: 'none' | 'claimed' | 'judged' | 'sent';
  /** Of the attempt that the record is about, once known for good. */
  readonly learned?: Learned;
  /** What the journal last said of it, where that is not for good. */
  readonly seen?: 'running' | 'unseen' | 'silent';
  /** The answer of an ended call was asked for: it is here, or it is lost. */
  readonly fetched: boolean;
  /** It was on record, and is not any more. */
  readonly gone?: boolean;
  /** Reads and writes of the record that failed since something else was done. */
  readonly failures: number;
}

type Write = 'create' | 'claim' | 'place' | 'record';

/** What came of a move. Each is the answer to one; `lost` says that nobody knows whether it happened. */
export type Event =
  | { readonly of: Write; readonly came: 'written'; readonly call: Call }
  /** Another write came first: the name is taken, or the version is not the one that was read. */
  | { readonly of: Write; readonly came: 'conflict' }
  | { readonly of: Write; readonly came: 'lost' }
  | { readonly of: 'read'; readonly came: 'read'; readonly call: Call }
  | { readonly of: 'read'; readonly came: 'absent' }
  | { readonly of: 'read'; readonly came: 'failed' }
  /** What was decided holds still, or does not. */
  | { readonly of: 'judge'; readonly came: 'holds' }
  | { readonly of: 'judge'; readonly came: 'learned'; readonly learned: Learned }
  | { readonly of: 'send'; readonly came: 'learned'; readonly learned: Learned }
  /** The request may have left, and no readable answer came. The journal may know. */
  | { readonly of: 'send'; readonly came: 'lost' }
  | { readonly of: 'ask'; readonly came: 'learned'; readonly learned: Learned }
  | { readonly of: 'ask'; readonly came: 'running' | 'unseen' | 'silent' }
  | { readonly of: 'fetch'; readonly came: 'done' }
  | { readonly of: 'pause'; readonly came: 'done' };

export function newDelivery(nonce: string, plan: 'send' | 'ask', what: string): Hand {
  return { purpose: 'deliver', plan, what, nonce, unsure: false, stage: 'none', fetched: false, failures: 0 };
}

export function newUpkeep(nonce: string, call: Call): Hand {
  return { purpose: 'upkeep', nonce, call, unsure: false, stage: 'none', fetched: false, failures: 0 };
}

export function learn(hand: Hand, event: Event): Hand {
  switch (event.came) {
    case 'written':
      return written(hand, event.of, event.call);
    case 'conflict':
      return { ...hand, unsure: true };
    case 'lost':
      if (event.of === 'send') return { ...hand, stage: 'sent' };
      return { ...hand, unsure: true, failures: hand.failures + 1 };
    case 'read':
      return read(hand, event.call);
    case 'absent':
      return absent(hand);
    case 'failed':
      return { ...hand, failures: hand.failures + 1 };
    case 'holds':
      return { ...hand, stage: 'judged', failures: 0 };
    case 'learned':
      return { ...hand, learned: event.learned, failures: 0, ...(event.of === 'send' ? { stage: 'sent' } : {}) };
    case 'running':
    case 'unseen':
    case 'silent':
      return { ...hand, seen: event.came };
    case 'done':
      return event.of === 'fetch' ? { ...hand, fetched: true } : paused(hand);
  }
}

function written(hand: Hand, of: Write, call: Call): Hand {
  const known = { ...hand, call, unsure: false, failures: 0 };
  if (of === 'record') return known;
  if (of === 'place') {
    const { learned: _learned, seen: _seen, ...rest } = known;
    return { ...rest, stage: 'judged' };
  }
  // A decision was made just before the create; a claim is of one that was made long ago.
  if (of === 'create') return { ...known, stage: call.phase === 'Sending' ? 'judged' : 'none' };
  return { ...known, stage: 'claimed' };
}

function read(hand: Hand, call: Call): Hand {
  // That it can be read says nothing of writes: they are still failing.
  const known = { ...hand, call, unsure: false };
  const ours = call.claim?.nonce === hand.nonce;
  if (ours && call.phase === 'Sending') return hand.stage === 'none' ? { ...known, stage: 'claimed' } : known;
  const { learned, seen: _seen, ...rest } = known;
  // What was learned is of another attempt than the record is about now, or somebody wrote it down before us.
  const answered = learned?.kind === 'result' || learned?.kind === 'tool-error';
  return { ...rest, stage: 'none', fetched: ours && answered };
}

function paused(hand: Hand): Hand {
  const { seen: _seen, ...rest } = hand;
  return { ...rest, unsure: true };
}

function absent(hand: Hand): Hand {
  const { call, learned: _learned, seen: _seen, ...rest } = hand;
  // It was there and somebody deleted it: what it was the memory of is not begun anew.
  return { ...rest, unsure: false, gone: call !== undefined || hand.stage !== 'none' };
}
