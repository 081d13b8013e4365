import { describe, expect, test } from 'vitest';
import type { CallEnd } from '../../mcp/wire/callRecord.ts';
import { createLog } from '../log.ts';
import { type JournalBounds, openJournal } from './journal.ts';
import { decodeLine, encodeLine } from './journalLine.ts';
import { type MemoryDisk, memoryDisk } from './testing/memoryDisk.ts';

const NOW = 1_800_000_000_000;
const LATER = NOW + 30_000;
const text = (value: string): CallEnd => ({ kind: 'result', result: { content: [{ type: 'text', text: value }] } });
const UNKNOWN: CallEnd = { kind: 'unknown', reason: 'process-ended' };
const call = (id: string, attempt = 1) => ({ id, attempt });

async function open(disk: MemoryDisk, limits: Partial<JournalBounds> = {}, clock = { now: NOW }) {
  return openJournal({ disk, log: createLog(() => {}), now: () => clock.now, limits: { retryMs: 0, ...limits } });
}

describe('what is kept', () => {
  test('[R11] never seen, running, done with its result; the same after a restart', async () => {
    const disk = memoryDisk();
    const journal = await open(disk);
    expect(journal.see(call('a'))).toBe('never-seen');
    expect(await journal.begin(call('a'), LATER)).toBe(true);
    expect(journal.see(call('a'))).toBe('running');
    expect(journal.see(call('a', 2))).toBe('never-seen');
    await journal.finish(call('a'), text('one'));
    expect(journal.see(call('a'))).toBe('done');
    expect(await journal.end(call('a'))).toEqual(text('one'));
    const next = await open(disk.after('process'));
    expect(next.see(call('a'))).toBe('done');
    expect(await next.end(call('a'))).toEqual(text('one'));
  });

  test.each<CallEnd>([
    text('ü\n\u2028 "'),
    { kind: 'result', result: { content: [], isError: true } },
    { kind: 'error', error: { code: -1, message: 'no', data: { own: [1] } } },
    { kind: 'unknown', reason: 'timeout' },
    { kind: 'not-started', reason: 'busy' },
    { kind: 'stopped' },
  ])('an end of each kind: %j', async (end) => {
    const disk = memoryDisk();
    const journal = await open(disk);
    await journal.begin(call('a'), LATER);
    await journal.finish(call('a'), end);
    expect(await journal.end(call('a'))).toEqual(end);
    expect(await (await open(disk.after('process'))).end(call('a'))).toEqual(end);
  });

  test('[R11] what ran when the process ended is unknown, in the file too', async () => {
    const disk = memoryDisk();
    const journal = await open(disk);
    await journal.begin(call('a'), LATER);
    const second = disk.after('process');
    expect(await (await open(second)).end(call('a'))).toEqual(UNKNOWN);
    expect(await (await open(second.after('node'))).end(call('a'))).toEqual(UNKNOWN);
  });

  test('the first end stays; an end of what was never begun is none', async () => {
    const journal = await open(memoryDisk());
    await journal.begin(call('a'), LATER);
    await journal.finish(call('a'), text('one'));
    await journal.finish(call('a'), text('two'));
    await journal.finish(call('b'), text('two'));
    expect(await journal.end(call('a'))).toEqual(text('one'));
    expect(journal.see(call('b'))).toBe('never-seen');
  });

  test('a fence outlives the node once it was told, and what runs cannot be fenced', async () => {
    const disk = memoryDisk();
    const journal = await open(disk);
    await journal.begin(call('a'), LATER);
    expect(await journal.fence(call('b'))).toBe(true);
    expect(await journal.fence(call('a'))).toBe(true);
    expect(journal.see(call('a'))).toBe('running');
    expect((await open(disk.after('node'))).see(call('b'))).toBe('fenced');
  });

  test('[I13] what was begun is on the disk; calls at the same time share a sync', async () => {
    const disk = memoryDisk();
    const journal = await open(disk);
    const before = disk.syncs();
    const ids = Array.from({ length: 50 }, (_, at) => call(`c${at}`));
    expect(await Promise.all(ids.map((id) => journal.begin(id, LATER)))).not.toContain(false);
    expect(disk.syncs() - before).toBeLessThanOrEqual(2);
    const next = await open(disk.after('node'));
    expect(ids.map((id) => next.see(id))).toEqual(ids.map(() => 'done'));
  });
});

