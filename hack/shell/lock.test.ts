import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { withLock } from './lock.ts';
import { identify, isAlive, kill } from './process-identity.ts';

const file = () => join(mkdtempSync(join(tmpdir(), 'lock-')), 'a.lock');

async function startSleeper() {
  const child = spawn('sleep', ['60']);
  await once(child, 'spawn');
  const identity = identify(child.pid ?? 0);
  if (identity === undefined) throw new Error('sleep did not start');
  return { child, identity };
}

describe('a process identity', () => {
  it('is alive until its process ends, and ends only that one', async () => {
    const { child, identity } = await startSleeper();
    expect(isAlive(identity)).toBe(true);
    // The same pid, given to another process later: nothing is killed.
    expect(kill({ ...identity, startTime: '1' })).toBe(false);
    expect(kill({ ...identity, bootId: 'another boot' })).toBe(false);
    expect(isAlive(identity)).toBe(true);
    expect(kill(identity)).toBe(true);
    await once(child, 'close');
    expect(isAlive(identity)).toBe(false);
    expect(kill(identity)).toBe(false);
  });
});

describe('a lock', () => {
  it('is held while the work runs, and given back when it fails', async () => {
    const lock = file();
    const work = withLock(lock, 1, async () => {
      expect(existsSync(lock)).toBe(true);
      throw new Error('the work failed');
    });
    await expect(work).rejects.toThrow('the work failed');
    expect(existsSync(lock)).toBe(false);
  });

  it('of a process that died is taken over', async () => {
    const lock = file();
    const { child, identity } = await startSleeper();
    writeFileSync(lock, JSON.stringify(identity));
    kill(identity);
    await once(child, 'close');
    expect(await withLock(lock, 1, async () => 'mine')).toBe('mine');
  });

  it('of a living process is waited for, not for ever', async () => {
    const lock = file();
    const { identity } = await startSleeper();
    writeFileSync(lock, JSON.stringify(identity));
    await expect(withLock(lock, 0.3, async () => 'mine')).rejects.toThrow(/not within 0.3 s/);
    expect(existsSync(lock)).toBe(true);
    kill(identity);
  });
});
