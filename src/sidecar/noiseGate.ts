/**
 * Slows a tool down that says more than it was asked: over an allowance of bytes in a second, its output is not read
 * until the second is over. Its pipe fills, and it waits; its neighbours do not.
 */

export interface NoiseGate {
  readonly add: (bytes: number) => void;
  readonly close: () => void;
}

const BYTES_PER_SECOND = 1024 * 1024;
/** A short message costs more than its bytes. */
const BYTES_PER_MESSAGE = 512;

export function createNoiseGate(pause: () => void, resume: () => void, now: () => number = Date.now): NoiseGate {
  let second = 0;
  let heard = 0;
  let timer: NodeJS.Timeout | undefined;
  return {
    add(bytes) {
      const at = now();
      if (at - second >= 1_000) {
        second = at;
        heard = 0;
      }
      heard += bytes + BYTES_PER_MESSAGE;
      if (heard <= BYTES_PER_SECOND || timer !== undefined) return;
      pause();
      timer = setTimeout(
        () => {
          timer = undefined;
          resume();
        },
        Math.max(1, second + 1_000 - at),
      );
    },
    close() {
      clearTimeout(timer);
      if (timer !== undefined) resume();
      timer = undefined;
    },
  };
}
