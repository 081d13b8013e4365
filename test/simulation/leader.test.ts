import { describe, expect, it } from 'vitest';
import { ApiError } from '../../src/engine/api-error.ts';
import type { ApiDoor } from '../../src/engine/door.ts';
import { guardWrites, type Leader, startLeaderElection } from '../../src/engine/leader.ts';
import { silentLog } from '../../src/engine/log.ts';
import { type ApiServer, createApiServer, refTo } from './api-server.ts';
import { createClient } from './client.ts';
import { createFakeClock, createProcessClock, type FakeClock, type ProcessClock } from './fake-clock.ts';
import { seeded } from './world.ts';

const LEASE = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases', namespaced: true };

interface Candidate {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly leader: Leader;
  readonly led: () => boolean;
  readonly leading: () => AbortSignal | undefined;
  readonly ended: () => string | undefined;
  readonly stop: () => void;
  /** Calls to the API server hang, as behind a wall that drops packets. */
  readonly partition: (on: boolean) => void;
}

function setUp() {
  const clock = createFakeClock();
  const server = createApiServer(clock);
  const random = seeded(3);
  return { clock, server, random, candidate: (name: string) => candidate(name, clock, server, random) };
}

function candidate(name: string, world: FakeClock, server: ApiServer, random: () => number): Candidate {
  const clock = createProcessClock(world);
  const client = createClient({ server, clock, random, name });
  const ending = new AbortController();
  let partitioned = false;
  let leading: AbortSignal | undefined;
  let ended: string | undefined;
  const behindWall = <T>(signal: AbortSignal | undefined, call: () => Promise<T>): Promise<T> =>
    partitioned
      ? new Promise((_, reject) => {
          clock.after(4_000, () => reject(new ApiError('timeout', 'no answer')));
          signal?.addEventListener('abort', () => reject(new ApiError('aborted', 'given up')));
        })
      : call();
  const door: Pick<ApiDoor, 'get' | 'create' | 'replace'> = {
    get: (ref, call) => behindWall(call?.signal, () => client.door.get(ref, call)),
    create: (resource, object, call) => behindWall(call?.signal, () => client.door.create(resource, object, call)),
    replace: (resource, object, call) => behindWall(call?.signal, () => client.door.replace(resource, object, call)),
  };
  const leader = startLeaderElection({
    door,
    clock,
    random,
    log: silentLog,
    namespace: 'oz0-system',
    name: 'oz0-controller',
    identity: name,
    signal: ending.signal,
    onLead: (signal) => {
      leading = signal;
    },
  });
  void leader.ended.then((how) => {
    ended = how;
  });
  return {
    name,
    clock,
    leader,
    led: () => leading !== undefined,
    leading: () => leading,
    ended: () => ended,
    stop: () => ending.abort(new Error('SIGTERM')),
    partition: (on) => {
      partitioned = on;
    },
  };
}

/** Advances in small steps and checks that no two may write at once. */
async function advance(clock: FakeClock, ms: number, candidates: readonly Candidate[]): Promise<void> {
  for (let i = 0; i < ms; i += 100) {
    await clock.advance(100);
    const writers = candidates.filter((c) => c.clock.isRunning() && c.leader.mayWrite());
    if (writers.length > 1) throw new Error(`${writers.map((w) => w.name)} may write at ${clock.monotonicMs()}`);
  }
}

function holder(server: ApiServer): unknown {
  const lease = server.get('coordination.k8s.io/v1/Lease', 'oz0-controller', 'oz0-system');
  return (lease?.['spec'] as { readonly holderIdentity?: string } | undefined)?.holderIdentity;
}

