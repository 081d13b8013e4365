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
  it('asks at once, shows the last answer with its age, and asks again in its time', async () => {
    const { clock, woken, calls, sensor, look } = setUp();
    const one = [sensor('one', () => ({ key: 'k', input: 1 }))];
    expect(look('p', one)).toEqual({ sensed: { one: { state: 'none' } }, againInMs: undefined, isRelearning: true });
    await clock.advance(0);
    calls[0]?.answer('v');
    await clock.advance(10_000);
    expect(woken).toEqual(['p']);
    expect(look('p', one)).toEqual({
      sensed: { one: { state: 'ok', key: 'k', value: 'v', ageMs: 10_000 } },
      againInMs: 50_000,
      isRelearning: false,
    });
    await clock.advance(50_000);
    look('p', one);
    await clock.advance(0);
    expect(calls).toHaveLength(2);
  });

  it('asks at once when the subject changes, and gives up what runs for the old one', async () => {
    const { clock, calls, sensor, look } = setUp();
    let key = 'a';
    const one = [sensor('one', () => ({ key, input: key }))];
    look('p', one);
    await clock.advance(0);
    key = 'b';
    look('p', one);
    expect(calls[0]?.signal.aborted).toBe(true);
    await clock.advance(0);
    look('p', one);
    await clock.advance(0);
    expect(calls.map(({ input }) => input)).toEqual(['a', 'b']);
  });

  it('runs one at a time for a parent, and a bounded number in all', async () => {
    const { clock, calls, sensor, look } = setUp(2);
    const two = [sensor('one', () => ({ key: '1', input: 1 })), sensor('two', () => ({ key: '2', input: 2 }))];
    look('p', two);
    await clock.advance(0);
    look('p', two);
    await clock.advance(0);
    expect(calls).toHaveLength(1);
    look('q', two);
    expect(look('r', two).againInMs).toBeGreaterThan(0);
    await clock.advance(0);
    expect(calls).toHaveLength(2);
    calls[0]?.answer('x');
    await clock.advance(0);
    look('p', two);
    await clock.advance(0);
    expect(calls.map(({ input }) => input)).toEqual([1, 1, 2]);
  });

  it('gives up in time one that does not heed its signal, and tries again sooner than usual', async () => {
    const { clock, woken, calls, sensor, look } = setUp();
    const one = [sensor('one', () => ({ key: 'k', input: 1 }))];
    look('p', one);
    await clock.advance(5_000);
    expect(woken).toEqual(['p']);
    const { sensed, againInMs } = look('p', one);
    expect(sensed['one']).toMatchObject({ state: 'failed', problem: 'no answer within 5000 ms' });
    expect(againInMs).toBe(1_000);
    await clock.advance(1_000);
    look('p', one);
    await clock.advance(0);
    expect(calls).toHaveLength(2);
    calls[1]?.fail(new Error('a\nproblem'));
    await clock.advance(0);
    expect(look('p', one)).toMatchObject({ sensed: { one: { problem: 'a problem' } }, againInMs: 2_000 });
  });

  it('forgets a parent, and closes, with what runs', async () => {
    const { clock, woken, calls, sensors, sensor, look } = setUp();
    const one = [sensor('one', () => ({ key: 'k', input: 1 }))];
    look('p', one);
    look('q', one);
    await clock.advance(0);
    sensors.forget('p');
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true, false]);
    sensors.close();
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([true, true]);
    await clock.advance(60_000);
    look('q', one);
    expect(calls).toHaveLength(2);
    expect(woken).toEqual([]);
  });
});
