/**
 * Whether calls that must be written down are taken now. It opens when the API server failed or was slow several times in a
 * row, and lets one through after a pause; what must be finished is not asked.
 */

export interface Breaker {
  /** Whether a new call may be written down. */
  readonly closed: () => boolean;
  /** A request begins; the result is called with how it ended. */
  readonly begin: () => (how: 'ok' | 'bad') => void;
}

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failures: number;
  /** A request that took longer is a failure, whatever it came to. */
  readonly slowMs: number;
  readonly pauseMs: number;
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
}

export const BREAKER: BreakerOptions = { failures: 5, slowMs: 2_000, pauseMs: 5_000 };

export function createBreaker(options: BreakerOptions = BREAKER): Breaker {
  const now = options.now ?? (() => performance.now());
  let failures = 0;
  let openUntilMs = 0;
  return {
    closed: () => {
      if (failures < options.failures) return true;
      if (now() < openUntilMs) return false;
      // One is let through, and says how it is; the others wait for that.
      openUntilMs = now() + options.pauseMs;
      return true;
    },
    begin: () => {
      const startedMs = now();
      return (how) => {
        if (how === 'ok' && now() - startedMs <= options.slowMs) {
          failures = 0;
          return;
        }
        failures += 1;
        if (failures >= options.failures) openUntilMs = now() + options.pauseMs;
      };
    },
  };
}
