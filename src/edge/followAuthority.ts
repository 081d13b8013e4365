/**
 * Keeps what this replica signs with as the Secret has it, publishes the bundle, and makes the step that is due. What was not read for long
 * is not signed with: another replica may have gone on, and waits only so long for this one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ApiError } from '../engine/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import type { Log } from '../runtime/log.ts';
import { advanced, type EdgeKeys, loadEdgeSecret, readEdgeKeys, SECRETS, validityOf } from './authority.ts';
import { CERTIFICATE_LIFE_MS } from './issue.ts';
import { describeRotation, nextStep, type Phase, type RotationPlan } from './rotation.ts';
import { publishTrustBundle } from './trustBundle.ts';

export interface FollowTiming extends RotationPlan {
  /** Between two looks at the Secret. */
  readonly pollMs: number;
  readonly retryMs: number;
  /** For so long a replica signs with what it read last. */
  readonly freshMs: number;
}

const FRESH_MS = 300_000;
/** Clocks of replicas differ, and writes take their time. */
const MARGIN_MS = 600_000;
/** The shortest step that leaves nobody behind. */
export const SHORTEST_STEP_MS = CERTIFICATE_LIFE_MS + FRESH_MS + MARGIN_MS;

export const TIMING: FollowTiming = {
  pollMs: 30_000,
  retryMs: 2_000,
  freshMs: FRESH_MS,
  // A day, for agents that read the bundle when they start only.
  stepMs: 24 * 3_600_000,
  rotateAfterMs: 365 * 24 * 3_600_000,
};

export interface FollowOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly timing: FollowTiming;
  readonly log: Log;
  /** Told after each look. */
  readonly onLook?: (seen: { readonly phase: Phase; readonly untilMs: number }) => void;
  readonly signal: AbortSignal;
}

export interface Following {
  /** Undefined: not read yet, or not for too long. */
  readonly current: () => EdgeKeys | undefined;
  /** Resolves once there are keys and their bundle is published; rejects only when it is ended before. */
  readonly ready: Promise<void>;
  readonly ended: Promise<void>;
}

export function followAuthority(options: FollowOptions): Following {
  const { client, namespace, timing, log, signal } = options;
  const first = Promise.withResolvers<void>();
  first.promise.catch(() => {});
  let held: { readonly keys: EdgeKeys; readonly at: number } | undefined;

  async function look(): Promise<void> {
    for (;;) {
      const at = performance.now();
      const secret = await loadEdgeSecret(client, namespace, signal);
      const keys = readEdgeKeys(secret);
      held = { keys, at };
      await publishTrustBundle(client, namespace, keys.bundlePem, signal, describeRotation(keys.rotation, timing));
      const nowMs = Date.now();
      const { fromMs, untilMs } = validityOf(keys.authority.certificatePem);
      options.onLook?.({ phase: keys.rotation.phase, untilMs });
      first.resolve();
      const facts = { nowMs, madeMs: fromMs, ...(keys.request === undefined ? {} : { request: keys.request }) };
      const step = nextStep(keys.rotation, facts, timing);
      if (step === undefined) return;
      try {
        await client.replace(SECRETS, advanced(secret, step, nowMs), { signal });
        log.info({ step }, 'authority: a step of its rotation is made');
      } catch (error) {
        // Another replica made it, or a person wrote an annotation: what is there now decides.
        if (!(error instanceof ApiError) || error.code !== 'conflict') throw error;
      }
    }
  }

  async function follow(): Promise<void> {
    for (;;) {
      let waitMs = timing.pollMs;
      try {
        await look();
      } catch (error) {
        signal.throwIfAborted();
        log.warn({ error }, 'authority: trying again');
        waitMs = timing.retryMs;
      }
      await sleep(waitMs, undefined, { signal });
    }
  }

  const ended = follow().catch((error) => {
    first.reject(error);
    if (!signal.aborted) throw error;
  });
  ended.catch(() => {});
  return {
    current: () => (held !== undefined && performance.now() - held.at <= timing.freshMs ? held.keys : undefined),
    ready: first.promise,
    ended,
  };
}
