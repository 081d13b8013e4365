/** Recorded calls of a remote tool, with a real file and real TLS: judged by what the server ran. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import type { JournalQuestion } from '../../../src/mcp/wire/callRecord.ts';
import { createCalls } from '../../../src/sidecar/calls.ts';
import { folderDisk } from '../../../src/sidecar/journal/disk.ts';
import { openJournal } from '../../../src/sidecar/journal/journal.ts';
import { createLog } from '../../../src/sidecar/log.ts';
import { json, result, type Script, scriptMcp, text } from '../remote/scriptedMcp.ts';
import { connectTool, eventually, serveRemote, type ToolOptions, tunnelTo } from '../remote/world.ts';

const closers: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** @param way how long the server is reached for, in milliseconds */
async function ready(era: 'modern' | 'legacy', way = { ms: 0 }) {
  const script: Script = scriptMcp(era, ['act']);
  const answers: (() => void)[] = [];
  script.behave['act'] = (seen, response) => void answers.push(() => json(response, result(seen, text('done'))));
  const world = await serveRemote(script.listener);
  const folder = mkdtempSync(join(tmpdir(), 'oz0-journal-'));
  const log = createLog(() => {});
  /** A sidecar's part of it, as it is after each start. */
  const openTunnel: ToolOptions['openTunnel'] = async (...to) => {
    await new Promise((resolve) => setTimeout(resolve, way.ms));
    return tunnelTo(world.port)(...to);
  };
  const start = async () => {
    const tool = connectTool(world.port, { openTunnel });
    const journal = await openJournal({ disk: folderDisk(folder), log });
    await tool.untilPhase('Ready');
    const calls = createCalls(tool, journal);
    return {
      tool,
      deliver: (id: string, more: object = {}, signal = new AbortController().signal) =>
        calls.call({
          name: 'act',
          arguments: {},
          meta: { 'ai.oz0/call': { id, attempt: 1, notAfter: Date.now() + 30_000, recorded: true, ...more } },
          signal,
        }),
      ask: (id: string, more: Partial<JournalQuestion> = {}) => {
        const question = { id, attempt: 1, fence: false, stop: false, cancel: false, waitMs: 0, ...more };
        return calls.ask(question, new AbortController().signal);
      },
      async close() {
        await tool.close();
        await journal.close();
      },
    };
  };
  let sidecar = await start();
  closers.push(
    () => rmSync(folder, { recursive: true }),
    world.close,
    () => sidecar.close(),
  );
  return {
    script,
    world,
    answers,
    get sidecar() {
      return sidecar;
    },
    async restart() {
      await sidecar.close();
      sidecar = await start();
    },
  };
}
const DONE = { kind: 'result', result: text('done') };
const failed = (outcome: string, reason: string) => ({ error: { data: { 'ai.oz0/outcome': outcome, reason } } });

describe.each(['modern', 'legacy'] as const)('[R11] a recorded call of a remote server (%s)', (era) => {
  test('is sent once, however often it is delivered, also after a restart', async () => {
    const setup = await ready(era);
    const { script, answers } = setup;
    const gone = new AbortController();
    const first = setup.sidecar.deliver('a', {}, gone.signal);
    await eventually(() => answers.length === 1, 'the call');
    gone.abort();
    const second = setup.sidecar.deliver('a');
    expect(await setup.sidecar.ask('a', { fence: true })).toEqual({ state: 'running' });
    answers[0]?.();
    expect(await Promise.all([first, second])).toMatchObject([DONE, DONE]);
    await setup.restart();
    expect(await setup.sidecar.deliver('a')).toMatchObject(DONE);
    expect(await setup.sidecar.ask('a')).toMatchObject({ state: 'done', outcome: DONE });
    expect(script.ran).toEqual(['act']);
  });

  test('[R08] is stopped: the end is known though the server says nothing', async () => {
    const { script, answers, sidecar } = await ready(era);
    const call = sidecar.deliver('a');
    await eventually(() => answers.length === 1, 'the call');
    expect(await sidecar.ask('a', { stop: true })).toEqual({ state: 'done', outcome: { kind: 'stopped' } });
    expect(await call).toMatchObject(failed('stopped', 'stopped'));
    if (era === 'legacy') await eventually(() => script.count('notifications/cancelled') === 1, 'the cancellation');
    expect(await sidecar.deliver('a')).toMatchObject(failed('stopped', 'stopped'));
    expect(script.ran).toEqual(['act']);
  });

  test('[I13] a server that is reached only after the grant ran out is sent nothing', async () => {
    const way = { ms: 0 };
    const { script, answers, sidecar } = await ready(era, way);
    way.ms = 2_000;
    const late = sidecar.deliver('late', { notAfter: Date.now() - 500 });
    expect(await late).toMatchObject(failed('not-started', 'grant-expired'));
    expect(await sidecar.ask('late')).toEqual({
      state: 'done',
      outcome: { kind: 'not-started', reason: 'grant-expired' },
    });
    expect(script.ran).toEqual([]);
    const inTime = sidecar.deliver('in-time', { notAfter: Date.now() + 10_000 });
    await eventually(() => answers.length === 1, 'the call');
    answers[0]?.();
    expect(await inTime).toMatchObject(DONE);
  });

  test('[case 116] whoever asks how it is, however often, asks nothing of the server', async () => {
    const { world, sidecar } = await ready(era);
    // What follows the first listing, such as listening for changes.
    await new Promise((resolve) => setTimeout(resolve, 200));
    const before = world.seen.length;
    for (let round = 0; round < 1_000; round++) expect(sidecar.tool.status().phase).toBe('Ready');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(world.seen).toHaveLength(before);
    expect(world.seen.filter(({ body }) => body?.method === 'initialize').length).toBe(era === 'legacy' ? 1 : 0);
  });
});
