/**
 * Keeps one tool's listing fresh from one of its pods: lists once connected and whenever the pod says that it changed, at
 * most once in an interval however often it says so. A failure never replaces a listing that was good.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Hop, listenHop } from '../../mcp/hop.ts';
import { acceptListing, type Listing } from './listing.ts';
import { readListing } from './readListing.ts';

export interface KeepListingOptions {
  readonly toolId: string;
  /** Borrows the connections for one request. */
  readonly withHop: <T>(use: (hop: Hop) => Promise<T>) => Promise<T>;
  readonly onListing: (listing: Listing) => void;
  readonly onProblem: (problem: string) => void;
  readonly signal: AbortSignal;
  /** Least time between two listings. */
  readonly minIntervalMs?: number;
  /** Between listings of a pod that does not tell of changes. */
  readonly pollMs?: number;
}

const BACKOFF_FIRST_MS = 200;
const BACKOFF_LONGEST_MS = 10_000;

/** Runs until the signal; resolves when nothing runs any more. */
export async function keepListing(options: KeepListingOptions): Promise<void> {
  const { signal } = options;
  const asked = createBell();
  await Promise.all([relist(options, asked), listen(options, asked, signal)]);
}

async function relist(options: KeepListingOptions, asked: Bell): Promise<void> {
  const { signal } = options;
  const minIntervalMs = options.minIntervalMs ?? 1_000;
  let failures = 0;
  while (!signal.aborted) {
    const startedMs = performance.now();
    // What is said from here on is about a later listing than this one.
    asked.silence();
    const problem = await takeListing(options);
    if (signal.aborted) return;
    failures = problem === undefined ? 0 : failures + 1;
    if (problem === undefined) {
      await asked.rung(signal);
      await pause(minIntervalMs - (performance.now() - startedMs), signal);
    } else {
      options.onProblem(problem);
      await pause(backoff(failures), signal);
    }
  }
}

/** The problem, if there is one. Whatever one tool makes go wrong here, this process goes on serving all the others. */
async function takeListing({ withHop, signal, toolId, onListing }: KeepListingOptions): Promise<string | undefined> {
  try {
    const read = await withHop((hop) => readListing(hop, signal));
    if (!read.ok) return read.problem;
    if (!signal.aborted) onListing(acceptListing(toolId, read.tools, read.hash));
    return undefined;
  } catch (error) {
    return `bug: ${error instanceof Error ? error.message : String(error)}`.slice(0, 200);
  }
}

async function listen(options: KeepListingOptions, asked: Bell, signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    let acknowledged = false;
    const onReady = (): void => {
      // The first listing was asked for at the start; after a gap, changes may have been missed.
      acknowledged = true;
      asked.ring();
    };
    const ended = await options
      .withHop((hop) => listenHop(hop, 'listen', signal, onReady, asked.ring))
      .catch(() => 'failed' as const);
    if (signal.aborted) return;
    if (ended === 'unsupported') {
      await pause(options.pollMs ?? 60_000, signal);
      asked.ring();
      continue;
    }
    failures = acknowledged ? 1 : failures + 1;
    await pause(backoff(failures), signal);
  }
}

function backoff(failures: number): number {
  const ceiling = Math.min(BACKOFF_LONGEST_MS, BACKOFF_FIRST_MS * 2 ** Math.min(failures - 1, 10));
  return ceiling * (0.5 + Math.random() / 2);
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await sleep(ms, undefined, { signal, ref: false }).catch(() => {});
}

/** Remembers that it was rung, once. */
interface Bell {
  readonly ring: () => void;
  readonly silence: () => void;
  readonly rung: (signal: AbortSignal) => Promise<void>;
}

function createBell(): Bell {
  let rung = false;
  let wake: (() => void) | undefined;
  return {
    ring: () => {
      rung = true;
      wake?.();
    },
    silence: () => {
      rung = false;
    },
    rung: (signal) => {
      if (rung || signal.aborted) return Promise.resolve();
      return new Promise((resolve) => {
        wake = () => {
          wake = undefined;
          signal.removeEventListener('abort', done);
          resolve();
        };
        const done = wake;
        signal.addEventListener('abort', done, { once: true });
      });
    },
  };
}
