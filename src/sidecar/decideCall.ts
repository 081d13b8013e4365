/** Whether a call may start at the tool now: the whole decision, pure. */

export interface CallState {
  /** The drain's short first part, in which gateways learn of it, is over. */
  readonly refusing: boolean;
  /** The call's grant ran out. */
  readonly expired: boolean;
  readonly process: 'ready' | 'starting' | 'down';
  /** A call that was given up did not end: the process is stopped once the others have. */
  readonly condemned: boolean;
  /** The definition that was decided on is not the one that is listed now. */
  readonly otherDefinition: boolean;
  /** Calls that the process works on. */
  readonly running: number;
  readonly concurrency: number;
}

export type CallRefusal =
  | 'draining'
  | 'down'
  | 'not-ready'
  | 'busy'
  | 'definition-changed'
  | 'grant-expired'
  | 'fenced'
  /** It could not be written down. */
  | 'journal';

export function decideCall(
  state: CallState,
): { readonly kind: 'start' } | { readonly kind: 'refuse'; readonly reason: CallRefusal } {
  if (state.expired) return { kind: 'refuse', reason: 'grant-expired' };
  if (state.refusing) return { kind: 'refuse', reason: 'draining' };
  if (state.process === 'down') return { kind: 'refuse', reason: 'down' };
  if (state.process === 'starting' || state.condemned) return { kind: 'refuse', reason: 'not-ready' };
  if (state.otherDefinition) return { kind: 'refuse', reason: 'definition-changed' };
  if (state.running >= state.concurrency) return { kind: 'refuse', reason: 'busy' };
  return { kind: 'start' };
}
