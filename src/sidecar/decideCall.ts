/** Whether a call may start in the tool's process now: the whole decision, pure. */

export interface CallState {
  /** The drain's short first part, in which gateways learn of it, is over. */
  readonly refusing: boolean;
  readonly process: 'ready' | 'starting' | 'down';
  /** A call that was given up did not end: the process is stopped once the others have. */
  readonly condemned: boolean;
  /** Calls that the process works on. */
  readonly running: number;
  readonly concurrency: number;
}

export type CallRefusal = 'draining' | 'down' | 'not-ready' | 'busy';

export function decideCall(
  state: CallState,
): { readonly kind: 'start' } | { readonly kind: 'refuse'; readonly reason: CallRefusal } {
  if (state.refusing) return { kind: 'refuse', reason: 'draining' };
  if (state.process === 'down') return { kind: 'refuse', reason: 'down' };
  if (state.process === 'starting' || state.condemned) return { kind: 'refuse', reason: 'not-ready' };
  if (state.running >= state.concurrency) return { kind: 'refuse', reason: 'busy' };
  return { kind: 'start' };
}
