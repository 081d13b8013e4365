/**
 * Runs sensors beside the workers: one at a time for a parent, a bounded number in all, each within its time and again in its
 * rhythm. Keeps the last result of each; a parent is woken only when one is not what it was, so that asking costs no passes.
 */
import { oneLine } from './api-error.ts';
import { backoffMs } from './backoff.ts';
import { canonical } from './canonical.ts';
import type { Clock, Random } from './clock.ts';
import type { Observed, Sensed, Sensor } from './contract.ts';
import type { Log } from './log.ts';

export interface Sensors {
  /** The last results, by the sensor's name. */
  readonly results: <P>(key: string, sensors: readonly Sensor<P>[]) => Readonly<Record<string, Sensed>>;
  /**
   * Takes what is to be asked from what is observed now, and asks what is due. Throws what a sensor's `subject` throws.
   *
   * `isRelearning`: there was something to ask from the first look at this parent on, and no answer came yet. Then an
   * earlier process may have known the answer: that we have none means nothing.
   */
  readonly update: <P>(
    key: string,
    sensors: readonly Sensor<P>[],
    observed: Observed<P>,
  ) => { readonly isRelearning: boolean };
  /** The parent is gone: whatever runs for it is aborted. */
  readonly forget: (key: string) => void;
  /** Aborts everything; nothing is started any more. */
  readonly close: () => void;
}

export interface SensorsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How many run at once, in all. */
  readonly concurrency: number;
  /** One of this parent's results is not what it was. */
  readonly onChange: (key: string) => void;
}

type Result = { readonly key: string; readonly atMs: number } & (
  | { readonly state: 'ok'; readonly value: unknown }
  | { readonly state: 'failed'; readonly problem: string }
);

/** A question, as it was last asked for. */
interface Asked {
  readonly sensor: Sensor<never>;
  readonly key: string;
  readonly input: unknown;
}

interface Held {
  readonly asked: Map<string, Asked>;
  readonly results: Map<string, Result>;
  readonly failures: Map<string, number>;
  readonly relearning: Set<string>;
  /** The one that runs for this parent. */
  running: { readonly sensor: string; readonly key: string; readonly controller: AbortController } | undefined;
  /** Cancels the timer of the next that is due. */
  cancel: () => void;
}

/** After a failure: sooner than the sensor's own rhythm, later with each. */
const FIRST_RETRY_MS = 1_000;
/** As many run as may: try again after about this. */
const BUSY_MS = 250;

export function createSensors(options: SensorsOptions): Sensors {
  const { clock, random, log } = options;
  const parents = new Map<string, Held>();
  let running = 0;
  let closed = false;

  function dueInMs(held: Held, { sensor, key }: Asked): number {
    const last = held.results.get(sensor.name);
    if (!last || last.key !== key) return 0;
    const failures = held.failures.get(sensor.name) ?? 0;
    const limits = { firstMs: FIRST_RETRY_MS, maxMs: sensor.everyMs };
    const everyMs = failures === 0 ? sensor.everyMs : backoffMs(failures, limits, () => 0.5);
    return last.atMs + everyMs - clock.monotonicMs();
  }

  /** Starts the one that is due longest, if none runs, and sets the timer for the next. */
  function proceed(key: string, held: Held): void {
    held.cancel();
    held.cancel = () => {};
    if (closed || held.running) return;
    const [next] = [...held.asked.values()]
      .map((asked) => ({ asked, dueMs: dueInMs(held, asked) }))
      .sort((a, b) => a.dueMs - b.dueMs);
    if (!next) return;
    if (next.dueMs > 0) {
      held.cancel = clock.after(next.dueMs, () => proceed(key, held));
    } else if (running < options.concurrency) {
      start(key, held, next.asked);
    } else {
      // A little randomness keeps the same ones from losing each time.
      held.cancel = clock.after(BUSY_MS * (0.5 + random()), () => proceed(key, held));
    }
  }

  function start(key: string, held: Held, asked: Asked): void {
    const { sensor } = asked;
    const controller = new AbortController();
    held.running = { sensor: sensor.name, key: asked.key, controller };
    running += 1;
    const cancel = clock.after(sensor.timeoutMs, () =>
      controller.abort(new Error(`no answer within ${sensor.timeoutMs} ms`)),
    );
    void runWithin(asked, controller.signal)
      .then(
        (value) => ({ state: 'ok' as const, value }),
        (error: unknown) => ({ state: 'failed' as const, problem: problemOf(error) }),
      )
      .then((outcome) => {
        cancel();
        running -= 1;
        if (closed || parents.get(key) !== held) return;
        held.running = undefined;
        // An answer to a question that is no longer asked says nothing.
        if (held.asked.get(sensor.name)?.key === asked.key) {
          take(key, held, asked, { ...outcome, key: asked.key, atMs: clock.monotonicMs() });
        }
        proceed(key, held);
      });
  }

  function take(key: string, held: Held, { sensor }: Asked, result: Result): void {
    const { name } = sensor;
    const before = held.results.get(name);
    held.failures.set(name, result.state === 'failed' ? (held.failures.get(name) ?? 0) + 1 : 0);
    held.results.set(name, result);
    held.relearning.delete(name);
    if (result.state === 'failed') log.debug({ key, sensor: name, problem: result.problem }, 'a sensor failed');
    if (!before || canonical({ ...before, atMs: 0 }) !== canonical({ ...result, atMs: 0 })) options.onChange(key);
  }

  return {
    results: (key, sensors) => {
      const held = parents.get(key);
      return Object.fromEntries(
        sensors.map((sensor) => [sensor.name, shown(held?.results.get(sensor.name), clock.monotonicMs())]),
      );
    },
    update: (key, sensors, observed) => {
      if (closed || sensors.length === 0) return { isRelearning: false };
      const subjects = sensors.map((sensor) => ({
        sensor: sensor as Sensor<never>,
        subject: sensor.subject(observed),
      }));
      const known = parents.get(key);
      const held: Held = known ?? {
        asked: new Map(),
        results: new Map(),
        failures: new Map(),
        relearning: new Set(),
        running: undefined,
        cancel: () => {},
      };
      parents.set(key, held);
      for (const { sensor, subject } of subjects) {
        const { name } = sensor;
        if (!subject) {
          held.asked.delete(name);
          held.results.delete(name);
          held.relearning.delete(name);
          continue;
        }
        if (!known) held.relearning.add(name);
        if (held.asked.get(name)?.key !== subject.key) held.failures.delete(name);
        held.asked.set(name, { sensor, ...subject });
      }
      if (held.running && held.asked.get(held.running.sensor)?.key !== held.running.key) {
        held.running.controller.abort(new Error('no longer asked'));
      }
      proceed(key, held);
      return { isRelearning: held.relearning.size > 0 };
    },
    forget: (key) => {
      const held = parents.get(key);
      held?.running?.controller.abort(new Error('no longer asked'));
      held?.cancel();
      parents.delete(key);
    },
    close: () => {
      closed = true;
      for (const held of parents.values()) {
        held.running?.controller.abort(new Error('closed'));
        held.cancel();
      }
      parents.clear();
    },
  };
}

/** A sensor that does not heed its signal is given up all the same. */
function runWithin({ sensor, input }: Asked, signal: AbortSignal): Promise<unknown> {
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
