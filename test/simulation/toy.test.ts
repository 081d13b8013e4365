import { beforeAll, describe, expect, it } from 'vitest';
import { ApiError, type ApiErrorCode } from '../../src/engine/api-error.ts';
import { resourceKey } from '../../src/engine/contract.ts';
import { guardWrites, startLeaderElection } from '../../src/engine/leader.ts';
import { silentLog } from '../../src/engine/log.ts';
import { refTo } from './api-server.ts';
import { BOX, CONFIG, config, FENCE, TOY, toy } from './toy.ts';
import { change, STORY, tell, toyWorld } from './toy-world.ts';
import { childrenOf, endState, type Process, type World } from './world.ts';

/** The story without a disturbance, with which all others are compared. */
let clean: { readonly end: string; readonly writes: number; readonly calls: number };

beforeAll(async () => {
  const world = toyWorld();
  const process = world.start();
  await tell(world);
  clean = { end: endState(world.server), writes: world.writes().length, calls: process.client.writes() };
});

/** Nothing is written in ten minutes, sensors and all. */
async function expectQuiet(world: World): Promise<void> {
  const before = world.server.version();
  await world.advance(600_000);
  expect(world.server.log.filter((entry) => entry.version > before)).toEqual([]);
}

async function expectCleanEnd(world: World, slack: number): Promise<void> {
  expect(endState(world.server)).toBe(clean.end);
  expect(world.writes().length).toBeLessThanOrEqual(clean.writes + slack);
  await expectQuiet(world);
}

function conditions(world: World, name: string): Record<string, string> {
  const status = world.server.get(resourceKey(TOY), name, 'ns')?.['status'] as
    | { readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[] }
    | undefined;
  return Object.fromEntries((status?.conditions ?? []).map((c) => [c.type, `${c.status} ${c.reason}`]));
}

describe('undisturbed', () => {
  it('makes it so and is then quiet, writes and calls [case 109]', async () => {
    const world = toyWorld();
    const process = world.start();
    await tell(world);
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'True Ready' });
    expect(
      world.server
        .list(resourceKey(BOX))
        .map((box) => box.metadata.name)
        .sort(),
    ).toEqual(['one-box-a', 'one-box-x']);
    const calls = process.client.writes();
    await expectCleanEnd(world, 0);
    // Not even writes that change nothing.
    expect(process.client.writes()).toBe(calls);
    expect(calls).toBeLessThan(110);
  });

  it('ends the same whatever the order of events and answers', async () => {
    for (let seed = 2; seed < 18; seed++) {
      const world = toyWorld({ seed });
      const process = world.start({ lagMs: [0, 200] });
      await tell(world);
      await expectCleanEnd(world, 30);
      // It waits for its own writes rather than run into conflicts.
      expect(process.client.writes() - world.writes().length).toBeLessThanOrEqual(6);
    }
  });

  it('writes nothing when it starts again', async () => {
    const world = toyWorld();
    const first = world.start();
    await tell(world);
    first.kill();
    const before = world.server.version();
    world.start();
    await world.settle();
    expect(world.writes(before)).toEqual([]);
  });

  it('is moved by no order of keys [case 107]', async () => {
    const world = toyWorld();
    world.start();
    await tell(world);
    const before = world.server.version();
    for (const kind of [FENCE, BOX, TOY]) {
      for (const object of world.server.list(resourceKey(kind))) {
        const ref = refTo(kind, object.metadata.name);
        world.server.edit(ref, 'user', (live) => ({ ...live, metadata: reversed(live.metadata) }));
      }
    }
    await world.settle();
    expect(world.server.version()).toBe(before);
  });
});

describe('crash [O07]', () => {
  it.each(['crash-before', 'crash-after'] as const)(
    '%s each write, then a new process [I1] [I2] [I3] [I11]',
    async (kind) => {
      for (let k = 1; k <= clean.calls; k++) {
        const world = toyWorld();
        let process = world.start({ fault: (write) => (write === k ? { kind } : undefined) });
        await tell(world, async () => {
          await world.advance(2_000);
          if (!process.isAlive()) process = world.start();
        });
        await expectCleanEnd(world, 12);
      }
    },
  );
});

