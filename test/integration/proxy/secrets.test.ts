/** Secrets as files: what is no good keeps the tool from starting, a new value counts at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import {
  binding,
  bodyOf,
  canariesIn,
  codeOf,
  get,
  inner,
  SECRET,
  startWorld,
  statusOf,
  type World,
  type WorldOptions,
} from './support/world.ts';

const worlds: World[] = [];
const start = async (options: WorldOptions): Promise<World> => {
  const world = await startWorld(options);
  worlds.push(world);
  return world;
};
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
});
const NEXT = 'the-NEXT-value-of-the-secret';

describe('[case 81] a secret that is no good is named', () => {
  test.each([
    ['a missing key', undefined, 'missing'],
    ['an empty value', '', 'empty'],
    ['blanks and a newline', '  \n', 'empty'],
    ['a newline within', 'abcdefgh\nijkl', 'malformed'],
    ['CR LF and a header', 'abcdefgh\r\nX-Evil: 1', 'malformed'],
    ['a NUL', 'abcdefgh\0', 'malformed'],
    ['a tab', 'abcdefgh\ti', 'malformed'],
    ['Latin-1', 'abcdefgh\xe9', 'malformed'],
    ['a blank before it', ' abcdefgh', 'malformed'],
    ['a blank after it', 'abcdefgh ', 'malformed'],
    ['too short to be found in an answer', 'abcdefg', 'malformed'],
    ['longer than a header may be', 'a'.repeat(4_097), 'malformed'],
  ] as const)('%s', async (_, value, problem) => {
    const world = await start({ secrets: { API_KEY: value } });
    expect(world.proxy.problems()).toEqual([{ name: 'API_KEY', problem }]);
    // Never as if it were empty.
    const answer = await inner(world, get([`Authorization: Bearer ${world.placeholder()}`]));
    expect([statusOf(answer), codeOf(answer)]).toEqual([503, 'secret-unavailable']);
    expect(world.seen).toEqual([]);
  });
  test('an environment secret: any text but NUL', async () => {
    const bad = await start({ bindings: [], secrets: { A: 'x\0y', B: undefined, C: '\n' } });
    expect(bad.proxy.problems()).toEqual([
      { name: 'A', problem: 'malformed' },
      { name: 'B', problem: 'missing' },
      { name: 'C', problem: 'empty' },
    ]);
    const good = await start({ bindings: [], secrets: { PEM: '-----BEGIN X-----\nä\n' } });
    expect(good.proxy.problems()).toEqual([]);
    expect(good.proxy.environment()['PEM']).toBe('-----BEGIN X-----\nä\n');
  });
  test('an editor’s newline is taken off', async () => {
    for (const end of ['\n', '\r\n']) {
      const world = await start({ secrets: { API_KEY: `${NEXT}${end}` } });
      await inner(world, get([`Authorization: Bearer ${world.placeholder()}`]));
      expect(world.seen[0]?.rawHeaders).toContain(`Bearer ${NEXT}`);
    }
  });
});

describe('[C04] a secret that is replaced', () => {
  const settle = () => sleep(120);
  test('bound: the next request has the new value, the tool is left alone, the old one is masked still', async () => {
    const world = await start({});
    const rotated: (readonly string[])[] = [];
    world.proxy.onRotated((names) => rotated.push(names));
    const placeholder = world.placeholder();
    await world.setSecrets({ API_KEY: NEXT });
    await settle();
    world.script = (_request, response) => response.end(`${SECRET} ${NEXT}`);
    const answer = await inner(world, get([`Authorization: Bearer ${placeholder}`]));
    expect(world.seen[0]?.rawHeaders).toContain(`Bearer ${NEXT}`);
    expect([...canariesIn(bodyOf(answer), SECRET), ...canariesIn(bodyOf(answer), NEXT)]).toEqual([]);
    expect(world.placeholder()).toBe(placeholder);
    expect(rotated).toEqual([]);
  });
  test('of the environment: who runs the tool is told, and the environment is the new one', async () => {
    const world = await start({ bindings: [], secrets: { A: 'one', B: 'two' } });
    const rotated: (readonly string[])[] = [];
    world.proxy.onRotated((names) => rotated.push(names));
    await world.setSecrets({ A: 'one', B: 'three' });
    await settle();
    expect(rotated).toEqual([['B']]);
    expect(world.proxy.environment()).toMatchObject({ A: 'one', B: 'three' });
  });
  test('one that goes away is refused at once and named; one that comes back is used', async () => {
    const world = await start({});
    const rotated: (readonly string[])[] = [];
    world.proxy.onRotated((names) => rotated.push(names));
    await world.setSecrets({});
    await settle();
    expect(world.proxy.problems()).toEqual([{ name: 'API_KEY', problem: 'missing' }]);
    const request = get([`Authorization: Bearer ${world.placeholder()}`]);
    expect(codeOf(await inner(world, request))).toBe('secret-unavailable');
    await world.setSecrets({ API_KEY: NEXT });
    await settle();
    expect(world.proxy.problems()).toEqual([]);
    expect(statusOf(await inner(world, request))).toBe(200);
    expect(rotated).toEqual([['API_KEY'], ['API_KEY']]);
  });
});

test('[C03] nothing that the tool can read holds the value: its environment, its files, the log', async () => {
  const world = await start({ secrets: { API_KEY: SECRET, PLAIN: 'an environment secret' }, bindings: [binding()] });
  await inner(world, get([`Authorization: Bearer ${world.placeholder()}`]));
  await inner(world, get([`X-Note: ${SECRET}`]));
  const readable = [
    JSON.stringify(world.proxy.environment()),
    ...world.proxy.bundleFiles().map(({ content }) => content.toString('latin1')),
    ...world.logs,
  ];
  expect(canariesIn(readable.join('\n'), SECRET)).toEqual([]);
  expect(world.proxy.environment()['API_KEY']).toMatch(/^[A-Za-z0-9]{40}$/);
});

test('secrets that begin one another, and one that is in another binding’s slot', async () => {
  const world = await start({
    secrets: { SHORT: 'prefix-secret', LONG: 'prefix-secret-longer' },
    // biome-ignore lint/suspicious/noTemplateCurlyInString: what a binding says
    bindings: [binding({ secret: 'SHORT' }), binding({ secret: 'LONG', name: 'X-Long', format: '${value}' })],
  });
  world.script = (_request, response) => response.end('prefix-secret-longer prefix-secret');
  const answer = await inner(world, get([`X-Long: ${world.placeholder('LONG')}`]));
  expect(world.seen[0]?.rawHeaders).toContain('prefix-secret-longer');
  expect(bodyOf(answer)).toBe(`${world.placeholder('LONG').slice(0, 20)} ${world.placeholder('SHORT').slice(0, 13)}`);
});