describe('crashes', () => {
  /** Begins, ends and fences; tells what was told. */
  async function work(disk: MemoryDisk, limits: Partial<JournalBounds> = {}) {
    const told = new Map<string, 'begun' | 'ended' | 'fenced'>();
    const journal = await open(disk, limits);
    for (const id of ['a', 'b', 'c', 'd']) {
      if (await journal.begin(call(id), LATER)) told.set(id, 'begun');
      if (id === 'd') continue;
      await journal.finish(call(id), text(id.repeat(200)));
      if (told.has(id)) told.set(id, 'ended');
      if (await journal.fence(call(`f${id}`))) told.set(`f${id}`, 'fenced');
    }
    return told;
  }

  /** What must be true after any crash of what was told before it. */
  async function check(told: Awaited<ReturnType<typeof work>>, disk: MemoryDisk, ends: 'kept' | 'perhaps') {
    const journal = await open(disk);
    for (const [id, what] of told) {
      if (what === 'fenced') expect(journal.see(call(id)), id).toBe('fenced');
      else expect(journal.see(call(id)), id).toBe('done');
      const end = what === 'fenced' ? undefined : await journal.end(call(id));
      const whole = text(id.repeat(200));
      if (what === 'begun') expect([UNKNOWN, whole]).toContainEqual(end);
      if (what === 'ended') expect(ends === 'kept' ? [whole] : [whole, UNKNOWN]).toContainEqual(end);
    }
    expect(journal.see(call('never'), LATER)).toBe('never-seen');
  }

  const LIMITS: readonly [string, Partial<JournalBounds>][] = [
    ['appended to', {}],
    ['replaced at each write', { fileBytes: 0 }],
  ];

  describe.each(LIMITS)('[I10] [I13] [R11] a file that is %s', (_name, limits) => {
    test('the process dies after any operation', async () => {
      const whole = memoryDisk();
      await work(whole, limits);
      expect(whole.operations()).toBeGreaterThan(15);
      for (let at = 0; at <= whole.operations(); at++) {
        const disk = memoryDisk();
        disk.failAfter = at;
        // From the failing operation on nothing reaches the disk, as if the process were no more.
        const told = await work(disk, { ...limits, retryMs: Number.POSITIVE_INFINITY });
        await check(told, disk.after('process'), at === whole.operations() ? 'kept' : 'perhaps');
      }
    });

    test('the node goes down after any operation, at any byte of what was not synced', async () => {
      const whole = memoryDisk();
      await work(whole, limits);
      for (let at = 0; at <= whole.operations(); at++) {
        for (const torn of [0, 1, 9, 150, 100_000]) {
          const disk = memoryDisk();
          disk.failAfter = at;
          const told = await work(disk, { ...limits, retryMs: Number.POSITIVE_INFINITY });
          await check(told, disk.after('node', torn), 'perhaps');
        }
      }
    });
  });

  test('[R11] a file that is cut at every byte: what was told before stays, and what follows is served', async () => {
    const disk = memoryDisk();
    const journal = await open(disk);
    await journal.begin(call('a'), LATER);
    await journal.finish(call('a'), text('one'));
    const whole = disk.file('journal') ?? Buffer.alloc(0);
    await journal.begin(call('b'), LATER);
    const longer = disk.file('journal') ?? Buffer.alloc(0);
    expect(longer.length).toBeGreaterThan(whole.length);
    for (let cut = whole.length; cut < longer.length; cut++) {
      for (const tail of [Buffer.alloc(0), Buffer.alloc(40), Buffer.from('\n'), Buffer.from('00000000 {}\n')]) {
        const torn = memoryDisk();
        torn.put('journal', Buffer.concat([longer.subarray(0, cut), tail]));
        const next = await open(torn);
        expect(await next.end(call('a'))).toEqual(text('one'));
        const begun = next.see(call('b'), LATER);
        expect(begun, `cut at ${cut}`).toBe(cut === longer.length - 1 && tail[0] === 0x0a ? 'done' : 'never-seen');
        expect(await next.begin(call('c'), LATER)).toBe(true);
        expect((await open(torn.after('node'))).see(call('c'))).toBe('done');
      }
    }
  });

  test('where what was surely written cannot be read, nothing is said never to have been seen for a while', async () => {
    const clock = { now: NOW };
    const disk = memoryDisk();
    const journal = await open(disk);
    await journal.begin(call('a'), LATER);
    await journal.begin(call('c'), LATER);
    await journal.finish(call('c'), text('c'));
    const bytes = Buffer.from(disk.file('journal') ?? '');
    bytes[bytes.indexOf('"id":"a"') + 6] = 0x7a;
    disk.put('journal', bytes);
    const next = await open(disk, {}, clock);
    expect(next.see(call('a'), LATER)).toBe('forgotten');
    expect(next.see(call('a'))).toBe('forgotten');
    expect(await next.end(call('c'))).toEqual(text('c'));
    expect(next.see(call('new'), NOW + 90_000)).toBe('never-seen');
    // It is as doubtful after the next restart.
    expect((await open(disk.after('node'))).see(call('a'), LATER)).toBe('forgotten');
  });

  test('a file that is none is doubted as a whole', async () => {
    const disk = memoryDisk();
    disk.put('journal', Buffer.from('what is this\n'));
    const journal = await open(disk);
    expect(journal.see(call('a'), LATER)).toBe('forgotten');
    expect(await journal.begin(call('b'), NOW + 90_000)).toBe(true);
  });
});