describe('stale views', () => {
  it.each(['events', 'list'] as const)(
    'a new process sees the world of then, acts, and catches up by %s [I1] [I2] [I3]',
    async (how) => {
      for (let step = 0; step < STORY.length; step++) {
        for (const back of [1, 8, 40]) {
          const world = toyWorld({ seed: 7 + back });
          let process = world.start();
          await tell(world, async (at) => {
            if (at !== step) return;
            process.kill();
            process = world.start({ frozenAt: Math.max(world.server.version() - back, 100) });
            await world.advance(20_000);
            process.client.thaw(how);
          });
          await expectCleanEnd(world, 40);
        }
      }
    },
  );

  it.each(['events', 'list'] as const)(
    'a running process sees nothing for a while, then catches up by %s',
    async (how) => {
      for (let step = 0; step < STORY.length; step++) {
        const world = toyWorld();
        const process = world.start();
        await tell(world, async (at) => {
          if (at !== step) return;
          process.client.freeze(world.server.version());
          await world.advance(15);
          // Half of what follows falls into the gap too.
          if (at + 1 < STORY.length) await world.advance(30_000);
          process.client.thaw(how);
        });
        await expectCleanEnd(world, 20);
      }
    },
  );

  it('a toy deleted and made anew within the gap is another one [I2]', async () => {
    const world = toyWorld();
    world.server.create(config(), 'user');
    world.server.create(toy('one'), 'user');
    const process = world.start();
    await world.settle();
    process.client.freeze(world.server.version());
    world.server.delete(refTo(TOY, 'one'), 'user');
    world.server.create(toy('one', { size: 5 }), 'user');
    await world.advance(10_000);
    process.client.thaw('list');
    await world.settle();
    const uid = world.server.get(resourceKey(TOY), 'one', 'ns')?.metadata.uid;
    expect(childrenOf(world.server, BOX, uid)).toMatchObject([{ spec: { size: '5' } }]);
    expect(conditions(world, 'one')['Ready']).toBe('True Ready');
  });

  it('what came and went unseen leaves nothing behind', async () => {
    const world = toyWorld();
    world.server.create(config(), 'user');
    const process = world.start();
    await world.settle();
    process.client.freeze(world.server.version());
    world.server.create(toy('brief'), 'user');
    world.server.delete(refTo(TOY, 'brief'), 'user');
    process.client.thaw('list');
    await world.settle();
    expect(world.writes()).toEqual([]);
  });
});

describe('errors of the API server', () => {
  const codes: readonly (readonly [ApiErrorCode, boolean])[] = [
    ['conflict', false],
    ['gone', false],
    ['invalid', false],
    ['forbidden', false],
    ['tooManyRequests', false],
    ['server', false],
    ['server', true],
    ['timeout', true],
    ['network', false],
    ['network', true],
    ['conflict', true],
  ];
  // Between them the codes come to every write.
  it.each(codes.map(([code, committed], i) => [code, committed, i] as const))(
    '%s (done all the same: %s) on one write of a run',
    async (code, committed, i) => {
      for (let k = 1 + i; k <= clean.calls; k += codes.length) {
        const world = toyWorld();
        const error = new ApiError(code, 'scripted', { retryAfterMs: code === 'tooManyRequests' ? 2_000 : 0 });
        world.start({ fault: (write) => (write === k ? { kind: 'error', error, committed } : undefined) });
        await tell(world);
        await expectCleanEnd(world, 6);
      }
    },
  );

  it('every third write fails, done or not', async () => {
    const world = toyWorld();
    const error = new ApiError('network', 'scripted');
    world.start({
      fault: (write) => (write % 3 === 0 ? { kind: 'error', error, committed: write % 2 === 0 } : undefined),
    });
    await tell(world);
    await expectCleanEnd(world, 60);
  });

  it('shows what lasts, in Ready, and takes it back', async () => {
    const world = toyWorld();
    let away = true;
    const error = new ApiError('forbidden', 'boxes is forbidden');
    world.start({
      door: (client) => ({
        ...client.door,
        apply: async (resource, object, options) => {
          if (away && resource.kind === 'Box') throw error;
          return client.door.apply(resource, object, options);
        },
      }),
    });
    world.server.create(config(), 'user');
    world.server.create(toy('one'), 'user');
    await world.advance(60_000);
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'False ApplyFailed', Stalled: 'True ApplyFailed' });
    const writes = world.writes().length;
    await world.advance(600_000);
    expect(world.writes().length).toBe(writes);
    away = false;
    await world.settle();
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'True Ready' });
    expect(conditions(world, 'one')).not.toHaveProperty('Stalled');
  });
});

