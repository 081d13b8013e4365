/** How many calls may run at once, for each of many keys. */

export interface InFlight {
  /** Undefined when the key has as many as it may; else how to end this one, once. */
  readonly enter: (key: string) => (() => void) | undefined;
  readonly running: (key: string) => number;
  readonly total: () => number;
}

export function createInFlight(most: number): InFlight {
  const running = new Map<string, number>();
  let total = 0;
  return {
    enter: (key) => {
      const now = running.get(key) ?? 0;
      if (now >= most) return undefined;
      running.set(key, now + 1);
      total += 1;
      let left = false;
      return () => {
        if (left) return;
        left = true;
        total -= 1;
        const rest = (running.get(key) ?? 1) - 1;
        if (rest === 0) running.delete(key);
        else running.set(key, rest);
      };
    },
    running: (key) => running.get(key) ?? 0,
    total: () => total,
  };
}
