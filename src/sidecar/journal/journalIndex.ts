/** What the journal's file says, in memory: which attempts were seen and how they ended, bounded. Answers stay in the file. Pure. */
import type { CallKey } from '../../mcp/wire/callOrders.ts';
import type { CallEnd } from '../../mcp/wire/callRecord.ts';
import type { JournalLine } from './journalLine.ts';

export interface JournalLimits {
  /** Attempts that are remembered; more of them whose grants may still be used are not begun. */
  readonly entries: number;
  readonly entryMs: number;
  /** Answers that are kept, all together, one alone, and for how long. */
  readonly answerBytes: number;
  readonly oneAnswerBytes: number;
  readonly answerMs: number;
}

/** A line of the file, newline included. */
export interface Place {
  readonly at: number;
  readonly length: number;
}

export interface Entry extends CallKey {
  readonly at: number;
  readonly notAfter: number;
  state: 'running' | 'fenced' | 'done';
  /** How it ended, without its answer. */
  end: CallEnd | undefined;
  /** Where the answer is. */
  answer: Place | undefined;
}

export type Seen = 'never-seen' | 'forgotten' | Entry['state'];

export interface JournalIndex {
  readonly size: () => number;
  readonly horizon: () => number;
  readonly raiseHorizon: (notAfter: number) => void;
  readonly answerBytes: () => number;
  readonly entries: () => Iterable<Entry>;
  readonly get: (key: CallKey) => Entry | undefined;
  readonly see: (key: CallKey, notAfter: number | undefined) => Seen;
  /** Takes a line in as the file holds it. What was known of an attempt before stays. */
  readonly apply: (line: JournalLine, place: Place) => void;
  /** Its answer is not to be had any more. */
  readonly drop: (entry: Entry) => void;
  /** Whether there is room for one more attempt, for which the oldest that cannot come again is forgotten. */
  readonly makeRoom: (now: number) => boolean;
  /** Drops and forgets what is too old. True: an answer was dropped. */
  readonly prune: (now: number) => boolean;
}

export function createJournalIndex(limits: JournalLimits): JournalIndex {
  const entries = new Map<string, Entry>();
  /** In the order in which they were answered. */
  const answered = new Map<Entry, number>();
  let answerBytes = 0;
  let horizon = 0;

  const drop = (entry: Entry): void => {
    if (entry.answer === undefined) return;
    answerBytes -= entry.answer.length;
    entry.answer = undefined;
    answered.delete(entry);
  };
  const forget = (entry: Entry): void => {
    drop(entry);
    entries.delete(keyText(entry));
    horizon = Math.max(horizon, entry.notAfter);
  };
  const keep = (entry: Entry, place: Place, now: number): void => {
    entry.answer = place;
    answered.set(entry, now);
    answerBytes += place.length;
    for (const oldest of answered.keys()) {
      if (answerBytes <= limits.answerBytes) break;
      drop(oldest);
    }
  };
  const mayForget = (entry: Entry, now: number): boolean => entry.state !== 'running' && entry.notAfter < now;

  return {
    size: () => entries.size,
    horizon: () => horizon,
    raiseHorizon(notAfter) {
      horizon = Math.max(horizon, notAfter);
    },
    answerBytes: () => answerBytes,
    entries: () => entries.values(),
    get: (key) => entries.get(keyText(key)),
    see(key, notAfter) {
      const entry = entries.get(keyText(key));
      if (entry !== undefined) return entry.state;
      return horizon > 0 && (notAfter === undefined || notAfter <= horizon) ? 'forgotten' : 'never-seen';
    },
    apply(line, place) {
      if (line.line === 'journal') {
        horizon = Math.max(horizon, line.horizon);
        return;
      }
      const { id, attempt, at, notAfter } = line;
      const known = entries.get(keyText(line));
      if (known === undefined || (known.state === 'running' && line.line === 'done')) {
        const entry: Entry = known ?? {
          id,
          attempt,
          at,
          notAfter,
          state: 'running',
          end: undefined,
          answer: undefined,
        };
        entries.set(keyText(entry), entry);
        if (line.line === 'fence') entry.state = 'fenced';
        if (line.line !== 'done') return;
        entry.state = 'done';
        entry.end = withoutAnswer(line.end);
        if (hasAnswer(line.end)) keep(entry, place, at);
      }
    },
    drop,
    makeRoom(now) {
      if (entries.size < limits.entries) return true;
      for (const entry of entries.values()) {
        if (!mayForget(entry, now)) continue;
        forget(entry);
        return true;
      }
      return false;
    },
    prune(now) {
      let dropped = false;
      for (const [entry, since] of answered) {
        if (now - since < limits.answerMs) break;
        drop(entry);
        dropped = true;
      }
      for (const entry of entries.values()) {
        if (now - entry.at >= limits.entryMs && mayForget(entry, now)) forget(entry);
      }
      return dropped;
    },
  };
}

export function keyText({ id, attempt }: CallKey): string {
  return `${attempt} ${id}`;
}

export function hasAnswer(end: CallEnd): boolean {
  return (end.kind === 'result' || end.kind === 'error') && !('lost' in end);
}

/** The same end, whose answer is lost. */
export function withoutAnswer(end: CallEnd): CallEnd {
  if (end.kind === 'error') return { kind: 'error', lost: true };
  if (end.kind !== 'result' || 'lost' in end) return end;
  return { kind: 'result', lost: true, isError: end.result['isError'] === true };
}
