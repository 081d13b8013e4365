/**
 * The record of calls that must not be made twice: written before the tool sees them, and read by whoever comes after a
 * crash. One file, only appended to, replaced by a shorter one now and then. After an error of the disk nothing is begun
 * until a whole new file could be written: what an error leaves behind it is read by nobody.
 */
import type { CallKey } from '../../mcp/wire/callOrders.ts';
import type { CallEnd } from '../../mcp/wire/callRecord.ts';
import type { Log } from '../log.ts';
import type { Disk, DiskFile } from './disk.ts';
import {
  createJournalIndex,
  hasAnswer,
  type JournalLimits,
  type Place,
  type Seen,
  withoutAnswer,
} from './journalIndex.ts';
import { decodeLine, encodeLine, type JournalLine } from './journalLine.ts';

export interface JournalOptions {
  readonly disk: Disk;
  readonly log: Log;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  readonly limits?: Partial<JournalBounds>;
}

export interface JournalBounds extends JournalLimits {
  /** A longer file is replaced by one without what was dropped. */
  readonly fileBytes: number;
  /** How often what is too old is looked for. */
  readonly pruneMs: number;
  /** After an error of the disk, before it is tried again. */
  readonly retryMs: number;
  /** A write that takes longer makes others wait for nothing. */
  readonly stalledMs: number;
}

/** `journal`'s volume in the pod holds the file, its successor, and what is written meanwhile: see `pod.ts`. */
export const JOURNAL_BOUNDS: JournalBounds = {
  entries: 8_192,
  entryMs: 24 * 3_600_000,
  answerBytes: 16 * 1024 * 1024,
  oneAnswerBytes: 5 * 1024 * 1024,
  answerMs: 3_600_000,
  fileBytes: 32 * 1024 * 1024,
  pruneMs: 300_000,
  retryMs: 1_000,
  stalledMs: 5_000,
};

export interface Journal {
  /** @param notAfter without it, an attempt that may have been forgotten counts as such */
  readonly see: (key: CallKey, notAfter?: number) => Seen;
  /** True once it is on the disk that this attempt runs; false: it is not, and nothing may run. Never rejects. */
  readonly begin: (key: CallKey, notAfter: number) => Promise<boolean>;
  /** Resolves when the end of what was begun is written, or cannot be: it is known in memory all the same. */
  readonly finish: (key: CallKey, end: CallEnd) => Promise<void>;
  /** True once it is on the disk that this attempt may never run. */
  readonly fence: (key: CallKey, notAfter?: number) => Promise<boolean>;
  /** How an attempt ended, with its answer where that is kept. */
  readonly end: (key: CallKey) => Promise<CallEnd | undefined>;
  /** Why nothing can be begun now. */
  readonly problem: () => string | undefined;
  readonly close: () => Promise<void>;
}

interface Write {
  /** @param synced bytes that are surely on the disk */
  readonly line: (synced: number) => JournalLine;
  /** Must outlive the node before it is told. */
  readonly durable: boolean;
  readonly settle: (written: boolean) => void;
}

const NAME = 'journal';
const NEXT = 'journal.next';
const PART_BYTES = 256 * 1024;
const MAX_WAITING = 1_024;
/** Of what is written at once: the file grows by no more beyond its bound. */
const BATCH_BYTES = 4 * 1024 * 1024;
/** A fence without a grant's end is kept for as long as any grant is thought to last. */
const FENCE_MS = 3_600_000;
/** Where what was surely written cannot be read, no attempt with a grant until then is said never to have been seen. */
const DOUBT_MS = 60_000;
/** What an attempt takes in the file, without its answer. */
const ENTRY_BYTES = 256;

