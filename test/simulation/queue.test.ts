import { describe, expect, it } from 'vitest';
import { createQueue } from '../../src/engine/queue.ts';
import { createFakeClock } from './fake-clock.ts';

function setUp() {
  const clock = createFakeClock();
  let ready = 0;
  const queue = createQueue({
    clock,
    random: () => 0.5,
    backoff: { firstMs: 100, maxMs: 1000 },
    onReady: () => {
      ready += 1;
    },
  });
  const takeAll = () => {
    const keys: string[] = [];
    for (let key = queue.take(); key !== undefined; key = queue.take()) keys.push(key);
    return keys;
  };
  return { clock, queue, takeAll, ready: () => ready };
}

describe('createQueue', () => {
  it('holds a key once and gives in order', () => {
    const { queue, takeAll, ready } = setUp();
    for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key);
    expect(takeAll()).toEqual(['a', 'b', 'c']);
    expect(ready()).toBe(3);
  });

  it('gives no key to two workers, and what came meanwhile after', () => {
    const { queue, takeAll } = setUp();
    queue.add('a');
    expect(queue.take()).toBe('a');
    queue.add('a');
    queue.add('a');
    queue.add('b');
    expect(takeAll()).toEqual(['b']);
    queue.done('a');
    expect(takeAll()).toEqual(['a']);
    queue.done('a');
    expect(takeAll()).toEqual([]);
  });

  it('lets the earlier of two delays win', async () => {
    const { queue, clock, takeAll } = setUp();
    queue.addAfter('late first', 100);
    queue.addAfter('late first', 10);
    queue.addAfter('early first', 10);
    queue.addAfter('early first', 100);
    await clock.advance(10);
    expect(takeAll()).toEqual(['late first', 'early first']);
    queue.done('late first');
    queue.done('early first');
    await clock.advance(1000);
    expect(takeAll()).toEqual([]);
  });

  it('looks at once at what had a delay, and not again after', async () => {
    const { queue, clock, takeAll } = setUp();
    queue.addAfter('a', 100);
    queue.add('a');
    expect(takeAll()).toEqual(['a']);
    queue.done('a');
    await clock.advance(1000);
    expect(takeAll()).toEqual([]);
  });

  it('backs off with each failure in a row, for each key alone', async () => {
    const { queue, clock } = setUp();
    const delays: number[] = [];
    for (let i = 0; i < 6; i++) {
      const startMs = clock.monotonicMs();
      expect(queue.retry('a')).toBe(i + 1);
      while (queue.take() === undefined) await clock.advance(10);
      delays.push(clock.monotonicMs() - startMs);
      queue.done('a');
    }
    expect(delays).toEqual([100, 200, 400, 800, 1000, 1000]);
    expect(queue.retry('b')).toBe(1);
    queue.forget('a');
    expect(queue.retry('a', 5000)).toBe(1);
    await clock.advance(4990);
    expect(queue.take()).toBe('b');
    expect(queue.take()).toBeUndefined();
    await clock.advance(10);
    expect(queue.take()).toBe('a');
  });

  it('closes with nothing left', async () => {
    const { queue, clock, takeAll } = setUp();
    queue.add('a');
    queue.addAfter('b', 10);
    queue.close();
    queue.add('c');
    queue.addAfter('d', 1);
    await clock.advance(100);
    expect(takeAll()).toEqual([]);
    expect(clock.pending()).toBe(0);
  });
});
