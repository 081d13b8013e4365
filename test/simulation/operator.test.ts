import { beforeAll, describe, expect, it } from 'vitest';
import { resourceKey } from '../../src/engine/contract.ts';
import { countAt } from '../../src/reconcilers/live.ts';
import { AGENT, CONFIG_MAP, DAEMON_SET, DEPLOYMENT, NAMESPACE, PLUGIN, TOOL } from '../../src/reconcilers/resources.ts';
import { refTo } from './api-server.ts';
import { edit, inAcme, MADE, operatorWorld, readyOf, STORY, tell } from './operator-world.ts';
import { endState, isOurs, type World } from './world.ts';

/** The story without a disturbance, with which all others are compared. */
let clean: { readonly end: string; readonly calls: number };

beforeAll(async () => {
  const world = operatorWorld();
  const process = world.start();
  await tell(world);
  clean = { end: endState(world.server), calls: process.client.writes() };
});

const live = (world: World, resource: typeof TOOL, name: string) =>
  world.server.get(resourceKey(resource), name, 'acme');
const names = (world: World, resource: typeof TOOL) =>
  world.server
    .list(resourceKey(resource))
    .filter(({ metadata }) => metadata.namespace === 'acme')
    .map(({ metadata }) => metadata.name)
    .sort();

async function expectQuiet(world: World): Promise<void> {
  const before = world.server.version();
  await world.advance(600_000);
  expect(world.server.log.filter((entry) => entry.version > before).map(({ object }) => object)).toEqual([]);
}

describe('undisturbed', () => {
  it('[K01] [K02] makes it so, and is then quiet for ten minutes [case 109] [O02]', async () => {
    const world = operatorWorld();
    world.start();
    await tell(world);
    expect(names(world, TOOL)).toEqual(['acme-fetch', 'acme-github', 'everything']);
    expect(readyOf(live(world, TOOL, 'everything'))).toBe('True');
    expect(readyOf(live(world, PLUGIN, 'acme-github'))).toBe('True');
    expect(readyOf(live(world, AGENT, 'acme-reviewer'))).toBe('True');
    expect(live(world, CONFIG_MAP, 'oz0')).toMatchObject({ data: { 'ca.crt': 'second' } });
    await expectQuiet(world);
  });

  it('writes nothing when another process takes over', async () => {
    const world = operatorWorld();
    const first = world.start();
    await tell(world);
    first.kill();
    const before = world.server.version();
    world.start();
    await world.settle();
    expect(world.writes(before).map(({ object }) => [object.kind, object.metadata.name, object['status']])).toEqual([]);
  });
});

describe('[K10] an id that two Plugins want', () => {
  it('stays with the first, and goes to the second once it is free', async () => {
    const world = operatorWorld();
    world.start();
    await tell(world, (step) => {
      if (STORY[step]?.name !== 'a Tool changes') return;
      const owner = live(world, TOOL, 'acme-fetch')?.metadata.ownerReferences?.[0]?.name;
      expect(owner).toBe('acme-github');
      expect(readyOf(live(world, PLUGIN, 'acme-web'))).toBe('False');
    });
    // The first gave it up at the end of the story, and nobody had to touch the second.
    expect(live(world, TOOL, 'acme-fetch')?.metadata.ownerReferences?.[0]?.name).toBe('acme-web');
    expect(readyOf(live(world, PLUGIN, 'acme-web'))).toBe('True');
  });
});

describe('a Tool that moves between one pod a node and pods anywhere', () => {
  it('never is without a workload that takes calls', async () => {
    const world = operatorWorld();
    world.start();
    await tell(world);
    const since = world.server.version();
    edit(world, TOOL, 'everything', { affinity: 'node' });
    await world.settle();
    const log = world.server.log.filter(
      ({ version, object }) => version > since && object.metadata.name === 'oz0t-everything',
    );
    const gone = log.findIndex(({ type, kind }) => type === 'DELETED' && kind === resourceKey(DEPLOYMENT));
    const up = log.findIndex(
      ({ kind, object }) => kind === resourceKey(DAEMON_SET) && countAt(object, 'status', 'numberReady') > 0,
    );
    expect(up).toBeGreaterThanOrEqual(0);
    expect(gone).toBeGreaterThan(up);
    await expectQuiet(world);
  });
});

describe('[K01] a namespace that ends', () => {
  it('is left alone: nothing is put back there, and nothing is said', async () => {
    const world = operatorWorld();
    world.start();
    await tell(world);
    world.server.edit(refTo(NAMESPACE, 'acme'), 'kubernetes', (namespace) => ({
      ...namespace,
      status: { phase: 'Terminating' },
    }));
    await world.settle();
    const before = world.server.version();
    for (const name of names(world, DAEMON_SET)) world.server.delete(inAcme(DAEMON_SET, name), 'namespace-controller');
    for (const name of names(world, CONFIG_MAP)) world.server.delete(inAcme(CONFIG_MAP, name), 'namespace-controller');
    await world.settle();
    expect(world.writes(before)).toEqual([]);
  });
});

describe('[K01] deleting', () => {
  it('a Plugin takes all that was made for it, and nothing else', async () => {
    const world = operatorWorld();
    world.start();
    await tell(world);
    world.server.delete(inAcme(PLUGIN, 'acme-github'), 'user');
    await world.settle();
    expect(names(world, TOOL)).not.toContain('acme-github');
    for (const resource of MADE) expect(names(world, resource)).not.toContain('oz0t-acme-github');
    expect(readyOf(live(world, TOOL, 'everything'))).toBe('True');
  });

  it('[case 110] what somebody else deletes comes back', async () => {
    const world = operatorWorld();
    world.start();
    await tell(world);
    const before = endState(world.server);
    const made = world.server.log
      .filter((entry) => entry.type === 'ADDED' && isOurs(entry))
      .map(({ object }) => object);
    for (const resource of MADE) {
      for (const name of names(world, resource)) {
        if (!made.some(({ kind, metadata }) => kind === resource.kind && metadata.name === name)) continue;
        world.server.delete(inAcme(resource, name), 'somebody');
        await world.settle();
      }
    }
    expect(endState(world.server)).toBe(before);
  });
});

describe('crash [O07]', () => {
  it.each(['crash-before', 'crash-after'] as const)(
    '%s one write in nine, then a new process',
    { timeout: 120_000 },
    async (kind) => {
      for (let k = 1; k <= clean.calls; k += 9) {
        const world = operatorWorld();
        let process = world.start({ fault: (write) => (write === k ? { kind } : undefined) });
        await tell(world, async () => {
          await world.advance(2_000);
          if (!process.isAlive()) process = world.start();
        });
        expect(endState(world.server)).toBe(clean.end);
      }
    },
  );
});
