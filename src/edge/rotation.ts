/**
 * How the operator's authority is replaced without a dropped call: the new one is made and published beside the old; when everybody who
 * has a certificate must have got the longer bundle with it, it signs; when what the old one signed has run out, the old one goes.
 * Each step is one write to one Secret, decided from it and the clock alone, so any replica may make it, and none may make it twice. Pure.
 */

/** `steady` → `made` (the bundle holds it) → `published` (and was seen to be published) → `used` (it signs) → `steady`. */
export type Phase = 'steady' | 'made' | 'published' | 'used';

export interface Rotation {
  readonly phase: Phase;
  /** Milliseconds since the epoch. */
  readonly sinceMs: number;
  /** The request that was met last: what the annotation said. */
  readonly request?: string;
}

export type Step = 'make' | 'publish' | 'use' | 'drop';

export interface RotationPlan {
  /** How long everybody has before a step that asks something of them. At least a certificate's life and what replicas may lag. */
  readonly stepMs: number;
  /** Age at which an authority is replaced; undefined: only where it is asked for. */
  readonly rotateAfterMs?: number;
}

export interface RotationFacts {
  readonly nowMs: number;
  /** Since when the authority that signs is there. */
  readonly madeMs: number;
  /** What the annotation says now. */
  readonly request?: string;
}

/** The step that is due; undefined: none. To be asked once what the present phase publishes is published. */
export function nextStep(rotation: Rotation, facts: RotationFacts, plan: RotationPlan): Step | undefined {
  const { nowMs, request } = facts;
  switch (rotation.phase) {
    case 'steady': {
      const old = plan.rotateAfterMs !== undefined && nowMs - facts.madeMs >= plan.rotateAfterMs;
      return old || (request !== undefined && request !== rotation.request) ? 'make' : undefined;
    }
    case 'made':
      return 'publish';
    case 'published':
      return nowMs - rotation.sinceMs >= plan.stepMs ? 'use' : undefined;
    case 'used':
      return nowMs - rotation.sinceMs >= plan.stepMs ? 'drop' : undefined;
  }
}

/** For whoever looks at the bundle; undefined while nothing goes on. */
export function describeRotation({ phase, sinceMs }: Rotation, { stepMs }: RotationPlan): string | undefined {
  const at = new Date(sinceMs + stepMs).toISOString();
  switch (phase) {
    case 'steady':
      return undefined;
    case 'made':
      return 'a new authority is being published';
    case 'published':
      return `a new authority is published, and signs from ${at}`;
    case 'used':
      return `a new authority signs, and the former one goes at ${at}`;
  }
}