/** Reads what a predecessor left: what ran then has an unknown outcome. Never rejects. */
export async function openJournal(options: JournalOptions): Promise<Journal> {
  const { disk, log, now = Date.now } = options;
  const bounds = { ...JOURNAL_BOUNDS, ...options.limits };
  const index = createJournalIndex(bounds);
  let file: DiskFile | undefined;
  let fileBytes = 0;
  let syncedBytes = 0;
  let trouble: string | undefined = 'the journal is not open yet';
  let triedMs = Number.NEGATIVE_INFINITY;
  let shorten = false;
  let closed = false;
  const queue: Write[] = [];
  let writing: Promise<void> | undefined;
  let writingSinceMs = 0;

  const fail = (what: string, error: unknown): void => {
    const reason = `${what}: ${error instanceof Error ? error.message : String(error)}`;
    if (trouble !== reason) log('error', 'the journal of calls cannot be written', { reason });
    trouble = reason;
  };

  async function load(): Promise<void> {
    try {
      file = await disk.open(NAME);
      if (file !== undefined) await replay(file);
    } catch (error) {
      fail('it cannot be read', error);
      index.raiseHorizon(now() + DOUBT_MS);
    }
    for (const entry of index.entries()) {
      if (entry.state !== 'running') continue;
      entry.state = 'done';
      entry.end = { kind: 'unknown', reason: 'process-ended' };
    }
    await replace();
  }

  async function replay(from: DiskFile): Promise<void> {
    const size = await from.size();
    let rest: Buffer = Buffer.alloc(0);
    let restAt = 0;
    let torn = Number.POSITIVE_INFINITY;
    let synced = 1;
    const take = (bytes: Buffer, at: number): void => {
      const line = decodeLine(bytes);
      if (line === undefined || (line.line === 'journal') !== (at === 0)) {
        torn = Math.min(torn, at);
        return;
      }
      if (line.line === 'run' || line.line === 'fence') synced = Math.max(synced, line.synced);
      index.apply(line, { at, length: bytes.length + 1 });
    };
    for (let at = 0; at < size; ) {
      const part = await from.read(at, Math.min(PART_BYTES, size - at));
      if (part.length === 0) break;
      at += part.length;
      rest = rest.length === 0 ? part : Buffer.concat([rest, part]);
      for (let newline = rest.indexOf(0x0a); newline !== -1; newline = rest.indexOf(0x0a)) {
        take(rest.subarray(0, newline), restAt);
        restAt += newline + 1;
        rest = rest.subarray(newline + 1);
      }
      if (rest.length > bounds.oneAnswerBytes + PART_BYTES) throw new Error('a line of it does not end');
    }
    // What was on its way to the disk when the node went down may be torn anywhere; nothing followed from it yet.
    if (torn < synced || restAt === 0) index.raiseHorizon(now() + DOUBT_MS);
  }

  /** Writes all that is known into a new file, which then takes the place of the old one. */
  async function replace(): Promise<boolean> {
    triedMs = now();
    index.prune(now());
    let next: DiskFile | undefined;
    try {
      next = await disk.create(NEXT);
      const places = await copy(next);
      await next.sync();
      await disk.rename(NEXT, NAME);
      for (const [entry, place] of places.answers) entry.answer = place;
      const old = file;
      file = next;
      fileBytes = places.bytes;
      syncedBytes = places.bytes;
      shorten = false;
      if (trouble !== undefined) log('info', 'the journal of calls is open', { entries: index.size() });
      trouble = undefined;
      await old?.close().catch(() => {});
      return true;
    } catch (error) {
      fail('a new file cannot be written', error);
      await next?.close().catch(() => {});
      return false;
    }
  }

  async function copy(next: DiskFile) {
    const answers = new Map<ReturnType<typeof index.get> & object, Place>();
    let bytes = 0;
    let parts: Buffer[] = [];
    let partBytes = 0;
    const flush = async (): Promise<void> => {
      await next.append(Buffer.concat(parts));
      parts = [];
      partBytes = 0;
    };
    const add = async (part: Buffer): Promise<void> => {
      parts.push(part);
      partBytes += part.length;
      bytes += part.length;
      if (partBytes >= PART_BYTES) await flush();
    };
    await add(encodeLine({ line: 'journal', version: 1, horizon: index.horizon() }));
    for (const entry of index.entries()) {
      const { id, attempt, at, notAfter, state, end, answer } = entry;
      const kept = answer === undefined ? undefined : (await readPlace(answer))?.bytes;
      if (kept !== undefined) {
        answers.set(entry, { at: bytes, length: kept.length });
        await add(kept);
        continue;
      }
      if (answer !== undefined) index.drop(entry);
      const about = { id, attempt, at, notAfter };
      if (state === 'done' && end !== undefined) await add(encodeLine({ line: 'done', ...about, end }));
      else await add(encodeLine({ line: state === 'fenced' ? 'fence' : 'run', ...about, synced: 0 }));
    }
    await flush();
    return { answers, bytes };
  }

  /** A line of the file, with its newline; undefined where it is not what was written. */
  async function readPlace({ at, length }: Place): Promise<{ bytes: Buffer; line: JournalLine } | undefined> {
    const bytes = await file?.read(at, length).catch(() => undefined);
    const line = bytes?.length === length ? decodeLine(bytes.subarray(0, -1)) : undefined;
    return bytes === undefined || line === undefined ? undefined : { bytes, line };
  }

  const wantsReplacing = (): boolean => {
    const needed = index.answerBytes() + ENTRY_BYTES * index.size();
    return shorten || (fileBytes > bounds.fileBytes / 4 && fileBytes > 2 * needed) || fileBytes > bounds.fileBytes;
  };

  async function write(): Promise<void> {
    while (queue.length > 0 || shorten) {
      writingSinceMs = now();
      const usable = trouble === undefined && file !== undefined;
      const mayTry = usable ? wantsReplacing() : now() - triedMs >= bounds.retryMs;
      if (mayTry) await replace();
      shorten = false;
      if (trouble !== undefined || file === undefined) {
        for (const each of queue.splice(0)) each.settle(false);
        continue;
      }
      const batch: { bytes: Buffer; line: JournalLine; write: Write }[] = [];
      for (let bytes = 0; bytes < BATCH_BYTES && queue.length > 0; bytes += batch.at(-1)?.bytes.length ?? 0) {
        const [each] = queue.splice(0, 1);
        if (each === undefined) break;
        const line = each.line(syncedBytes);
        batch.push({ line, bytes: encodeLine(line), write: each });
      }
      try {
        await file.append(Buffer.concat(batch.map(({ bytes }) => bytes)));
        if (batch.some((each) => each.write.durable)) await file.sync();
      } catch (error) {
        fail('it cannot be written', error);
        for (const each of batch) each.write.settle(false);
        continue;
      }
      for (const { line, bytes, write: each } of batch) {
        index.apply(line, { at: fileBytes, length: bytes.length });
        fileBytes += bytes.length;
        each.settle(true);
      }
      if (batch.some((each) => each.write.durable)) syncedBytes = fileBytes;
    }
  }

  function wake(): void {
    writing ??= write().finally(() => {
      writing = undefined;
    });
  }

  function append(line: Write['line'], durable: boolean): Promise<boolean> {
    const stalled = writing !== undefined && now() - writingSinceMs > bounds.stalledMs;
    if (closed || (durable && (stalled || queue.length >= MAX_WAITING))) return Promise.resolve(false);
    const { promise, resolve } = Promise.withResolvers<boolean>();
    queue.push({ line, durable, settle: resolve });
    wake();
    return promise;
  }

  await load();
  const timer = setInterval(() => {
    if (!index.prune(now()) || trouble !== undefined) return;
    shorten = true;
    wake();
  }, bounds.pruneMs);
  timer.unref();

  return {
    see: (key, notAfter) => index.see(key, notAfter),
    async begin({ id, attempt }, notAfter) {
      if (!index.makeRoom(now())) return false;
      const at = now();
      return append((synced) => ({ line: 'run', id, attempt, at, notAfter, synced }), true);
    },
    async finish(key, end) {
      const entry = index.get(key) ?? (await settled());
      if (entry === undefined || entry.state !== 'running') return;
      const { id, attempt, notAfter } = entry;
      const line = { line: 'done', id, attempt, at: now(), notAfter, end } as const;
      const large = hasAnswer(end) && encodeLine(line).length > bounds.oneAnswerBytes;
      const kept: JournalLine = large ? { ...line, end: withoutAnswer(end) } : line;
      if (await append(() => kept, false)) return;
      entry.state = 'done';
      entry.end = withoutAnswer(end);

      /** What was begun and given up may still be written. */
      async function settled() {
        await writing;
        return index.get(key);
      }
    },
    async fence({ id, attempt }, notAfter) {
      if (!index.makeRoom(now())) return false;
      const at = now();
      const until = notAfter ?? at + FENCE_MS;
      return append((synced) => ({ line: 'fence', id, attempt, at, notAfter: until, synced }), true);
    },
    async end(key) {
      const entry = index.get(key);
      if (entry?.answer === undefined) return entry?.end;
      // The file may be replaced meanwhile, and the line be elsewhere.
      for (let tries = 0; tries < 2 && entry.answer !== undefined; tries++) {
        const line = (await readPlace(entry.answer))?.line;
        if (line?.line === 'done' && line.id === key.id && line.attempt === key.attempt) return line.end;
      }
      return entry.end;
    },
    problem: () => trouble,
    async close() {
      closed = true;
      clearInterval(timer);
      await writing;
      await file?.close().catch(() => {});
      file = undefined;
    },
  };
}
