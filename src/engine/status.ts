/** From facts to a status as the API server stores it: conditions with times and generations, Ready computed, texts trimmed. */
import { oneLine } from './api-error.ts';
import { canonical } from './canonical.ts';
import type { ConditionStatus, Fact, Facts } from './contract.ts';

export interface Condition {
  readonly type: string;
  readonly status: ConditionStatus;
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}

export type Status = Readonly<Record<string, unknown>> & { readonly conditions: readonly Condition[] };

/** What kept the engine from making it so: shown in Ready, since no condition of the reconciler knows of it. */
export interface Trouble {
  readonly reason: string;
  readonly message: string;
  /** Only a change by a person can mend it. */
  readonly stalled: boolean;
}

/** All conditions hold. */
export const REASON_READY = 'Ready';
/** The reconciler said nothing of a condition that it declares: a defect of the operator. */
export const REASON_NOT_REPORTED = 'NotReported';
/** The object as stored cannot be read; the message says where. Correct it. */
export const REASON_UNREADABLE = 'Unreadable';
/** The reconciler failed: a defect of the operator; its log has more. */
export const REASON_INTERNAL_ERROR = 'InternalError';
/** A child of this object must not be written; the message says which and why, such as a name that somebody else uses. */
export const REASON_CHILD_REFUSED = 'ChildRefused';
/** The API server refused a child as invalid or forbidden; the message is its own. */
export const REASON_APPLY_FAILED = 'ApplyFailed';
/** The API server could not be reached or is busy; it is tried again. */
export const REASON_API_UNAVAILABLE = 'ApiUnavailable';
/** A child is being deleted and is made again once it is gone. */
export const REASON_CHILD_LEAVING = 'ChildLeaving';

const LONGEST_MESSAGE = 1024;

export interface StatusInput {
  /** The status as stored; whatever it is. */
  readonly before: unknown;
  readonly facts: Facts;
  /** Condition types of the reconciler, in the order in which they are shown. */
  readonly declared: readonly string[];
  /** Condition types that are shown while they are true, and count for nothing. */
  readonly marks?: readonly string[];
  readonly trouble: Trouble | undefined;
  readonly generation: number;
  /** Milliseconds since 1970. */
  readonly nowMs: number;
}

/** The whole new status. A condition's time is taken from `before` unless its status changed, as Kubernetes defines it. */
export function composeStatus(input: StatusInput): Status {
  const known = new Map(readConditions(input.before).map((condition) => [condition['type'], condition]));
  const facts = input.declared.map((type) => factOf(type, input.facts));
  const marks = input.facts.conditions.filter(({ type, status }) => status === 'True' && input.marks?.includes(type));
  const ready = readyOf(facts, input.trouble, marks[0]);
  const stalled = input.trouble?.stalled ? input.trouble : facts.find((fact) => fact.stalled);
  const all: Fact[] = [ready, ...facts];
  if (stalled) all.push(whileTrue('Stalled', stalled));
  else if (ready.status === 'Unknown') all.push(whileTrue('Reconciling', ready));
  all.push(...marks);
  const conditions = all.map((fact) => stamp(fact, known.get(fact.type), input));
  return { ...input.facts.status, observedGeneration: input.generation, conditions };
}

/**
 * Changes worth an event: Ready and Stalled in either way, another condition that became False for a reason that Ready
 * does not tell already. Progress is no event.
 */
export function transitions(before: unknown, after: Status): readonly Condition[] {
  const known = new Map(readConditions(before).map((condition) => [condition['type'], condition['status']]));
  const ready = after.conditions.find((condition) => condition.type === 'Ready');
  return after.conditions.filter((condition) => {
    const { type, status, reason } = condition;
    if ((known.get(type) ?? 'Unknown') === status) return false;
    return type === 'Ready' || type === 'Stalled' || (status === 'False' && reason !== ready?.reason);
  });
}

/** Whether the stored status says all that the new one says, and no condition besides. */
export function isSameStatus(stored: unknown, next: Status): boolean {
  if (typeof stored !== 'object' || stored === null) return false;
  const held = stored as Record<string, unknown>;
  return canonical({ ...held, conditions: readConditions(stored) }) === canonical(next);
}

function factOf(type: string, facts: Facts): Fact {
  return (
    facts.conditions.find((fact) => fact.type === type) ?? {
      type,
      status: 'Unknown',
      reason: REASON_NOT_REPORTED,
      message: 'Nothing was said of this.',
    }
  );
}

/** @param mark says more of what is well than that it is */
function readyOf(facts: readonly Fact[], trouble: Trouble | undefined, mark: Fact | undefined): Fact {
  const worst = facts.find((fact) => fact.status === 'False') ?? facts.find((fact) => fact.status === 'Unknown');
  if (worst?.status === 'False') return { ...worst, type: 'Ready' };
  if (trouble) {
    const { reason, message, stalled } = trouble;
    return { type: 'Ready', status: stalled ? 'False' : 'Unknown', reason, message };
  }
  if (worst) return { ...worst, type: 'Ready' };
  const { reason, message } = mark ?? { reason: REASON_READY, message: '' };
  return { type: 'Ready', status: 'True', reason, message };
}

function whileTrue(type: string, because: { readonly reason: string; readonly message: string }): Fact {
  return { type, status: 'True', reason: because.reason, message: because.message };
}

function stamp(fact: Fact, before: Record<string, unknown> | undefined, input: StatusInput): Condition {
  const { type, status, reason } = fact;
  const same = before?.['status'] === status;
  const time = before?.['lastTransitionTime'];
  return {
    type,
    status,
    reason,
    message: oneLine(fact.message, LONGEST_MESSAGE),
    observedGeneration: input.generation,
    lastTransitionTime: same && typeof time === 'string' ? time : timestamp(input.nowMs),
  };
}

/** As Kubernetes writes times: whole seconds, UTC. */
export function timestamp(wallMs: number): string {
  return new Date(wallMs).toISOString().replace(/\.\d{3}Z$/, 'Z');
}

function readConditions(status: unknown): readonly Record<string, unknown>[] {
  if (typeof status !== 'object' || status === null) return [];
  const { conditions } = status as { readonly conditions?: unknown };
  if (!Array.isArray(conditions)) return [];
  return conditions.filter((condition) => typeof condition === 'object' && condition !== null);
}
