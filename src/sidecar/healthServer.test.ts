import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { isOwn, startHealth } from './healthServer.ts';

test.each([
  ['127.0.0.1', '127.0.0.1', true],
  ['127.9.8.7', '127.0.0.1', true],
  ['::ffff:127.0.0.2', '::ffff:127.0.0.1', true],
  ['::1', '::1', true],
  ['10.0.0.7', '10.0.0.7', true],
  ['fd00::7', 'fd00::7', true],
  [undefined, '10.0.0.7', true],
  ['10.0.0.1', '10.0.0.7', false],
  ['::ffff:10.0.0.1', '::ffff:10.0.0.7', false],
  ['fd00::1', 'fd00::7', false],
])('[case 78] a connection from %s to %s is of this pod: %s', (remoteAddress, localAddress, own) => {
  expect(isOwn({ remoteAddress, localAddress })).toBe(own);
});

test('[case 78] a tool that floods the port holds some of its connections, and what it gives back is free', async () => {
  const health = await startHealth({
    host: '127.0.0.1',
    port: 0,
    started: () => undefined,
    ready: () => undefined,
  });
  const open = new Set<Socket>();
  const dial = () =>
    new Promise<void>((resolve) => {
      const socket = connect(health.port, '127.0.0.1', () => resolve());
      open.add(socket);
      socket.on('error', () => {});
      socket.once('close', () => {
        open.delete(socket);
        resolve();
      });
    });
  await Promise.all(Array.from({ length: 40 }, dial));
  for (let turn = 0; open.size > 8 && turn < 1_000; turn++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(open.size).toBe(8);
  for (const socket of open) socket.destroy();
  const answer = async (): Promise<number> => {
    try {
      return (await fetch(`http://127.0.0.1:${health.port}/livez`, { headers: { connection: 'close' } })).status;
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 20));
      return answer();
    }
  };
  expect(await answer()).toBe(200);
  await health.close();
});
