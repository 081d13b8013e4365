/**
 * Which keys are to be looked at, and when. A key is worked on by one worker at a time; what comes meanwhile is kept once and
 * looked at after. Nothing here knows what a key is.
 */
import { type BackoffLimits, backoffMs } from './backoff.ts';
import type { Clock, Random } from './clock.ts';

export interface Queue {
  /** Look at it now, whatever delay it had. */
  readonly add: (key: string) => void;
  /** Look at it after `ms`; of two delays the earlier wins. */
  readonly addAfter: (key: string, ms: number) => void;
  /**
   * It failed: look again after a backoff that grows with each failure in a row, or after `atLeastMs` if that is longer.
   * Answers how many failures in a row that makes.
   */
  readonly retry: (key: string, atLeastMs?: number) => number;
  /** It went well: failures are counted from zero again. */
  readonly forget: (key: string) => void;
  /** The next key, now being worked on; undefined when nothing is ready. */
  readonly take: () => string | undefined;
  /** The worker is through with it. */
  readonly done: (key: string) => void;
  /** Keys ready or delayed, and keys being worked on. */
  readonly size: () => { readonly ready: number; readonly delayed: number; readonly working: number };
  /** Drops everything and every timer; nothing is taken any more. */
  readonly close: () => void;
}

export interface QueueOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly backoff: BackoffLimits;
  /** Something can be taken. */
  readonly onReady: () => void;
}

interface Delay {
  readonly dueMs: number;
  readonly cancel: () => void;
}

export function createQueue(options: QueueOptions): Queue {
  const { clock, random, backoff, onReady } = options;
  // Insertion order is the order of work: no key can starve another.
  const ready = new Set<string>();
  const working = new Set<string>();
  const dirty = new Set<string>();
  const delays = new Map<string, Delay>();
  const failures = new Map<string, number>();
  let closed = false;

  function add(key: string): void {
    if (closed) return;
    delays.get(key)?.cancel();
    delays.delete(key);
    if (working.has(key)) {
      dirty.add(key);
      return;
    }
    if (ready.has(key)) return;
    ready.add(key);
    onReady();
  }

  function addAfter(key: string, ms: number): void {
    if (closed || ready.has(key) || dirty.has(key)) return;
    if (ms <= 0) {
      add(key);
      return;
    }
    const dueMs = clock.monotonicMs() + ms;
    const known = delays.get(key);
    if (known && known.dueMs <= dueMs) return;
    known?.cancel();
    const cancel = clock.after(ms, () => {
      delays.delete(key);
      add(key);
    });
    delays.set(key, { dueMs, cancel });
  }

  return {
    add,
    addAfter,
    retry: (key, atLeastMs = 0) => {
      const count = (failures.get(key) ?? 0) + 1;
      failures.set(key, count);
      addAfter(key, Math.max(backoffMs(count, backoff, random), atLeastMs));
      return count;
    },
    forget: (key) => {
      failures.delete(key);
    },
    take: () => {
      const [key] = ready;
      if (closed || key === undefined) return undefined;
      ready.delete(key);
      working.add(key);
      return key;
    },
    done: (key) => {
      working.delete(key);
      if (dirty.delete(key)) add(key);
    },
    size: () => ({ ready: ready.size + dirty.size, delayed: delays.size, working: working.size }),
    close: () => {
      closed = true;
      for (const delay of delays.values()) delay.cancel();
      delays.clear();
      ready.clear();
      dirty.clear();
    },
  };
}