describe('startLeaderElection [O07]', () => {
  it('has one leader of three for long, and renews', async () => {
    const { clock, candidate, server } = setUp();
    const all = ['a', 'b', 'c'].map(candidate);
    await advance(clock, 120_000, all);
    expect(all.filter((c) => c.leader.mayWrite())).toHaveLength(1);
    expect(all.filter((c) => c.led())).toHaveLength(1);
    expect(server.get('coordination.k8s.io/v1/Lease', 'oz0-controller', 'oz0-system')).toMatchObject({
      spec: { leaseDurationSeconds: 15, leaseTransitions: 0, renewTime: expect.stringMatching(/\.\d{6}Z$/) },
    });
  });

  it('gives the lease back on SIGTERM, and another leads within seconds', async () => {
    const { clock, candidate } = setUp();
    const a = candidate('a');
    await advance(clock, 1_000, [a]);
    const b = candidate('b');
    await advance(clock, 5_000, [a, b]);
    a.stop();
    expect(a.leader.mayWrite()).toBe(false);
    await advance(clock, 4_000, [a, b]);
    expect(a.ended()).toBe('released');
    expect(a.leading()?.aborted).toBe(true);
    expect(b.leader.mayWrite()).toBe(true);
  });

  it('takes over from one that was killed only after its lease ran out', async () => {
    const { clock, candidate } = setUp();
    const a = candidate('a');
    await advance(clock, 1_000, [a]);
    const b = candidate('b');
    await advance(clock, 10_000, [a, b]);
    a.clock.kill();
    await advance(clock, 12_000, [b]);
    expect(b.leader.mayWrite()).toBe(false);
    await advance(clock, 9_000, [b]);
    expect(b.leader.mayWrite()).toBe(true);
  });

  it('knows on waking from 20 s of standstill that it leads no more [case 118]', async () => {
    const { clock, candidate } = setUp();
    const a = candidate('a');
    await advance(clock, 1_000, [a]);
    const b = candidate('b');
    await advance(clock, 5_000, [a, b]);
    a.clock.stop();
    await advance(clock, 20_000, [a, b]);
    // Before any of its timers could run.
    expect(a.leader.mayWrite()).toBe(false);
    a.clock.resume();
    expect(a.leader.mayWrite()).toBe(false);
    await advance(clock, 5_000, [a, b]);
    expect(a.ended()).toBe('lost');
    expect(a.leading()?.aborted).toBe(true);
    expect(b.leader.mayWrite()).toBe(true);
  });

  it('cut off from the API server it stops before another can lead', async () => {
    const { clock, candidate } = setUp();
    const a = candidate('a');
    await advance(clock, 1_000, [a]);
    const b = candidate('b');
    await advance(clock, 5_000, [a, b]);
    a.partition(true);
    await advance(clock, 10_100, [a, b]);
    expect(a.leader.mayWrite()).toBe(false);
    expect(a.leading()?.aborted).toBe(true);
    expect(a.ended()).toBe('lost');
    expect(b.leader.mayWrite()).toBe(false);
    await advance(clock, 10_000, [a, b]);
    expect(b.leader.mayWrite()).toBe(true);
  });

  it('outlives a few failed renewals', async () => {
    const { clock, candidate } = setUp();
    const a = candidate('a');
    await advance(clock, 3_000, [a]);
    a.partition(true);
    await advance(clock, 5_000, [a]);
    a.partition(false);
    await advance(clock, 20_000, [a]);
    expect(a.leader.mayWrite()).toBe(true);
  });

  it('is over when the lease was taken by another', async () => {
    const { clock, candidate, server } = setUp();
    const a = candidate('a');
    await advance(clock, 3_000, [a]);
    server.edit(refTo(LEASE, 'oz0-controller', 'oz0-system'), 'thief', (lease) => ({
      ...lease,
      spec: { ...(lease['spec'] as object), holderIdentity: 'thief' },
    }));
    await advance(clock, 3_000, [a]);
    expect(a.ended()).toBe('lost');
    expect(a.leader.mayWrite()).toBe(false);
    expect(holder(server)).toBe('thief');
  });

  it('makes a deleted lease again, and one of two has it', async () => {
    const { clock, candidate, server } = setUp();
    const a = candidate('a');
    await advance(clock, 1_000, [a]);
    const b = candidate('b');
    await advance(clock, 5_000, [a, b]);
    server.delete(refTo(LEASE, 'oz0-controller', 'oz0-system'), 'user');
    await clock.advance(5_000);
    await advance(clock, 30_000, [a, b]);
    expect([a, b].filter((c) => c.leader.mayWrite()).map(({ name }) => name)).toEqual([holder(server)]);
  });
});

describe('guardWrites', () => {
  it('lets no write through without leadership, and ends those under way with it', async () => {
    const clock = createFakeClock();
    const server = createApiServer(clock);
    const process = createProcessClock(clock);
    const { door } = createClient({ server, clock: process, random: seeded(1), name: 'a' });
    const leading = new AbortController();
    let may = true;
    const guarded = guardWrites(door, () => may, leading.signal);
    const object = { apiVersion: 'v1', kind: 'Box', metadata: { name: 'a', namespace: 'ns' } };
    const box = { apiVersion: 'v1', kind: 'Box', plural: 'boxes', namespaced: true };
    const options = { fieldManager: 'x', force: false };
    const underWay = guarded.apply(box, object, options);
    leading.abort();
    await expect(underWay).rejects.toMatchObject({ code: 'aborted' });
    may = false;
    const calls = [
      () => guarded.create(box, object),
      () => guarded.apply(box, object, options),
      () => guarded.applyStatus(box, object, options),
      () => guarded.replace(box, object),
      () => guarded.replaceStatus(box, object),
      () => guarded.delete(refTo(box, 'a'), { uid: 'u' }),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject({ code: 'aborted' });
    expect(server.log).toEqual([]);
  });
});
