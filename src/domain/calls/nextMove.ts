/**
 * What a gateway does next for a call. One table, read from the top: the first rule that applies says the move. The same
 * table serves a delivery of the agent and the upkeep that takes up what a dead gateway left, since both start from what is
 * on record. The record is changed only by writes that name the version they change.
 *
 * What holds, whatever is killed, lost, paused or delivered twice, at any step (`model.test.ts` explores it):
 *
 * 1. A call that is not retry-safe takes effect at most once, and at most once more for an answer `runAgain`.
 * 2. Nothing is sent before the record says that it is being sent; nothing starts at or after its grant's end.
 * 3. An outcome on record never changes, but for an unknown one by a person's answer; one that was not made may be claimed
 *    again, under the next number.
 * 4. A result or an error is told only after it is on record.
 * 5. An unknown outcome is never followed by another attempt, but on a person's word.
 * 6. What is on record as not made did not take effect and never will; what is on record as done did.
 * 7. What a person denied, or what changed before it was claimed, is never sent.
 * 8. Every call can still end, from every state; every delivery is told once.
 */
import { type Call, type Change, changeBy, MOST_ATTEMPTS } from './call.ts';
import type { Hand } from './hand.ts';

/** What else a move depends on. None of it is needed for safety: the worst it does is to make a call wait, or not be made. */
export interface Situation {
  readonly nowMs: number;
  /** Uid of this gateway's pod. */
  readonly self: string;
  /** Another hand of this process makes the attempt with this mark. */
  readonly inFlight: (nonce: string) => boolean;
  /** Whether the holder of a claim may still send, as far as one can see. */
  readonly mayAct: (holder: string) => boolean;
  /** Whether this gateway may claim: it has the arguments and a pod to send to, and it is its turn. */
  readonly canClaim: boolean;
  /** Whether there is another pod that may take what this one refused, and time to ask it. */
  readonly elsewhere: boolean;
  /** Whether the record could not be read or written for too long. */
  readonly giveUp: boolean;
  /** Whether a delivery may wait on for what runs. */
  readonly patient: boolean;
}

export type Told =
  /** A person has to decide. */
  | 'waiting'
  /** It is being made, or about to be; nothing is known yet. */
  | 'running'
  /** As the record says. */
  | 'ended'
  /** Whether it took effect is not known, and perhaps not on record yet. */
  | 'unknown'
  /** This hand's attempt reached nobody; that may not be on record yet. */
  | 'not-made'
  /** The record cannot be read or written now; this delivery made nothing. */
  | 'no-record'
  /** The same id was used for another call. */
  | 'another-call';

export type Move =
  | { readonly do: 'create' | 'read' | 'judge' | 'send' | 'fetch' | 'pause' }
  /** Writes that an attempt is ours to make, or that it goes to another pod. */
  | { readonly do: 'claim' | 'place' }
  /** Asks the journal of the tool's pod. `fence`: what it never saw must never start. */
  | { readonly do: 'ask'; readonly fence: boolean }
  | { readonly do: 'record'; readonly change: Change }
  /** The end of a delivery. */
  | { readonly do: 'tell'; readonly told: Told }
  /** The end of an upkeep: there is nothing for it to do now. */
  | { readonly do: 'rest' };

export interface Rule {
  readonly name: string;
  readonly when: (hand: Hand, situation: Situation, call: Call | undefined) => boolean;
  readonly move: (hand: Hand, situation: Situation, call: Call) => Move;
}

const unknown: Move = { do: 'tell', told: 'unknown' };
const read: Move = { do: 'read' };

const RECORD_FAILS: readonly Rule[] = [
  {
    name: 'the record fails; our attempt reached nobody',
    when: (hand, { giveUp }) => giveUp && hand.learned?.kind === 'not-made' && hand.stage !== 'none',
    move: (hand) => end(hand, 'not-made'),
  },
  {
    name: 'the record fails; our attempt may have been sent',
    when: (hand, { giveUp }) => giveUp && hand.stage === 'sent',
    move: (hand) => end(hand, 'unknown'),
  },
  {
    name: 'the record fails',
    when: (_hand, { giveUp }) => giveUp,
    move: (hand) => end(hand, 'no-record'),
  },
  { name: 'the record was deleted', when: (hand) => hand.gone === true, move: (hand) => end(hand, 'unknown') },
  { name: 'not sure what is on record', when: (hand) => hand.unsure, move: () => read },
];