describe('[I13] a disk that fails', () => {
  test('nothing is begun; it is tried again later, with a new file; what is known stays known', async () => {
    const disk = memoryDisk();
    const clock = { now: NOW };
    const journal = await open(disk, { retryMs: 1_000 }, clock);
    await journal.begin(call('a'), LATER);
    await journal.begin(call('r'), LATER);
    await journal.finish(call('a'), text('one'));
    disk.failAfter = disk.operations();
    expect(await journal.begin(call('b'), LATER)).toBe(false);
    expect(journal.problem()).toContain('ENOSPC');
    expect(journal.see(call('b'))).toBe('never-seen');
    expect(await journal.fence(call('f'))).toBe(false);
    expect(await journal.end(call('a'))).toEqual(text('one'));
    await journal.finish(call('r'), text('late'));
    expect(await journal.end(call('r'))).toEqual({ kind: 'result', lost: true, isError: false });
    disk.failAfter = Number.POSITIVE_INFINITY;
    expect(await journal.begin(call('b'), LATER)).toBe(false);
    clock.now += 1_000;
    expect(await journal.begin(call('b'), LATER)).toBe(true);
    expect(journal.problem()).toBeUndefined();
    const next = await open(disk.after('node'));
    expect(await next.end(call('a'))).toEqual(text('one'));
    expect(await next.end(call('r'))).toEqual({ kind: 'result', lost: true, isError: false });
    expect(next.see(call('b'))).toBe('done');
    expect(next.see(call('f'))).toBe('never-seen');
  });

  test('a folder that is not there', async () => {
    const missing = { open: async () => undefined, create: () => Promise.reject(new Error('ENOENT')) };
    const journal = await openJournal({ disk: { ...memoryDisk(), ...missing }, log: createLog(() => {}) });
    expect(await journal.begin(call('a'), Date.now())).toBe(false);
    expect(journal.problem()).toContain('ENOENT');
    await journal.close();
  });

  test('a disk that hangs is not waited for by those who come later', async () => {
    const disk = memoryDisk();
    const clock = { now: NOW };
    const journal = await open(disk, {}, clock);
    const held = Promise.withResolvers<void>();
    disk.hold = held.promise;
    const first = journal.begin(call('a'), LATER);
    clock.now += 6_000;
    expect(await journal.begin(call('b'), LATER)).toBe(false);
    const given = journal.finish(call('a'), { kind: 'not-started', reason: 'journal' });
    held.resolve();
    expect(await first).toBe(true);
    await given;
    expect(await journal.end(call('a'))).toEqual({ kind: 'not-started', reason: 'journal' });
  });
});

