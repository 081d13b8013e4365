/**
 * Whether the API server was heard lately. A watch that broke looks like one on which nothing happens, so a small request
 * is made every few seconds; while none was answered for too long, a Stop could have been missed.
 */
import { setTimeout as sleep } from 'node:timers/promises';

export interface ApiSilence {
  readonly silent: () => boolean;
  readonly ended: Promise<void>;
}

export interface ApiSilenceOptions {
  /** One request; resolves once it was answered. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  readonly signal: AbortSignal;
  readonly intervalMs?: number;
  readonly timeoutMs?: number;
  readonly silentAfterMs?: number;
  /** Milliseconds on a scale that only grows. */
  readonly now?: () => number;
}

/** Starts at once; the time before the first answer counts from now. */
export function watchApiSilence(options: ApiSilenceOptions): ApiSilence {
  const { ask, signal, intervalMs = 5_000, timeoutMs = 5_000, silentAfterMs = 30_000 } = options;
  const now = options.now ?? (() => performance.now());
  let heardMs = now();
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      // When it was asked, not when it was answered: what is said is not younger.
      const askedMs = now();
      try {
        await ask(AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
        heardMs = askedMs;
      } catch {
        // No answer is what is looked for.
      }
      await sleep(intervalMs, undefined, { signal, ref: false }).catch(() => {});
    }
  };
  return { silent: () => now() - heardMs > silentAfterMs, ended: run() };
}