const NOT_ON_RECORD: readonly Rule[] = [
  {
    name: 'new',
    when: (hand, _, call) => call === undefined && hand.purpose === 'deliver',
    move: () => ({ do: 'create' }),
  },
  { name: 'nothing to keep up', when: (_hand, _, call) => call === undefined, move: () => ({ do: 'rest' }) },
  {
    name: 'the same id, another call',
    when: (hand, _, call) => hand.what !== undefined && hand.what !== call?.what,
    move: (hand) => end(hand, 'another-call'),
  },
];

const WAITING: readonly Rule[] = [
  {
    name: 'denied',
    when: (_hand, _, call) => call?.phase === 'Waiting' && call.decision === 'deny',
    move: (_hand, _, call) => record(call, 'Refused', 'denied'),
  },
  {
    name: 'expired',
    when: (_hand, { nowMs }, call) => call?.phase === 'Waiting' && nowMs >= call.expiresAtMs,
    move: (_hand, _, call) => record(call, 'Expired', 'expired'),
  },
  {
    name: 'approved, and ours to make',
    when: (hand, situation, call) =>
      call?.phase === 'Waiting' && call.decision === 'approve' && mayClaim(hand, situation, call),
    move: () => ({ do: 'claim' }),
  },
  {
    name: 'waits',
    when: (_hand, _, call) => call?.phase === 'Waiting',
    move: (hand) => end(hand, 'waiting'),
  },
];

const OURS: readonly Rule[] = [
  {
    name: 'its pod did not take it, another may',
    when: (hand, { elsewhere, nowMs }, call) =>
      isOurs(hand, call) &&
      hand.stage === 'sent' &&
      hand.learned?.kind === 'not-made' &&
      elsewhere &&
      nowMs < (call?.claim?.notAfterMs ?? 0),
    move: () => ({ do: 'place' }),
  },
  {
    name: 'known: write it down',
    when: (hand, _, call) => call?.phase === 'Sending' && hand.learned !== undefined,
    move: (hand, _, call) => ({
      do: 'record',
      change: hand.learned === undefined ? call : changeBy(hand.learned, call),
    }),
  },
  {
    name: 'our grant ran out before we sent',
    when: (hand, { nowMs }, call) => isUnsent(hand, call) && nowMs >= (call?.claim?.notAfterMs ?? 0),
    move: (_hand, _, call) => ({ do: 'record', change: changeBy({ kind: 'not-made', reason: 'grant-expired' }, call) }),
  },
  {
    name: 'claimed: does it hold still',
    when: (hand, _, call) => isUnsent(hand, call) && hand.stage === 'claimed',
    move: () => ({ do: 'judge' }),
  },
  {
    name: 'judged',
    when: (hand, _, call) => isUnsent(hand, call) && hand.stage === 'judged',
    move: () => ({ do: 'send' }),
  },
];

const SENDING: readonly Rule[] = [
  {
    name: 'another hand of ours makes it',
    when: ({ nonce }, { inFlight }, call) =>
      call?.phase === 'Sending' && call.claim?.nonce !== nonce && inFlight(call.claim?.nonce ?? ''),
    move: (hand, { patient }) => wait(hand, patient),
  },
  {
    name: 'it runs, or nobody can say yet',
    when: (hand, _, call) => call?.phase === 'Sending' && hand.seen !== undefined,
    move: (hand, { patient }) => wait(hand, patient),
  },
  {
    name: 'nobody knows: ask the pod; what it never saw is fenced where the holder may not send any more',
    when: (_hand, _, call) => call?.phase === 'Sending',
    move: (hand, situation, call) => ({ do: 'ask', fence: hand.stage === 'sent' || isOrphan(situation, call) }),
  },
];