describe('two leaders for a while [O07]', () => {
  it('do no harm and come to the same end [I2] [I11]', async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const world = toyWorld({ seed });
      world.start({ lagMs: [0, 300] });
      world.start({ lagMs: [0, 300] });
      await tell(world);
      await expectCleanEnd(world, 150);
    }
  });

  it('one of them in the past', async () => {
    for (let step = 0; step < STORY.length; step++) {
      const world = toyWorld({ seed: step + 1 });
      const old = world.start();
      await tell(world, async (at) => {
        if (at !== step) return;
        old.client.freeze(world.server.version());
        world.start();
        await world.advance(60_000);
        old.client.thaw('events');
        await world.advance(1_000);
        old.kill();
      });
      await expectCleanEnd(world, 60);
    }
  });

  it('a leader that was stopped past its lease writes no more when it wakes [case 118]', async () => {
    const world = toyWorld();
    const ends: string[] = [];
    const candidate = (name: string): Process => {
      let mayWrite = () => false;
      const leading = new AbortController();
      const process = world.start({
        name,
        lead: false,
        door: (client) => guardWrites(client.door, () => mayWrite(), leading.signal),
      });
      const leader = startLeaderElection({
        door: process.client.door,
        clock: process.clock,
        random: world.random,
        log: silentLog,
        namespace: 'oz0-system',
        name: 'oz0-controller',
        identity: name,
        signal: new AbortController().signal,
        onLead: (signal) => {
          signal.addEventListener('abort', () => leading.abort());
          process.engine.lead();
        },
      });
      mayWrite = leader.mayWrite;
      void leader.ended.then((how) => ends.push(`${name} ${how}`));
      return process;
    };
    world.server.create(config(), 'user');
    const first = candidate('controller-a');
    await world.advance(5_000);
    const second = candidate('controller-b');
    world.server.create(toy('one'), 'user');
    await world.advance(30_000);
    expect(world.server.get('coordination.k8s.io/v1/Lease', 'oz0-controller', 'oz0-system')).toMatchObject({
      spec: { holderIdentity: 'controller-a' },
    });
    // In the midst of work: it has seen the change, and is stopped before it writes.
    change(world.server, 'one', { size: 2 });
    await world.advance(1);
    first.clock.stop();
    await world.advance(40_000);
    const version = world.server.version();
    first.clock.resume();
    await world.advance(60_000);
    const work = world.server.log.filter((entry) => !entry.kind.endsWith('/Lease'));
    expect(work.filter((entry) => entry.by === first.name && entry.version > version)).toEqual([]);
    expect(ends).toEqual(['controller-a lost']);
    expect(second.isAlive()).toBe(true);
    expect(world.server.list(resourceKey(BOX))).toMatchObject([{ spec: { size: '2' } }]);
    expect(conditions(world, 'one')['Ready']).toBe('True Ready');
  });
});

