/** Kubernetes events, made only from conditions that changed. Best effort: an event that cannot be written is dropped. */
import { oneLine } from './api-error.ts';
import type { Clock, Random } from './clock.ts';
import type { KubeObject } from './contract.ts';
import type { ApiDoor } from './door.ts';
import type { Log } from './log.ts';
import { EVENTS } from './rules.ts';
import type { Condition } from './status.ts';

export interface EventsOptions {
  readonly door: Pick<ApiDoor, 'create'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Such as `oz0.ai/controller`. */
  readonly controller: string;
  /** Name of this pod. */
  readonly instance: string;
}

/** A burst, then one event in so much time, over all objects: a condition that flaps must not fill etcd. */
const BURST = 100;
const REFILL_MS = 1_000;

/** Answers a function that reports conditions of an object whose status changed. */
export function createRecorder(
  options: EventsOptions,
): (regarding: KubeObject, conditions: readonly Condition[]) => void {
  const { clock, random, log } = options;
  let tokens = BURST;
  let filledMs = clock.monotonicMs();

  function take(): boolean {
    const nowMs = clock.monotonicMs();
    tokens = Math.min(BURST, tokens + (nowMs - filledMs) / REFILL_MS);
    filledMs = nowMs;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
  }

  return (regarding, conditions) => {
    for (const condition of conditions) {
      if (!take()) return;
      const event = compose(regarding, condition);
      options.door.create(EVENTS, event, { timeoutMs: 10_000 }).catch((error: unknown) => {
        log.debug({ event: event.metadata.name, problem: String(error) }, 'an event could not be written');
      });
    }
  };

  function compose(regarding: KubeObject, condition: Condition): KubeObject {
    const { name, namespace, uid, resourceVersion } = regarding.metadata;
    const tail = Math.floor(random() * 2 ** 48)
      .toString(16)
      .padStart(12, '0');
    return {
      apiVersion: EVENTS.apiVersion,
      kind: EVENTS.kind,
      // Cut so that the whole is a name: 253 characters.
      metadata: { name: `${name.slice(0, 240).replace(/[.-]+$/, '')}.${tail}`, namespace: namespace ?? 'default' },
      eventTime: `${new Date(clock.wallMs()).toISOString().slice(0, -1)}000Z`,
      reportingController: options.controller,
      reportingInstance: options.instance.slice(0, 128),
      action: condition.type,
      reason: condition.reason.slice(0, 128),
      type: condition.status === 'False' || condition.type === 'Stalled' ? 'Warning' : 'Normal',
      regarding: { apiVersion: regarding.apiVersion, kind: regarding.kind, name, namespace, uid, resourceVersion },
      note: oneLine(`${condition.type} is ${condition.status}. ${condition.message}`, 1024),
    };
  }
}
