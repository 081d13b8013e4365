/**
 * Runs sensors beside the workers: one at a time for a parent, a bounded number in all, each within its time. Keeps the last
 * result of each; a parent is woken when it is not the one known before.
 */
import { oneLine } from './api-error.ts';
import { backoffMs } from './backoff.ts';
import type { Clock, Random } from './clock.ts';
import type { Observed, Sensed, Sensor } from './contract.ts';
import type { Log } from './log.ts';

export interface Sensors {
  /** The last results, by the sensor's name. */
  readonly results: <P>(key: string, sensors: readonly Sensor<P>[]) => Readonly<Record<string, Sensed>>;
  /** Starts what is due for this parent. Throws what a sensor's `subject` throws. */
  readonly update: <P>(key: string, sensors: readonly Sensor<P>[], observed: Observed<P>) => SensorsState;
  /** The parent is gone: whatever runs for it is aborted. */
  readonly forget: (key: string) => void;
  /** Aborts everything; nothing is started any more. */
  readonly close: () => void;
}

export interface SensorsState {
  /** When to look again, in milliseconds; undefined: nothing is to be asked. */
  readonly againInMs: number | undefined;
  /**
   * There was something to ask from the first look at this parent on, and no answer came yet. Then an earlier process may
   * have known the answer: that we have none means nothing.
   */
  readonly isRelearning: boolean;
}

export interface SensorsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How many run at once, in all. */
  readonly concurrency: number;
  /** This parent's results are not what they were, or its next sensor may run. */
  readonly onChange: (key: string) => void;
}

type Result = { readonly key: string; readonly atMs: number } & (
  | { readonly state: 'ok'; readonly value: unknown }
  | { readonly state: 'failed'; readonly problem: string }
);

interface Held {
  readonly results: Map<string, Result>;
  readonly failures: Map<string, number>;
  readonly relearning: Set<string>;
  /** Of the one sensor that runs for this parent. */
  running?: { readonly sensor: string; readonly key: string; readonly controller: AbortController };
}

/** After a failure: sooner than the sensor's own rhythm, later with each. */
const FIRST_RETRY_MS = 1_000;
const BUSY_MS = 250;

export function createSensors(options: SensorsOptions): Sensors {
  const { clock, random, log } = options;
  const parents = new Map<string, Held>();
  let running = 0;
  let closed = false;

  function dueInMs(sensor: Sensor<never>, held: Held, subjectKey: string): number {
    const last = held.results.get(sensor.name);
    if (!last || last.key !== subjectKey) return 0;
    const failures = held.failures.get(sensor.name) ?? 0;
    const everyMs =
      failures > 0
        ? Math.min(
            backoffMs(failures, { firstMs: FIRST_RETRY_MS, maxMs: sensor.everyMs }, () => 0.5),
            sensor.everyMs,
          )
        : sensor.everyMs;
    return last.atMs + everyMs - clock.monotonicMs();
  }

  function start(key: string, held: Held, sensor: Sensor<never>, subject: { key: string; input: unknown }): void {
    const controller = new AbortController();
    held.running = { sensor: sensor.name, key: subject.key, controller };
    running += 1;
    const cancel = clock.after(sensor.timeoutMs, () =>
      controller.abort(new Error(`no answer within ${sensor.timeoutMs} ms`)),
    );
    void runWithin(sensor, subject.input, controller.signal)
      .then(
        (value) => ({ state: 'ok' as const, value }),
        (error: unknown) => ({ state: 'failed' as const, problem: problemOf(error) }),
      )
      .then((outcome) => {
        cancel();
        running -= 1;
        if (closed || parents.get(key) !== held || held.running?.controller !== controller) return;
        delete held.running;
        const failures = outcome.state === 'failed' ? (held.failures.get(sensor.name) ?? 0) + 1 : 0;
        held.failures.set(sensor.name, failures);
        held.relearning.delete(sensor.name);
        held.results.set(sensor.name, { ...outcome, key: subject.key, atMs: clock.monotonicMs() });
        if (outcome.state === 'failed') {
          log.debug({ key, sensor: sensor.name, problem: outcome.problem }, 'a sensor failed');
        }
        // Also when the result is as before: the next sensor of this parent waits for its turn.
        options.onChange(key);
      });
  }

  return {
    results: (key, sensors) => {
      const held = parents.get(key);
      return Object.fromEntries(
        sensors.map((sensor) => [sensor.name, shown(held?.results.get(sensor.name), clock.monotonicMs())]),
      );
    },
    update: (key, sensors, observed) => {
      if (closed || sensors.length === 0) return { againInMs: undefined, isRelearning: false };
      const known = parents.get(key);
      const held: Held = known ?? { results: new Map(), failures: new Map(), relearning: new Set() };
      parents.set(key, held);
      let againInMs: number | undefined;
      const subjects = new Map<string, string>();
      for (const sensor of sensors) {
        const subject = sensor.subject(observed);
        if (!subject) {
          held.results.delete(sensor.name);
          held.relearning.delete(sensor.name);
          continue;
        }
        if (!known) held.relearning.add(sensor.name);
        subjects.set(sensor.name, subject.key);
        const dueMs = dueInMs(sensor as Sensor<never>, held, subject.key);
        if (dueMs <= 0 && !held.running) {
          if (running < options.concurrency) start(key, held, sensor as Sensor<never>, subject);
          // Its turn comes when others are through; a little randomness keeps the same ones from losing each time.
          else againInMs = Math.min(againInMs ?? BUSY_MS, BUSY_MS * (0.5 + random()));
        } else if (dueMs > 0) {
          againInMs = Math.min(againInMs ?? dueMs, dueMs);
        }
      }
      // What runs for a question that is no longer asked is not waited for.
      if (held.running && subjects.get(held.running.sensor) !== held.running.key) {
        held.running.controller.abort(new Error('no longer asked'));
      }
      return { againInMs, isRelearning: held.relearning.size > 0 };
    },
    forget: (key) => {
      parents.get(key)?.running?.controller.abort(new Error('no longer asked'));
      parents.delete(key);
    },
    close: () => {
      closed = true;
      for (const held of parents.values()) held.running?.controller.abort(new Error('closed'));
      parents.clear();
    },
  };
}

/** A sensor that does not heed its signal is given up all the same. */
function runWithin(sensor: Sensor<never>, input: unknown, signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
    // Within a promise, so that one that throws at once is like one that rejects.
    Promise.resolve()
      .then(() => sensor.run(input, signal))
      .then(resolve, reject);
  });
}

function shown(result: Result | undefined, nowMs: number): Sensed {
  if (!result) return { state: 'none' };
  const { atMs, ...rest } = result;
  return { ...rest, ageMs: nowMs - atMs };
}

function problemOf(error: unknown): string {
  return oneLine(error instanceof Error ? error.message : String(error), 400);
}