const ENDED: readonly Rule[] = [
  {
    name: 'unknown; a person says that it happened',
    when: (_hand, _, call) => call?.phase === 'Unknown' && call.answer === 'happened',
    move: (_hand, _, call) => record(call, 'Succeeded', 'said-by-a-person'),
  },
  {
    name: 'unknown; a person says to leave it',
    when: (_hand, _, call) => call?.phase === 'Unknown' && call.answer === 'stop',
    move: (_hand, _, call) => record(call, 'Stopped', 'left-by-a-person'),
  },
  {
    name: 'unknown; a person says to run it again, and ours to make',
    when: (hand, situation, call) =>
      call?.phase === 'Unknown' && call.answer === 'runAgain' && !call.again && mayClaim(hand, situation, call),
    move: () => ({ do: 'claim' }),
  },
  {
    name: 'not made; delivered again',
    when: (hand, situation, call) =>
      call?.notMade === true && hand.purpose === 'deliver' && mayClaim(hand, situation, call),
    move: () => ({ do: 'claim' }),
  },
  {
    name: 'answered; the answer may be in the journal',
    when: (hand, _, call) =>
      hand.purpose === 'deliver' &&
      hand.learned === undefined &&
      !hand.fetched &&
      call?.notMade === false &&
      (call.phase === 'Succeeded' || call.phase === 'Failed'),
    move: () => ({ do: 'fetch' }),
  },
  { name: 'ended', when: () => true, move: (hand) => end(hand, 'ended') },
];

/** From the top: the first that applies. */
export const RULES: readonly Rule[] = [...RECORD_FAILS, ...NOT_ON_RECORD, ...WAITING, ...OURS, ...SENDING, ...ENDED];

export function nextRule(hand: Hand, situation: Situation): Rule {
  const rule = RULES.find(({ when }) => when(hand, situation, hand.call));
  // The last rule applies always.
  if (rule === undefined) throw new Error('no rule applies');
  return rule;
}

export function nextMove(hand: Hand, situation: Situation): Move {
  const { call } = hand;
  // Rules that apply without a record do not look at it.
  return nextRule(hand, situation).move(hand, situation, call ?? NONE);
}

const NONE: Call = {
  phase: 'Waiting',
  reason: '',
  what: '',
  attempt: 0,
  again: false,
  notMade: false,
  expiresAtMs: 0,
};

function end({ purpose }: Hand, told: Told): Move {
  return purpose === 'upkeep' ? { do: 'rest' } : told === 'unknown' ? unknown : { do: 'tell', told };
}

function wait(hand: Hand, patient: boolean): Move {
  if (hand.purpose === 'upkeep') return { do: 'rest' };
  if (patient) return { do: 'pause' };
  return { do: 'tell', told: hand.stage === 'sent' || hand.seen === 'silent' ? 'unknown' : 'running' };
}

function record(call: Call, phase: Call['phase'], reason: string): Move {
  return { do: 'record', change: { phase, reason, again: call.again, notMade: false } };
}

function isOurs({ nonce }: Hand, call: Call | undefined): boolean {
  return call?.phase === 'Sending' && call.claim?.nonce === nonce;
}

function isUnsent(hand: Hand, call: Call | undefined): boolean {
  return isOurs(hand, call) && (hand.stage === 'claimed' || hand.stage === 'judged');
}

/** A hand claims once, so that its mark means one attempt. */
function mayClaim({ stage, nonce }: Hand, { canClaim }: Situation, { attempt, claim }: Call): boolean {
  return canClaim && stage === 'none' && claim?.nonce !== nonce && attempt < MOST_ATTEMPTS;
}

/** Whether the attempt's holder cannot start it any more: it is gone, it forgot, or its grant ran out. */
function isOrphan({ nowMs, self, mayAct }: Situation, { claim }: Call): boolean {
  if (claim === undefined || claim.holder === self || nowMs >= claim.notAfterMs) return true;
  return !mayAct(claim.holder);
}
