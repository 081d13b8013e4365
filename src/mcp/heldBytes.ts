/**
 * How much of bodies and answers is held in memory, for each caller and for all: what bounds a process against callers who
 * send or take slowly, however many connections they open, and against tools whose answers are large.
 */
import { createInFlight } from '../domain/inFlight.ts';

export interface HeldLimits {
  readonly perKey: number;
  readonly total: number;
}

/** Room for an answer that is still to be read. */
export interface Reservation {
  readonly give: () => void;
}

/** What one request holds. */
export interface Holding {
  /** False: the caller, or all together, would hold too much; nothing was added. */
  readonly tryAdd: (bytes: number) => boolean;
  /** Adds what exists already and cannot be refused any more, such as an answer. */
  readonly add: (bytes: number) => void;
  /**
   * Asks for room; `granted` is called once there is some, perhaps at once. One for each key, and one of all, is granted
   * whatever is held, so that those who wait for each other come to an end.
   */
  readonly reserve: (bytes: number, granted: () => void) => Reservation;
  readonly release: () => void;
}

export interface HeldBytes {
  readonly open: (key: string) => Holding;
  readonly total: () => number;
}

export function createHeldBytes(limits: HeldLimits): HeldBytes {
  const byKey = new Map<string, number>();
  const reserved = createInFlight(Number.POSITIVE_INFINITY);
  /** In the order in which they asked; each returns whether it was granted. */
  const waiting = new Set<() => boolean>();
  let total = 0;

  const change = (key: string, bytes: number): void => {
    total += bytes;
    const own = (byKey.get(key) ?? 0) + bytes;
    if (own <= 0) byKey.delete(key);
    else byKey.set(key, own);
  };
  const wake = (): void => {
    for (const ask of [...waiting]) if (ask()) waiting.delete(ask);
  };
  const reserve = (key: string, bytes: number, granted: () => void): Reservation => {
    let leave: (() => void) | undefined;
    const ask = (): boolean => {
      const own = (byKey.get(key) ?? 0) + bytes <= limits.perKey || reserved.running(key) === 0;
      const all = total + bytes <= limits.total || reserved.total() === 0;
      if (!own || !all) return false;
      leave = reserved.enter(key);
      change(key, bytes);
      granted();
      return true;
    };
    if (!ask()) waiting.add(ask);
    return {
      give: () => {
        waiting.delete(ask);
        if (leave === undefined) return;
        leave();
        leave = undefined;
        change(key, -bytes);
        wake();
      },
    };
  };

  return {
    open: (key) => {
      let own = 0;
      let released = false;
      const add = (bytes: number): void => {
        if (released) return;
        own += bytes;
        change(key, bytes);
      };
      return {
        tryAdd: (bytes) => {
          if ((byKey.get(key) ?? 0) + bytes > limits.perKey || total + bytes > limits.total) return false;
          add(bytes);
          return true;
        },
        add,
        reserve: (bytes, granted) => reserve(key, bytes, granted),
        release: () => {
          if (released) return;
          released = true;
          change(key, -own);
          wake();
        },
      };
    },
    total: () => total,
  };
}
