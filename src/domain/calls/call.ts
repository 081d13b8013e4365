/**
 * A call that is on record, as the decisions about it need it, and what may become known of one attempt of it. Values only;
 * where they are kept and how they are learned is the gateway's affair.
 */

export type Phase = 'Waiting' | 'Sending' | 'Succeeded' | 'Failed' | 'Refused' | 'Stopped' | 'Unknown' | 'Expired';

/** Who may make the attempt, and until when it may start. */
export interface Claim {
  /** Uid of the gateway's pod. */
  readonly holder: string;
  /** Its mark on this write, by which it knows its own. */
  readonly nonce: string;
  /** Milliseconds since the epoch; nothing of the attempt starts at or after it. */
  readonly notAfterMs: number;
}

export interface Call {
  readonly phase: Phase;
  /** Why, as a word for programs. */
  readonly reason: string;
  /** Which function with which arguments: equal texts are the same call. */
  readonly what: string;
  /** Number of the last attempt that was claimed; 0 before the first. Never used twice, also where nothing was made. */
  readonly attempt: number;
  /** Of that attempt. */
  readonly claim?: Claim;
  /** Uid of the tool's pod that the attempt goes to, and to no other while the record says so. */
  readonly place?: string;
  /** A person's, on one that waits. */
  readonly decision?: 'approve' | 'deny';
  /** A person's, on an unknown outcome. */
  readonly answer?: 'happened' | 'runAgain' | 'stop';
  /** The last attempt was made on the answer `runAgain`. */
  readonly again: boolean;
  /** Failed, and known to have reached nobody: the same call may be tried again when its client delivers it again. */
  readonly notMade: boolean;
  /** Undecided, it expires then. */
  readonly expiresAtMs: number;
}

/** What is known of one attempt, for good. */
export type Learned =
  /** The tool answered: a result, or an error in its words. */
  | { readonly kind: 'result' | 'tool-error'; readonly reason: string }
  /** It reached nobody, and will not. */
  | { readonly kind: 'not-made'; readonly reason: string }
  /** What was decided does not hold any more; it was not made. */
  | { readonly kind: 'refused'; readonly reason: string }
  /** A person's stop ended it. */
  | { readonly kind: 'stopped'; readonly reason: string }
  /** Nobody can know whether it took effect. */
  | { readonly kind: 'unknown'; readonly reason: string };

/** What is to be written of a call that an attempt, a person or time brought on. */
export type Change = Pick<Call, 'phase' | 'reason' | 'again' | 'notMade'>;

/** So many claims and no more: one that is never made must end too. */
export const MOST_ATTEMPTS = 20;

/** What a call becomes by what was learned of its attempt. One that was not made goes back to where it was claimed from. */
export function changeBy(learned: Learned, call: Call): Change {
  const { reason } = learned;
  const plain = { reason, again: call.again, notMade: false };
  switch (learned.kind) {
    case 'result':
      return { ...plain, phase: 'Succeeded' };
    case 'tool-error':
      return { ...plain, phase: 'Failed' };
    case 'refused':
      // The outcome of the attempt before it stays what it was: unknown.
      return call.again ? { ...plain, phase: 'Unknown' } : { ...plain, phase: 'Refused' };
    case 'stopped':
      return { ...plain, phase: 'Stopped' };
    case 'unknown':
      return { ...plain, phase: 'Unknown' };
    case 'not-made': {
      if (call.again) return { phase: 'Unknown', reason, again: false, notMade: false };
      const open = call.decision === 'approve' && call.attempt < MOST_ATTEMPTS;
      return open ? { ...plain, phase: 'Waiting' } : { ...plain, phase: 'Failed', notMade: true };
    }
  }
}

/** The call with a change written on it. */
export function changed(call: Call, change: Change): Call {
  return { ...call, ...change };
}

/** The call as claimed for its next attempt, which goes to `place`; undefined: it is known already that it will not be sent. */
export function claimed(call: Call, claim: Claim, place: string | undefined): Call {
  return {
    ...call,
    ...(place === undefined ? {} : { place }),
    phase: 'Sending',
    reason: 'claimed',
    attempt: call.attempt + 1,
    claim,
    again: call.phase === 'Unknown' || call.again,
    notMade: false,
  };
}
