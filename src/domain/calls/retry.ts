/** Which calls may be made again by themselves, and when. Pure. */
import type { FunctionKind } from '../config/sidecar.ts';

export interface RetryTerms {
  /** From the annotations, overrides included. */
  readonly kind: FunctionKind;
  /** Its server says that calling twice does what calling once does. */
  readonly idempotent: boolean;
  /** Its server keeps the call's idempotency key: said in the approved listing, or on the Tool. */
  readonly honoursKey: boolean;
  /** The listing that says so was approved. A remote server's word counts for nothing before. */
  readonly approved: boolean;
}

/** Whether a second call cannot do more than the first. */
export function retrySafe({ kind, idempotent, honoursKey, approved }: RetryTerms): boolean {
  return approved && (kind === 'ReadOnly' || (idempotent && honoursKey));
}

/** The first attempt and up to three more. */
export const RETRY_SAFE_ATTEMPTS = 4;
const PAUSE_FIRST_MS = 100;

export interface Ended {
  /** Attempts that were made, this one included; from 1. */
  readonly attempts: number;
  /**
   * `answered`: the tool said something, if only that it failed. `lost`: no readable answer came. `other`: nothing was made,
   * or somebody ended it.
   */
  readonly how: 'answered' | 'lost' | 'other';
  /** Milliseconds until the caller's time is over. */
  readonly leftMs: number;
}

export type NextAttempt = { readonly do: 'end' } | { readonly do: 'again'; readonly afterMs: number };

/** What follows an attempt of a call. An answer is an answer: only what was lost is made again, and only where that is safe. */
export function nextAttempt(safe: boolean, { attempts, how, leftMs }: Ended): NextAttempt {
  if (!safe || how !== 'lost' || attempts >= RETRY_SAFE_ATTEMPTS) return { do: 'end' };
  const afterMs = PAUSE_FIRST_MS * 2 ** (attempts - 1);
  return afterMs >= leftMs ? { do: 'end' } : { do: 'again', afterMs };
}
