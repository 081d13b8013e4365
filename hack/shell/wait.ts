/** Waiting, always with a bound. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Failure } from './failure.ts';
import { interrupted } from './interrupt.ts';

export type Wait = {
  timeoutSeconds: number;
  everyMs?: number;
  hint?: string;
  log?: string;
  /** Says that waiting is pointless, and why: the program waited for has ended, say. */
  hopeless?: () => string | undefined;
};

/** Asks until the answer is something. What is thrown while asking is the reason given when time runs out. */
export async function waitFor<T>(
  what: string,
  ask: () => Promise<T | undefined> | T | undefined,
  wait: Wait,
): Promise<T> {
  const deadline = Date.now() + wait.timeoutSeconds * 1000;
  let cause: unknown;
  for (;;) {
    try {
      const answer = await ask();
      if (answer !== undefined) return answer;
      cause = undefined;
    } catch (error) {
      if (error instanceof Error && error.name === 'AbortError') throw error;
      cause = error;
    }
    const why = wait.hopeless?.();
    if (why !== undefined) throw new Failure(`${what}: ${why}`, { log: wait.log, hint: wait.hint, cause });
    if (Date.now() > deadline)
      throw new Failure(`${what}: not within ${wait.timeoutSeconds} s`, { log: wait.log, hint: wait.hint, cause });
    await sleep(wait.everyMs ?? 200, undefined, { signal: interrupted() });
  }
}
