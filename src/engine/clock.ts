/** Time as an argument: everything that waits or stamps takes a `Clock`, so that tests own time. */
export interface Clock {
  /** Milliseconds of a clock that never goes back and does not follow the wall clock; only differences mean anything. */
  readonly monotonicMs: () => number;
  /** Milliseconds since 1970, for timestamps that people read; may jump. */
  readonly wallMs: () => number;
  /** Calls `run` once after `ms` milliseconds; the function returned cancels that. */
  readonly after: (ms: number, run: () => void) => () => void;
}

/** A number in [0, 1). */
export type Random = () => number;

/** Resolves after `ms`; rejects with the signal's reason when aborted first. */
export function sleep(clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason);
      return;
    }
    const onAbort = () => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(ms, () => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    });
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}
