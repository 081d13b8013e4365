import { describe, expect, it } from 'vitest';
import type { KubeObject, Observed, Sensor } from '../../src/engine/contract.ts';
import { silentLog } from '../../src/engine/log.ts';
import { createSensors } from '../../src/engine/sensors.ts';
import { createFakeClock } from './fake-clock.ts';

const parent: KubeObject = { apiVersion: 'v1', kind: 'Toy', metadata: { name: 'toy' } };

interface Call {
  readonly input: unknown;
  readonly signal: AbortSignal;
  readonly answer: (value: unknown) => void;
  readonly fail: (error: Error) => void;
}

function setUp(concurrency = 10) {
  const clock = createFakeClock();
  const woken: string[] = [];
  const calls: Call[] = [];
  const sensors = createSensors({
    clock,
    random: () => 0.5,
    log: silentLog,
    concurrency,
    onChange: (key) => woken.push(key),
  });
  const sensor = (name: string, subject: () => { key: string; input: unknown } | undefined): Sensor<KubeObject> => ({
    name,
    subject,
    everyMs: 60_000,
    timeoutMs: 5_000,
    run: (input, signal) => new Promise((answer, fail) => calls.push({ input, signal, answer, fail })),
  });
  const look = (key: string, all: readonly Sensor<KubeObject>[]) => {
    const observed: Observed<KubeObject> = { parent, children: {}, reads: {}, sensed: sensors.results(key, all) };
    return { sensed: observed.sensed, ...sensors.update(key, all, observed) };
  };
  return { clock, woken, calls, sensors, sensor, look };
}

describe('createSensors', () => {
  it('asks at once, shows the last answer with its age, and asks again in its time, with no pass', async () => {
    const { clock, woken, calls, sensor, look } = setUp();
    const one = [sensor('one', () => ({ key: 'k', input: 1 }))];
    expect(look('p', one)).toEqual({ sensed: { one: { state: 'none' } }, isRelearning: true });
    await clock.advance(0);
    calls[0]?.answer({ a: 1, b: 2 });
    await clock.advance(10_000);
    expect(woken).toEqual(['p']);
    expect(look('p', one)).toEqual({
      sensed: { one: { state: 'ok', key: 'k', value: { a: 1, b: 2 }, ageMs: 10_000 } },
      isRelearning: false,
    });
    await clock.advance(49_999);
    expect(calls).toHaveLength(1);
    await clock.advance(1);
    expect(calls).toHaveLength(2);
    calls[1]?.answer({ b: 2, a: 1 });
    await clock.advance(60_000);
    expect(calls).toHaveLength(3);
    expect(woken).toEqual(['p']);
    calls[2]?.answer({ a: 1, b: 3 });
    await clock.advance(0);
    expect(woken).toEqual(['p', 'p']);
  });

  it('asks at once when the subject changes, and gives up what runs for the old one', async () => {
    const { clock, woken, calls, sensor, look } = setUp();
    let key = 'a';
    const one = [sensor('one', () => ({ key, input: key }))];
    look('p', one);
    await clock.advance(0);
    key = 'b';
    look('p', one);
    expect(calls[0]?.signal.aborted).toBe(true);
    await clock.advance(0);
    expect(calls.map(({ input }) => input)).toEqual(['a', 'b']);
    // What was given up is no result.
    expect(woken).toEqual([]);
    calls[1]?.answer('v');
    await clock.advance(0);
    expect(look('p', one).sensed['one']).toMatchObject({ state: 'ok', key: 'b' });
    key = 'c';
    // The last result is shown, with the key that it is of.
    expect(look('p', one).sensed['one']).toMatchObject({ state: 'ok', key: 'b' });
    await clock.advance(0);
    expect(calls).toHaveLength(3);
  });

  it('has nothing to show once there is nothing to ask', async () => {
    const { clock, calls, sensor, look } = setUp();
    let subject: { key: string; input: unknown } | undefined = { key: 'k', input: 1 };
    const one = [sensor('one', () => subject)];
    look('p', one);
    await clock.advance(0);
    calls[0]?.answer('v');
    await clock.advance(0);
    subject = undefined;
    look('p', one);
    expect(look('p', one)).toEqual({ sensed: { one: { state: 'none' } }, isRelearning: false });
    await clock.advance(600_000);
    expect(calls).toHaveLength(1);
    subject = { key: 'k', input: 1 };
    // Not the first look: nobody before us knew more.
    expect(look('p', one).isRelearning).toBe(false);
  });

  it('runs one at a time for a parent, and a bounded number in all', async () => {
    const { clock, calls, sensor, look } = setUp(2);
    const two = [sensor('one', () => ({ key: '1', input: 1 })), sensor('two', () => ({ key: '2', input: 2 }))];
    look('p', two);
    await clock.advance(0);
    expect(calls).toHaveLength(1);
    look('q', two);
    look('r', two);
    await clock.advance(1_000);
    expect(calls.map(({ input }) => input)).toEqual([1, 1]);
    calls[0]?.answer('x');
    await clock.advance(0);
    expect(calls.map(({ input }) => input)).toEqual([1, 1, 2]);
    calls[1]?.answer('x');
    calls[2]?.answer('x');
    await clock.advance(1_000);
    expect(calls).toHaveLength(5);
  });

  it('gives up in time one that does not heed its signal, and tries again sooner than usual', async () => {
    const { clock, woken, calls, sensor, look } = setUp();
    const one = [sensor('one', () => ({ key: 'k', input: 1 }))];
    look('p', one);
    await clock.advance(5_000);
    expect(woken).toEqual(['p']);
    expect(look('p', one).sensed['one']).toMatchObject({ state: 'failed', problem: 'no answer within 5000 ms' });
    await clock.advance(1_000);
    expect(calls).toHaveLength(2);
    calls[1]?.fail(new Error('a\nproblem'));
    await clock.advance(0);
    expect(look('p', one).sensed['one']).toMatchObject({ problem: 'a problem' });
    await clock.advance(1_999);
    expect(calls).toHaveLength(2);
    await clock.advance(1);
    expect(calls).toHaveLength(3);
  });

  it('forgets a parent, and closes, with what runs and waits', async () => {
    const { clock, woken, calls, sensors, sensor, look } = setUp();
    const one = [sensor('one', () => ({ key: 'k', input: 1 }))];
    look('p', one);
    look('q', one);
    look('r', one);
    await clock.advance(0);
    calls[2]?.answer('x');
    await clock.advance(0);
    sensors.forget('p');
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true, false, false]);
    sensors.close();
    await clock.advance(0);
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true, true, false]);
    expect(clock.pending()).toBe(0);
    await clock.advance(600_000);
    look('q', one);
    expect(calls).toHaveLength(3);
    expect(woken).toEqual(['r']);
  });
});