describe('others who write', () => {
  async function settled(): Promise<World> {
    const world = toyWorld();
    world.server.create(config(), 'user');
    world.server.create(toy('one', { boxes: ['a', 'b'] }), 'user');
    world.start();
    await world.settle();
    return world;
  }

  it('a child of each kind that was deleted is made again [case 110]', async () => {
    for (const [kind, name] of [
      [FENCE, 'one-fence'],
      [BOX, 'one-box-a'],
    ] as const) {
      const world = await settled();
      const before = endState(world.server);
      world.server.delete(refTo(kind, name), 'user');
      await world.settle();
      expect(endState(world.server)).toBe(before);
      await expectQuiet(world);
    }
  });

  it('what is ours is put back, once; what is not ours is left [case 111]', async () => {
    const world = await settled();
    const version = world.server.version();
    world.server.edit(refTo(BOX, 'one-box-a'), 'user', (box) => ({
      ...box,
      metadata: { ...box.metadata, labels: { ...box.metadata.labels, theirs: 'x' } },
      spec: { ...(box['spec'] as object), text: 'edited' },
    }));
    await world.settle();
    expect(world.server.get(resourceKey(BOX), 'one-box-a', 'ns')).toMatchObject({
      metadata: { labels: { theirs: 'x' } },
      spec: { text: 'first' },
    });
    expect(world.writes(version).filter((entry) => entry.kind === resourceKey(BOX))).toHaveLength(1);
    const after = world.server.version();
    world.server.edit(refTo(BOX, 'one-box-a'), 'user', (box) => ({
      ...box,
      spec: { ...(box['spec'] as object), colour: 'red' },
    }));
    await world.settle();
    expect(world.writes(after).filter((entry) => entry.kind === resourceKey(BOX))).toEqual([]);
  });

  it('one who disagrees for ever gets no storm', async () => {
    const world = await settled();
    world.server.onEntry((entry) => {
      if (entry.object.metadata.name !== 'one-box-a' || entry.by !== 'controller-1') return;
      world.clock.after(10, () => {
        world.server.edit(refTo(BOX, 'one-box-a'), 'stubborn', (box) => ({
          ...box,
          spec: { ...(box['spec'] as object), text: 'mine' },
        }));
      });
    });
    world.server.edit(refTo(BOX, 'one-box-a'), 'stubborn', (box) => ({
      ...box,
      spec: { ...(box['spec'] as object), text: 'mine' },
    }));
    const version = world.server.version();
    await world.advance(3_600_000);
    const boxes = world.writes(version).filter((entry) => entry.kind === resourceKey(BOX));
    expect(boxes.length).toBeGreaterThan(3);
    expect(boxes.length).toBeLessThan(40);
  });

  it('a name that somebody else has is refused, said, and taken when it is free [I2]', async () => {
    const world = toyWorld();
    world.server.create(config(), 'user');
    const theirs = {
      apiVersion: BOX.apiVersion,
      kind: 'Box',
      metadata: { name: 'one-box-a', namespace: 'ns' },
      spec: { size: '9', text: '' },
    };
    world.server.create(theirs, 'user');
    world.server.create(toy('one'), 'user');
    world.start();
    await world.settle();
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'False ChildRefused', Stalled: 'True ChildRefused' });
    expect(world.server.get(resourceKey(BOX), 'one-box-a', 'ns')).toMatchObject({ spec: { size: '9' } });
    // The fence neither: half of what is wanted is nothing.
    expect(world.server.list(resourceKey(FENCE))).toEqual([]);
    await expectQuiet(world);
    world.server.delete(refTo(BOX, 'one-box-a'), 'user');
    await world.settle();
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'True Ready' });
  });

  it('a name that somebody took while our view was behind is not touched either [I2]', async () => {
    const world = toyWorld();
    world.server.create(config(), 'user');
    world.server.create(toy('one'), 'user');
    const seen = world.server.version();
    const spec = { size: '9', text: 'theirs' };
    for (const [kind, name] of [
      [FENCE, 'one-fence'],
      [BOX, 'one-box-a'],
    ] as const) {
      const { apiVersion } = kind;
      world.server.create({ apiVersion, kind: kind.kind, metadata: { name, namespace: 'ns' }, spec }, 'user');
    }
    const process = world.start({ frozenAt: seen });
    await world.advance(30_000);
    const versions = world.server.list(resourceKey(FENCE)).map((object) => object.metadata.resourceVersion);
    expect(versions).toEqual([String(seen + 1)]);
    process.client.thaw('events');
    await world.settle();
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'False ChildRefused' });
    expect(world.server.list(resourceKey(FENCE))).toMatchObject([{ spec, metadata: { resourceVersion: versions[0] } }]);
  });

  it('a child whose owner was taken away is theirs now', async () => {
    const world = await settled();
    world.server.edit(refTo(BOX, 'one-box-b'), 'user', (box) => ({
      ...box,
      metadata: { ...box.metadata, ownerReferences: [] },
    }));
    await world.settle();
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'False ChildRefused' });
    change(world.server, 'one', { boxes: ['a'] });
    await world.settle();
    expect(world.server.get(resourceKey(BOX), 'one-box-b', 'ns')).toBeDefined();
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'True Ready' });
  });
});

