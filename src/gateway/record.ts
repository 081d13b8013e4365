/** What is written down of each call: one record after the decision and its end. No argument, token or session id. */

export type CallOutcome = 'ok' | 'tool-error' | 'error' | 'refused' | 'not-started' | 'unknown' | 'cancelled';

export interface CallRecord {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly pod: string | undefined;
  /** Unset where the name means nothing to the caller: it is then the caller's own text, and not written. */
  readonly tool: string | undefined;
  readonly function: string | undefined;
  readonly outcome: CallOutcome;
  /** A word of a closed set; `none` for a plain answer. */
  readonly reason: string;
  /** Of the connection or the sidecar, in their words, where there was no answer. */
  readonly problem?: string;
  readonly toolPod: string | undefined;
  readonly dials: number;
  readonly durationMs: number;
}

export interface Recorder {
  readonly called: (record: CallRecord) => void;
}
