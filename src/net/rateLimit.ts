/** Token buckets by key, bounded in number: a key that was not seen for long starts full again. */

export interface RateLimit {
  /** Takes one token; false: none is left. */
  take(key: string): boolean;
}

/**
 * @param burst tokens of a full bucket
 * @param perMinute tokens that come back
 * @param maxKeys buckets kept; at the limit the longest unused one is forgotten
 */
export function createRateLimit(burst: number, perMinute: number, maxKeys: number, now: () => number): RateLimit {
  // In order of use: a Map keeps the order in which its keys were set.
  const buckets = new Map<string, { tokens: number; at: number }>();
  return {
    take(key) {
      const at = now();
      const before = buckets.get(key) ?? { tokens: burst, at };
      const tokens = Math.min(burst, before.tokens + ((at - before.at) / 60_000) * perMinute);
      buckets.delete(key);
      buckets.set(key, { tokens: tokens >= 1 ? tokens - 1 : tokens, at });
      if (buckets.size > maxKeys) {
        const [oldest] = buckets.keys();
        if (oldest !== undefined) buckets.delete(oldest);
      }
      return tokens >= 1;
    },
  };
}
