import { describe, expect, test } from 'vitest';
import type { ToolCall } from '../mcp/handler.ts';
import type { JournalQuestion } from '../mcp/wire/callRecord.ts';
import { createCalls } from './calls.ts';
import { openJournal } from './journal/journal.ts';
import { type MemoryDisk, memoryDisk } from './journal/testing/memoryDisk.ts';
import { createLog } from './log.ts';
import type { SidecarCall } from './sidecarCall.ts';
import type { CallOutcome } from './toolProcess.ts';

const RESULT: CallOutcome = { kind: 'result', result: { content: [] } };
const signal = new AbortController().signal;

/** A tool that counts its calls, and answers each when it is told. */
function fakeTool() {
  const made: { call: SidecarCall; answer: (outcome: CallOutcome) => void }[] = [];
  return {
    made,
    refusal: () => undefined,
    call(call: SidecarCall): Promise<CallOutcome> {
      const { promise, resolve } = Promise.withResolvers<CallOutcome>();
      made.push({ call, answer: resolve });
      call.signal.addEventListener('abort', () => resolve({ kind: 'cancelled' }), { once: true });
      return promise;
    },
  };
}

async function setup(disk: MemoryDisk = memoryDisk()) {
  const tool = fakeTool();
  const journal = await openJournal({ disk, log: createLog(() => {}) });
  const calls = createCalls(tool, journal, { recordMs: 100, finishMs: 100 });
  const deliver = (id: string, more: object = {}) =>
    calls.call({
      name: 'act',
      arguments: {},
      meta: { 'ai.oz0/call': { id, attempt: 1, notAfter: Date.now() + 60_000, recorded: true, ...more } },
      signal,
    } satisfies ToolCall);
  const ask = (id: string, more: Partial<JournalQuestion> = {}) =>
    calls.ask({ id, attempt: 1, fence: false, stop: false, cancel: false, waitMs: 0, ...more }, signal);
  return { tool, disk, deliver, ask };
}

async function until(condition: () => boolean): Promise<void> {
  for (let turn = 0; !condition(); turn++) {
    if (turn > 10_000) throw new Error('did not come');
    await new Promise((resolve) => setImmediate(resolve));
  }
}
const failed = (outcome: string, reason: string) => ({ error: { data: { 'ai.oz0/outcome': outcome, reason } } });

describe('a disk that fails or hangs', () => {
  test('[I13] a call that cannot be written down is not started, nor fenced', async () => {
    const { tool, disk, deliver, ask } = await setup();
    disk.failAfter = disk.operations();
    expect(await deliver('a')).toMatchObject(failed('not-started', 'journal'));
    expect(await ask('a')).toEqual({ state: 'never-seen' });
    expect(await ask('a', { fence: true })).toBeUndefined();
    expect(await ask('a', { stop: true })).toBeUndefined();
    expect(tool.made).toHaveLength(0);
  });

  test('[I13] one that is written down too late is not started either, and stays so', async () => {
    const { tool, disk, deliver, ask } = await setup();
    const held = Promise.withResolvers<void>();
    disk.hold = held.promise;
    expect(await deliver('a')).toMatchObject(failed('not-started', 'journal'));
    expect(await ask('a')).toEqual({ state: 'running' });
    held.resolve();
    const done = { state: 'done', outcome: { kind: 'not-started', reason: 'journal' } };
    expect(await ask('a', { waitMs: 1_000 })).toEqual(done);
    expect(await deliver('a')).toMatchObject(failed('not-started', 'journal'));
    expect(tool.made).toHaveLength(0);
  });

  test('[R11] the answer of one that ran is told, though it cannot be kept', async () => {
    const { tool, disk, deliver, ask } = await setup();
    const answer = deliver('a');
    await until(() => tool.made.length === 1);
    disk.failAfter = disk.operations();
    tool.made[0]?.answer(RESULT);
    expect(await answer).toMatchObject(RESULT);
    expect(await ask('a')).toEqual({ state: 'done', outcome: { kind: 'result', lost: true, isError: false } });
    expect(await deliver('a')).toMatchObject(failed('done', 'lost'));
    expect(tool.made).toHaveLength(1);
  });

  test('[I13] a fence that hangs holds the call that it is for', async () => {
    const { tool, disk, deliver, ask } = await setup();
    const held = Promise.withResolvers<void>();
    disk.hold = held.promise;
    const fence = ask('a', { fence: true });
    const call = deliver('a');
    expect(await fence).toBeUndefined();
    expect(await call).toMatchObject(failed('not-started', 'journal'));
    held.resolve();
    await until(() => disk.syncs() > 1);
    expect(await deliver('a')).toMatchObject(failed('not-started', 'fenced'));
    expect(tool.made).toHaveLength(0);
  });
});

describe('who ends a call', () => {
  test('[R08] a stop while it is written down: it never starts', async () => {
    const { tool, disk, deliver, ask } = await setup();
    const held = Promise.withResolvers<void>();
    disk.hold = held.promise;
    const call = deliver('a');
    const stopped = ask('a', { stop: true });
    held.resolve();
    expect(await stopped).toEqual({ state: 'done', outcome: { kind: 'stopped' } });
    expect(await call).toMatchObject(failed('stopped', 'stopped'));
    expect(tool.made).toHaveLength(0);
  });

  test('an answer that came first stays', async () => {
    const { tool, deliver, ask } = await setup();
    const call = deliver('a');
    await until(() => tool.made.length === 1);
    tool.made[0]?.answer(RESULT);
    expect(await ask('a', { stop: true })).toMatchObject({ state: 'done', outcome: RESULT });
    expect(await call).toMatchObject(RESULT);
  });

  test('whoever waits and goes is not waited for', async () => {
    const { tool, deliver, ask } = await setup();
    void deliver('a');
    await until(() => tool.made.length === 1);
    expect(await ask('a', { waitMs: 10 })).toEqual({ state: 'running' });
  });
});

test('[I13] nothing reaches the tool after the grant ran out while it was written down', async () => {
  const { tool, disk, deliver } = await setup();
  const held = Promise.withResolvers<void>();
  disk.hold = held.promise;
  const call = deliver('a');
  held.resolve();
  await until(() => tool.made.length === 1);
  // The tool judges anew when it is given the call: it is told until when.
  expect(tool.made[0]?.call.startBy).toBeGreaterThan(Date.now());
  tool.made[0]?.answer({ kind: 'refused', reason: 'grant-expired' });
  expect(await call).toMatchObject(failed('not-started', 'grant-expired'));
});
