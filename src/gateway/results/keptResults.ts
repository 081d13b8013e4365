/**
 * What of large results was not given yet, in this process's memory for a while: bounded for each account and in all, named
 * by chance, and given to nobody but the account that was given the first part.
 */
import { randomBytes } from 'node:crypto';
import type { Target } from '../view.ts';

export interface KeptResult {
  readonly target: Target;
  /** It is text from outside. */
  readonly outside: boolean;
  readonly parts: readonly string[];
}

export interface KeptResults {
  /** The name under which it is read on; undefined where it is more than is kept. */
  readonly keep: (account: string, result: KeptResult) => string | undefined;
  readonly read: (account: string, name: string) => KeptResult | undefined;
  /** Whether this account was given a part of a result lately: then it is shown how to read on. */
  readonly hasReader: (account: string) => boolean;
  /** Called with the account when that changes. */
  readonly onChange: (listener: (account: string) => void) => () => void;
  /** Characters. */
  readonly size: () => number;
}

export interface KeptResultsOptions {
  readonly charsPerAccount?: number;
  readonly chars?: number;
  readonly lifetimeMs?: number;
  /** How long an account that was given a part is shown how to read on. */
  readonly readerMs?: number;
  readonly now?: () => number;
}

interface Entry {
  readonly account: string;
  readonly result: KeptResult;
  readonly chars: number;
  readonly untilMs: number;
}

const MAX_READERS = 4_096;

export function createKeptResults(options: KeptResultsOptions = {}): KeptResults {
  const { charsPerAccount = 8 << 20, chars: most = 32 << 20 } = options;
  const { lifetimeMs = 15 * 60_000, readerMs = 24 * 3_600_000 } = options;
  const now = options.now ?? (() => performance.now());
  /** The oldest first. */
  const entries = new Map<string, Entry>();
  const readers = new Map<string, number>();
  const listeners = new Set<(account: string) => void>();
  let total = 0;

  const drop = (name: string): void => {
    total -= entries.get(name)?.chars ?? 0;
    entries.delete(name);
  };
  const makeRoom = (account: string, wanted: number): void => {
    const atMs = now();
    for (const [name, entry] of entries) if (entry.untilMs <= atMs) drop(name);
    const own = [...entries].filter(([, entry]) => entry.account === account);
    let held = own.reduce((sum, [, entry]) => sum + entry.chars, 0);
    for (const [name, entry] of own) {
      if (held + wanted <= charsPerAccount) break;
      held -= entry.chars;
      drop(name);
    }
    for (const name of [...entries.keys()]) {
      if (total + wanted <= most) break;
      drop(name);
    }
  };

  return {
    keep: (account, result) => {
      const chars = result.parts.reduce((sum, part) => sum + part.length, 0);
      if (chars > charsPerAccount || chars > most) return undefined;
      makeRoom(account, chars);
      const name = randomBytes(9).toString('base64url');
      entries.set(name, { account, result, chars, untilMs: now() + lifetimeMs });
      total += chars;
      const isNew = (readers.get(account) ?? Number.NEGATIVE_INFINITY) <= now();
      readers.delete(account);
      readers.set(account, now() + readerMs);
      const [[oldest] = ['']] = readers;
      if (readers.size > MAX_READERS) readers.delete(oldest);
      if (isNew) for (const listener of [...listeners]) listener(account);
      return name;
    },
    read: (account, name) => {
      const entry = entries.get(name);
      return entry !== undefined && entry.account === account && entry.untilMs > now() ? entry.result : undefined;
    },
    hasReader: (account) => (readers.get(account) ?? Number.NEGATIVE_INFINITY) > now(),
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    size: () => total,
  };
}
