/**
 * Which jobs have read text from outside: of a remote server, or of a function that reaches into the open world. Kept in
 * this process's memory, for each account by itself and bounded; where something had to be forgotten, whatever job of
 * that account is not known counts as having read such text.
 */

/** Carried by a job once it read text from outside. */
export const OUTSIDE = 'outside';

const CARRIED: readonly string[] = [OUTSIDE];
const NONE: readonly string[] = [];

export interface JobLabels {
  /** @param account namespace and ServiceAccount */
  readonly of: (account: string, job: string) => readonly string[];
  readonly readOutside: (account: string, job: string) => void;
  readonly size: () => number;
}

export interface JobLabelsOptions {
  readonly jobsPerAccount?: number;
  readonly accounts?: number;
  /** Since a job last read text from outside. */
  readonly lifetimeMs?: number;
  /** Milliseconds on a scale that only grows. */
  readonly now?: () => number;
}

interface Account {
  /** Job → until when it is remembered; the oldest first. */
  readonly jobs: Map<string, number>;
  /** Until when a job that is not known may be one that was forgotten. */
  forgottenUntilMs: number;
}

export function createJobLabels(options: JobLabelsOptions = {}): JobLabels {
  const { jobsPerAccount = 2_048, accounts: most = 1_024, lifetimeMs = 24 * 3_600_000 } = options;
  const now = options.now ?? (() => performance.now());
  const accounts = new Map<string, Account>();
  /** The same, for accounts that were forgotten as a whole. */
  let forgottenUntilMs = Number.NEGATIVE_INFINITY;

  const forgetExpired = (account: Account): void => {
    const atMs = now();
    for (const [job, untilMs] of account.jobs) {
      if (untilMs > atMs) return;
      account.jobs.delete(job);
    }
  };

  return {
    of: (key, job) => {
      const account = accounts.get(key);
      if (account === undefined) return now() < forgottenUntilMs ? CARRIED : NONE;
      const atMs = now();
      const untilMs = account.jobs.get(job) ?? account.forgottenUntilMs;
      return atMs < untilMs ? CARRIED : NONE;
    },
    readOutside: (key, job) => {
      const account = accounts.get(key) ?? { jobs: new Map<string, number>(), forgottenUntilMs };
      // Put at the end: the maps' order is that of use.
      accounts.delete(key);
      accounts.set(key, account);
      account.jobs.delete(job);
      account.jobs.set(job, now() + lifetimeMs);
      forgetExpired(account);
      if (account.jobs.size > jobsPerAccount) {
        const [[oldest, untilMs] = ['', 0]] = account.jobs;
        account.jobs.delete(oldest);
        account.forgottenUntilMs = Math.max(account.forgottenUntilMs, untilMs);
      }
      if (accounts.size > most) {
        const [[name, oldest] = ['', account]] = accounts;
        accounts.delete(name);
        forgottenUntilMs = Math.max(forgottenUntilMs, oldest.forgottenUntilMs, ...oldest.jobs.values());
      }
    },
    size: () => [...accounts.values()].reduce((sum, { jobs }) => sum + jobs.size, 0),
  };
}