describe('bounds', () => {
  const LOST = { kind: 'result', lost: true, isError: false };
  async function ended(journal: Awaited<ReturnType<typeof open>>, id: string, end = text('x'.repeat(1_000))) {
    expect(await journal.begin(call(id), LATER)).toBe(true);
    await journal.finish(call(id), end);
  }

  test('answers: the oldest are dropped first; that they were made stays known', async () => {
    const disk = memoryDisk();
    const journal = await open(disk, { answerBytes: 3_500, fileBytes: 8_000 });
    for (const id of ['a', 'b', 'c', 'd', 'e']) await ended(journal, id);
    for (const id of ['a', 'b']) expect(await journal.end(call(id))).toEqual(LOST);
    for (const id of ['c', 'd', 'e']) expect(await journal.end(call(id))).toMatchObject({ result: {} });
    const next = await open(disk.after('process'), { answerBytes: 3_500 });
    expect(await next.end(call('a'))).toEqual(LOST);
    expect(await next.end(call('e'))).toMatchObject({ result: {} });
  });

  test('one answer that is too large is not kept', async () => {
    const journal = await open(memoryDisk(), { oneAnswerBytes: 2_000 });
    await ended(journal, 'a', { kind: 'result', result: { content: [], isError: true, more: 'x'.repeat(3_000) } });
    expect(await journal.end(call('a'))).toEqual({ ...LOST, isError: true });
    await ended(journal, 'b');
    expect(await journal.end(call('b'))).toMatchObject({ result: {} });
  });

  test('time: answers go first, then the attempts, in the file too', async () => {
    const clock = { now: NOW };
    const disk = memoryDisk();
    await ended(await open(disk, {}, clock), 'a');
    clock.now += 3_600_000;
    expect(await (await open(disk, {}, clock)).end(call('a'))).toEqual(LOST);
    expect(disk.file('journal')?.length).toBeLessThan(1_000);
    clock.now += 23 * 3_600_000;
    const last = await open(disk, {}, clock);
    expect(last.see(call('a'))).toBe('forgotten');
    // Whoever says what the grant was learns more.
    expect(last.see(call('a'), LATER)).toBe('forgotten');
    expect(last.see(call('b'), LATER + 1)).toBe('never-seen');
  });

  test('attempts: the oldest that cannot come any more is forgotten, never one that can', async () => {
    const clock = { now: NOW };
    const journal = await open(memoryDisk(), { entries: 3 }, clock);
    for (const id of ['a', 'b']) await ended(journal, id);
    await journal.begin(call('running'), NOW + 10);
    expect(await journal.begin(call('d'), LATER)).toBe(false);
    expect(await journal.fence(call('d'))).toBe(false);
    clock.now = LATER + 1;
    expect(await journal.begin(call('d'), LATER + 30_000)).toBe(true);
    expect(['a', 'b', 'running'].map((id) => journal.see(call(id)))).toEqual(['forgotten', 'done', 'running']);
  });

  test('the file: much longer than what it is for, it is replaced', async () => {
    const disk = memoryDisk();
    const journal = await open(disk, { answerBytes: 4_000, fileBytes: 20_000 });
    for (let at = 0; at < 200; at++) await ended(journal, `c${at}`, at % 2 === 0 ? text('y'.repeat(1_500)) : undefined);
    expect(disk.file('journal')?.length).toBeLessThan(70_000);
    expect(await journal.end(call('c199'))).toEqual(text('x'.repeat(1_000)));
    expect(journal.see(call('c0'))).toBe('done');
  });
});

describe('lines', () => {
  const line = encodeLine({ line: 'run', id: 'a', attempt: 1, at: 1, notAfter: 2, synced: 0 });
  test('a line with any bit changed is none', () => {
    const body = line.subarray(0, -1);
    expect(decodeLine(body)).toMatchObject({ line: 'run', id: 'a' });
    for (let bit = 0; bit < body.length * 8; bit++) {
      const changed = Buffer.from(body);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(decodeLine(changed), `bit ${bit}`).toBeUndefined();
    }
  });
  test.each([
    '{}',
    '[]',
    '{"line":"run"}',
    '{"line":"done","id":"a","attempt":1,"at":1,"notAfter":1,"end":{}}',
    '{"line":"journal","version":2,"horizon":1}',
  ])('a sum over what is no line of ours does not make it one: %s', (json) => {
    const template = encodeLine({ line: 'journal', version: 1, horizon: 0 });
    expect(decodeLine(template.subarray(0, -1))).toBeDefined();
    const { crc32 } = process.getBuiltinModule('node:zlib');
    const sum = crc32(json).toString(16).padStart(8, '0');
    expect(decodeLine(Buffer.from(`${sum} ${json}`))).toBeUndefined();
  });
});
