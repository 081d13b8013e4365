/** Time that moves only when told to, and a process' own clock that can be stopped while the world's goes on. */
import type { Clock } from '../../src/engine/clock.ts';

export interface FakeClock extends Clock {
  /** Runs everything that is due within the next `ms`, in order, letting promises settle in between. */
  readonly advance: (ms: number) => Promise<void>;
  /** Timers that are set. */
  readonly pending: () => number;
}

interface Timer {
  readonly dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** Where the wall clock starts: 2026-01-01. */
const START_MS = Date.UTC(2026, 0, 1);

export function createFakeClock(): FakeClock {
  const timers = new Set<Timer>();
  let nowMs = 0;
  let order = 0;

  function next(untilMs: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of timers) {
      if (timer.dueMs > untilMs) continue;
      if (!first || timer.dueMs < first.dueMs || (timer.dueMs === first.dueMs && timer.order < first.order)) {
        first = timer;
      }
    }
    return first;
  }

  return {
    monotonicMs: () => nowMs,
    wallMs: () => START_MS + nowMs,
    after: (ms, run) => {
      order += 1;
      const timer = { dueMs: nowMs + Math.max(ms, 0), order, run };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance: async (ms) => {
      const untilMs = nowMs + ms;
      await settle();
      for (let timer = next(untilMs); timer; timer = next(untilMs)) {
        timers.delete(timer);
        nowMs = Math.max(nowMs, timer.dueMs);
        timer.run();
        await settle();
      }
      nowMs = untilMs;
    },
    pending: () => timers.size,
  };
}

/** A process' view of the clock. While it is stopped nothing of it runs, as under SIGSTOP; what came due runs when it wakes. */
export interface ProcessClock extends Clock {
  readonly stop: () => void;
  readonly resume: () => void;
  /** For ever. */
  readonly kill: () => void;
  readonly isRunning: () => boolean;
}

export function createProcessClock(world: Clock): ProcessClock {
  let state: 'running' | 'stopped' | 'killed' = 'running';
  let missed: (() => void)[] = [];
  return {
    monotonicMs: world.monotonicMs,
    wallMs: world.wallMs,
    after: (ms, run) => {
      let cancelled = false;
      const cancel = world.after(ms, () => {
        if (state === 'stopped') missed.push(() => (cancelled ? undefined : run()));
        else if (state === 'running') run();
      });
      return () => {
        cancelled = true;
        cancel();
      };
    },
    stop: () => {
      if (state === 'running') state = 'stopped';
    },
    resume: () => {
      if (state !== 'stopped') return;
      state = 'running';
      const due = missed;
      missed = [];
      for (const run of due) run();
    },
    kill: () => {
      state = 'killed';
      missed = [];
    },
    isRunning: () => state === 'running',
  };
}

/** Until promises that need nothing but each other are through. */
function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
