/**
 * How much of bodies and answers is held in memory, for each caller and for all: what bounds a process against callers who
 * send or take slowly, however many connections they open.
 */

export interface HeldLimits {
  readonly perKey: number;
  readonly total: number;
}

/** What one request holds. */
export interface Holding {
  /** False: the caller, or all together, would hold too much; nothing was added. */
  readonly tryAdd: (bytes: number) => boolean;
  /** Adds what exists already and cannot be refused any more, such as an answer. */
  readonly add: (bytes: number) => void;
  readonly release: () => void;
}

export interface HeldBytes {
  readonly open: (key: string) => Holding;
  readonly total: () => number;
}

export function createHeldBytes(limits: HeldLimits): HeldBytes {
  const byKey = new Map<string, number>();
  let total = 0;
  return {
    open: (key) => {
      let own = 0;
      let released = false;
      const add = (bytes: number): void => {
        if (released) return;
        own += bytes;
        total += bytes;
        byKey.set(key, (byKey.get(key) ?? 0) + bytes);
      };
      return {
        tryAdd: (bytes) => {
          if ((byKey.get(key) ?? 0) + bytes > limits.perKey || total + bytes > limits.total) return false;
          add(bytes);
          return true;
        },
        add,
        release: () => {
          if (released) return;
          released = true;
          total -= own;
          const rest = (byKey.get(key) ?? 0) - own;
          if (rest <= 0) byKey.delete(key);
          else byKey.set(key, rest);
        },
      };
    },
    total: () => total,
  };
}