describe('too little known', () => {
  it('a read that is gone changes and deletes nothing [I1]', async () => {
    const world = toyWorld();
    world.server.create(config(), 'user');
    world.server.create(toy('one'), 'user');
    world.start();
    await world.settle();
    const boxes = world.server.list(resourceKey(BOX));
    world.server.delete(refTo(CONFIG, 'config'), 'user');
    await world.settle();
    expect(world.server.list(resourceKey(BOX))).toEqual(boxes);
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'False ConfigMissing', BoxReady: 'Unknown NotReported' });
    await expectQuiet(world);
    world.server.create(config(), 'user');
    await world.settle();
    expect(conditions(world, 'one')).toMatchObject({ Ready: 'True Ready' });
  });

  it('a parent that is deleted is left to the garbage collector', async () => {
    const world = toyWorld();
    world.server.create(config(), 'user');
    world.server.create(toy('one'), 'user');
    world.start();
    await world.settle();
    const version = world.server.version();
    world.server.delete(refTo(TOY, 'one'), 'user');
    await world.settle();
    expect(world.writes(version)).toEqual([]);
    expect(world.server.list(resourceKey(BOX))).toEqual([]);
  });
});

describe('poison', () => {
  it('ten bad objects among a hundred harm none of the others [I12] [case 114]', async () => {
    const world = toyWorld();
    world.server.create(config(), 'user');
    const bad = [
      toy('bad-0', { size: -1 }),
      toy('bad-1', { size: -1 }),
      { ...toy('bad-2'), spec: undefined },
      { ...toy('bad-3'), spec: 'text' },
      { ...toy('bad-4'), spec: { size: 'x', boxes: {}, config: 3 } },
      toy('bad-5', { boxes: ['a', 'a'] }),
      toy('bad-6', { boxes: [null as unknown as string] }),
      toy('bad-7', { config: 'missing' }),
      toy('bad-8', { size: Number.NaN }),
      toy('bad-9', { boxes: Array.from({ length: 300 }, (_, i) => `b${i}`) }),
    ];
    for (let i = 0; i < 100; i++) {
      world.server.create(toy(`good-${i}`), 'user');
      const poison = bad[i / 10];
      if (poison) world.server.create(poison, 'user');
    }
    world.start();
    await world.advance(20_000);
    for (let i = 0; i < 100; i++) expect(conditions(world, `good-${i}`)).toMatchObject({ Ready: 'True Ready' });
    expect(conditions(world, 'bad-0')).toMatchObject({ Ready: 'Unknown InternalError' });
    expect(conditions(world, 'bad-4')).toMatchObject({ Ready: 'False Unreadable', Stalled: 'True Unreadable' });
    expect(conditions(world, 'bad-5')).toMatchObject({ Ready: 'False ChildRefused' });
    expect(conditions(world, 'bad-7')).toMatchObject({ Ready: 'False ConfigMissing' });
    await world.settle();
    await expectQuiet(world);
  });
});

describe('close', () => {
  it('is total: no pass, no timer, no write', async () => {
    const world = toyWorld();
    world.server.create(config(), 'user');
    world.server.create(toy('one'), 'user');
    const process = world.start();
    await world.advance(12);
    process.kill();
    let ended = false;
    void process.engine.ended.then(() => {
      ended = true;
    });
    const version = world.server.version();
    await world.advance(60_000);
    expect(ended).toBe(true);
    expect(world.writes(version)).toEqual([]);
    expect(world.clock.pending()).toBe(0);
  });
});

function reversed<T extends object>(value: T): T {
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, inner]) => [
        key,
        typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? reversed(inner as object) : inner,
      ]),
  ) as T;
}
