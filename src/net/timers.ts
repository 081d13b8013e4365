/** Time and chance as this folder's loops see them: an argument, so that a test need not wait. */
import { setTimeout as delay } from 'node:timers/promises';

export interface Timers {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms`; rejects with the signal's reason when it is aborted first. Keeps the process alive. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
  /** In [0, 1). */
  random(): number;
}

export const systemTimers: Timers = {
  now: Date.now,
  async sleep(ms, signal) {
    await delay(ms, undefined, { signal });
  },
  random: Math.random,
};
