/** Results that are more than a model should be given at once: cut, kept, and read on by whoever was given the first part. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeTool, startFakeTool, text } from './support/fakeTool.ts';
import { callTool, initialize, type Loose, legacy, modern, startWorld, token, type World } from './support/world.ts';

const lines = Array.from({ length: 400 }, (_, n) => `line number ${n}`).join('\n');
let tool: FakeTool;
let world: World;

beforeEach(async () => {
  tool = await startFakeTool({ big: () => text(lines), small: () => text('small') });
  world = await startWorld({ resultTokens: 500 });
  world.agent('reviewer', ['gh.*']);
  world.tool('gh');
  world.pod('gh', tool);
  await world.listed(['gh__big', 'gh__small']);
});
afterEach(async () => {
  await world.close();
  await tool.close();
  expect(world.problems).toEqual([]);
});

const noteOf = (result: Loose): string => result.content.at(-1).text;
const nextOf = (result: Loose): Loose => JSON.parse(/\{.*?\}/.exec(noteOf(result))?.[0] ?? 'null');

describe('[R12] a large result', () => {
  test('is read on to its end, in both eras, with one call of the tool each', async () => {
    const session = await initialize(world);
    const calls: ((name: string, args: object) => Promise<{ body: Loose }>)[] = [
      (name, args) => callTool(world, name, args),
      (name, args) => legacy(world, session, 'tools/call', { name, arguments: args }),
      (name, args) => callTool(world, name, args, { path: '/tools/gh/mcp' }),
    ];
    for (const [index, call] of calls.entries()) {
      let { result } = (await call(index === 2 ? 'big' : 'gh__big', {})).body;
      let read = result.content[0].text;
      let parts = 1;
      for (let next = nextOf(result); next !== null; next = nextOf(result)) {
        ({ result } = (await call('oz__read_on', next)).body);
        read += result.content[0].text;
        parts += 1;
      }
      expect(read).toBe(lines);
      expect(parts).toBeGreaterThan(2);
      expect(noteOf(result)).toContain('its end');
    }
    expect(tool.runs).toEqual({ big: 3 });
  });

  test('the way to read on is shown once there is something to read', async () => {
    expect((await callTool(world, 'oz__read_on', { result: 'x', part: 1 })).body.error.code).toBe(-32602);
    await callTool(world, 'gh__small');
    await world.listed(['gh__big', 'gh__small']);
    await callTool(world, 'gh__big');
    await world.listed(['gh__big', 'gh__small', 'oz__read_on']);
    const own = await modern(world, 'tools/list', {}, { path: '/tools/gh/mcp' });
    expect(own.body.result.tools.map((each: Loose) => each.name)).toEqual(['big', 'small', 'oz__read_on']);
  });

  test('is nobody else’s, and no more readable than its function is callable', async () => {
    world.agent('clerk', ['gh.*'], { serviceAccounts: ['clerk'] });
    const clerk = { token: token('acme', 'clerk') };
    const next = nextOf((await callTool(world, 'gh__big')).body.result);
    await callTool(world, 'gh__big', {}, clerk);
    const stolen = await callTool(world, 'oz__read_on', next, clerk);
    expect(stolen.body.result).toMatchObject({ isError: true });
    expect(stolen.text).not.toContain('line number');
    for (const wrong of [
      {},
      { ...next, part: 0 },
      { ...next, part: 99 },
      { ...next, part: '2' },
      { result: 'x', part: 1 },
    ])
      expect((await callTool(world, 'oz__read_on', wrong)).body.result.isError).toBe(true);
    world.put('Stop', 'incident', { tool: 'gh' });
    const stopped = await callTool(world, 'oz__read_on', next);
    expect(stopped.body.result._meta['ai.oz0/reason']).toBe('stopped');
    world.remove('Stop', 'incident');
    world.agent('reviewer', ['gh.small']);
    const revoked = await callTool(world, 'oz__read_on', next);
    expect(revoked.body.result.isError).toBe(true);
    expect(revoked.text).not.toContain('line number');
    world.agent('reviewer', ['gh.*']);
    expect((await callTool(world, 'oz__read_on', next)).body.result.content[0].text).toContain('line number');
    const outcomes = world.records.filter((record) => record.tool === 'oz').map(({ outcome }) => outcome);
    expect(new Set(outcomes)).toEqual(new Set(['ok', 'refused']));
  });
});
