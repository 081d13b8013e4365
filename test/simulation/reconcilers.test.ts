/** The operator's reconcilers where what they see is old, or where two of them act; the rest is in `operator.test.ts`. */
import { beforeAll, describe, expect, it } from 'vitest';
import { operatorWorld, STORY, tell } from './operator-world.ts';
import { endState, type World } from './world.ts';

let clean: string;

beforeAll(async () => {
  const world = operatorWorld();
  world.start();
  await tell(world);
  clean = endState(world.server);
});

async function expectCleanEnd(world: World): Promise<void> {
  expect(endState(world.server)).toBe(clean);
  const before = world.server.version();
  await world.advance(600_000);
  expect(world.server.log.filter((entry) => entry.version > before)).toEqual([]);
}

describe("the operator's reconcilers", () => {
  it('start with a view of the past, act, and catch up [I1] [I2] [I11]', async () => {
    for (let step = 1; step < STORY.length; step++) {
      const world = operatorWorld({ seed: step });
      let process = world.start();
      await tell(world, async (at) => {
        if (at !== step) return;
        process.kill();
        process = world.start({ frozenAt: Math.max(world.server.version() - 10 * step, 100) });
        await world.advance(20_000);
        process.client.thaw(step % 2 === 0 ? 'list' : 'events');
      });
      await expectCleanEnd(world);
    }
  });

  it('two leaders at once do no harm and come to the same end [O07] [I2] [I11]', async () => {
    for (let seed = 1; seed <= 4; seed++) {
      const world = operatorWorld({ seed });
      world.start({ lagMs: [0, 300] });
      world.start({ lagMs: [0, 300] });
      await tell(world);
      await expectCleanEnd(world);
    }
  });

  it('a second leader in the past does no harm either [O07] [I2] [I11]', async () => {
    for (let step = 1; step < STORY.length; step += 2) {
      const world = operatorWorld({ seed: step });
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
      await expectCleanEnd(world);
    }
  });
});
