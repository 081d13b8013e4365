/** A closed loop of callers: each sends its next call when the last was answered. */
import { Pool } from 'undici';

/** What the tool answers with; a refusal is quicker, and is no call. */
export const RESULT_TEXT = 'x'.repeat(1_000);

export interface Target {
  readonly origin: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Where the server wants a certificate. */
  readonly tls?: { readonly key: string; readonly cert: string };
}

export interface Load {
  readonly calls: number;
  readonly failures: number;
  readonly seconds: number;
  /** Sorted, in milliseconds. */
  readonly latencies: readonly number[];
}

/** Ends after the time; where so many calls were not made by then, after up to four times as long. */
export async function runLoad(target: Target, callers: number, durationMs: number, leastCalls = 0): Promise<Load> {
  const pool = new Pool(target.origin, {
    connections: callers,
    pipelining: 1,
    connect: { rejectUnauthorized: false, ...target.tls },
  });
  const latencies: number[] = [];
  let failures = 0;
  const started = performance.now();
  const until = started + durationMs;
  const longest = started + 4 * durationMs;
  const call = (): Promise<void> =>
    new Promise((resolve) => {
      let status = 0;
      let bytes = 0;
      pool.dispatch(
        { path: '/mcp', method: 'POST', headers: { ...target.headers }, body: target.body },
        {
          onRequestStart: () => {},
          onResponseStart: (_, code) => {
            status = code;
          },
          onResponseData: (_, chunk) => {
            bytes += chunk.length;
          },
          onResponseEnd: () => {
            if (status !== 200 || bytes < RESULT_TEXT.length) failures += 1;
            resolve();
          },
          onResponseError: () => {
            failures += 1;
            resolve();
          },
        },
      );
    });
  const caller = async (): Promise<void> => {
    while (performance.now() < until || (latencies.length < leastCalls && performance.now() < longest)) {
      const sent = performance.now();
      await call();
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const seconds = (performance.now() - started) / 1_000;
  await pool.close();
  return { calls: latencies.length, failures, seconds, latencies: latencies.sort((a, b) => a - b) };
}

/** Of sorted values; `share` 0.5 is the median. */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
