import type { Random } from './clock.ts';

/** Bounds of an exponential backoff, in milliseconds. */
export interface BackoffLimits {
  readonly firstMs: number;
  readonly maxMs: number;
}

/**
 * How long to wait before attempt number `failures + 1`, after that many failures in a row (1 or more): doubles from
 * `firstMs` to at most `maxMs`, then spread by up to a half either way, so that replicas that failed together do not
 * come back together.
 */
export function backoffMs(failures: number, limits: BackoffLimits, random: Random): number {
  const exponent = Math.min(Math.max(failures, 1) - 1, 30);
  const base = Math.min(limits.firstMs * 2 ** exponent, limits.maxMs);
  return Math.min(base * (0.5 + random()), limits.maxMs);
}
