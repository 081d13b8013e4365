import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decodeFrames, encodeFrame } from './frames.ts';
import { type Launcher, type LauncherSocket, listenForLauncher, type ToolExit } from './launcherSocket.ts';

const HELLO = Buffer.from(JSON.stringify({ version: 1, path: '/bin', home: '/', lang: '' }));
let folder: string;
let path: string;
let socket: LauncherSocket;
let launchers: Launcher[];
let terminations: number;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'oz0-'));
  path = join(folder, 'l.sock');
  launchers = [];
  terminations = 0;
  socket = await listenForLauncher({
    path,
    maxQueuedBytes: 3 * 1024 * 1024,
    onLauncher: (launcher) => launchers.push(launcher),
    onTerminating: () => terminations++,
  });
});
afterEach(async () => {
  await socket.close();
  rmSync(folder, { recursive: true });
});

function dial(): { socket: Socket; frames: { type: string; bytes: number }[]; closed: Promise<void> } {
  const frames: { type: string; bytes: number }[] = [];
  const dialled = connect(path);
  dialled.on('error', () => {});
  const decode = decodeFrames((type, payload) => frames.push({ type, bytes: payload.length }));
  dialled.on('data', (chunk) => void decode(chunk));
  return { socket: dialled, frames, closed: new Promise((resolve) => dialled.once('close', () => resolve())) };
}
const until = (condition: () => boolean) => expect.poll(condition).toBe(true);

describe('the launcher’s socket', () => {
  test('any user may connect', () => {
    expect(statSync(path).mode & 0o777).toBe(0o666);
  });

  test('[case 78] while the launcher is here, nobody else is served', async () => {
    const first = dial();
    first.socket.write(encodeFrame('H', HELLO));
    await until(() => launchers.length === 1);
    const second = dial();
    second.socket.write(encodeFrame('H', HELLO));
    await second.closed;
    expect(launchers).toHaveLength(1);
    first.socket.destroy();
    await until(() => launchers[0]?.gone.aborted === true);
    dial().socket.write(encodeFrame('H', HELLO));
    await until(() => launchers.length === 2);
  });

  test.each([
    ['no greeting first', encodeFrame('O', Buffer.from('x'))],
    ['another version', encodeFrame('H', Buffer.from('{"version":2,"path":"","home":"","lang":""}'))],
    ['two greetings', Buffer.concat([encodeFrame('H', HELLO), encodeFrame('H', HELLO)])],
    ['an unknown frame', Buffer.concat([encodeFrame('H', HELLO), encodeFrame('Q')])],
    ['a frame over the limit', Buffer.from([0x48, 0x7f, 0, 0, 0])],
    ['no JSON', encodeFrame('H', Buffer.from('x'))],
  ])('hung up on: %s', async (_name, bytes) => {
    const { socket: dialled, closed } = dial();
    dialled.write(bytes);
    await closed;
  });

  test('a connection that breaks is an end that was not told, once, also before the start', async () => {
    const dialled = dial();
    dialled.socket.write(encodeFrame('H', HELLO));
    await until(() => launchers.length === 1);
    const exits: (ToolExit | undefined)[] = [];
    dialled.socket.destroy();
    await until(() => launchers[0]?.gone.aborted === true);
    launchers[0]?.start({ argv: ['x'], env: {} }, { stdout() {}, stderr() {}, exited: (exit) => exits.push(exit) });
    expect(exits).toEqual([undefined]);
  });

  test('input waits for what the tool takes, and has a limit', async () => {
    const { socket: dialled, frames } = dial();
    dialled.write(encodeFrame('H', HELLO));
    await until(() => launchers.length === 1);
    const [launcher] = launchers;
    expect(launcher?.stdin(Buffer.alloc(2 * 1024 * 1024))).toBe(true);
    const sent = () => frames.filter((frame) => frame.type === 'I').reduce((sum, frame) => sum + frame.bytes, 0);
    await until(() => sent() === 1024 * 1024);
    expect(launcher?.stdin(Buffer.alloc(3 * 1024 * 1024))).toBe(false);
    dialled.write(encodeFrame('W', Buffer.from([0, 8, 0, 0])));
    await until(() => sent() === 1024 * 1024 + 512 * 1024);
  });

  test('frames split anywhere are whole', async () => {
    const { socket: dialled } = dial();
    for (const byte of Buffer.concat([encodeFrame('H', HELLO), encodeFrame('T')])) dialled.write(Buffer.of(byte));
    await until(() => terminations === 1);
  });
});
