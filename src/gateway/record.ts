/** What is written down of each call: one record after the decision and its end. No argument, token or session id. */

import type { FunctionKind } from '../domain/config/sidecar.ts';
import type { Usage } from './overrides/override.ts';

export type CallOutcome =
  | 'ok'
  | 'tool-error'
  | 'error'
  | 'refused'
  | 'not-started'
  | 'unknown'
  | 'cancelled'
  /** A person has to decide first. */
  | 'waiting'
  /** Delivered again while it runs. */
  | 'running'
  /** Ended by a Stop. */
  | 'stopped';

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
  /** The Agent by whose grant it was called, and what was decided about: unset for what was refused before. */
  readonly agent?: string;
  readonly kind?: FunctionKind;
  /** It reached out of the owner's systems, so what came back is text from outside. */
  readonly outbound?: boolean;
  /** What the job carried along, with commas between; unset for nothing. */
  readonly labels?: string;
  /** The agent's own name for the job. */
  readonly job?: string;
  /** The rule, or the Stop, that refused. */
  readonly by?: string;
  /** What a successful call spent. */
  readonly usage?: Usage;
  readonly toolPod: string | undefined;
  readonly dials: number;
  readonly durationMs: number;
}

export interface Recorder {
  readonly called: (record: CallRecord) => void;
}
