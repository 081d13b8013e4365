/** The gateway with a real sidecar, launcher and tool process behind it, and mutual TLS between. Effects are read from the tool. */
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Peer } from '../../../src/net/peer.ts';
import { buildLauncher, type Pod, startPod, startTestCluster } from '../sidecar/pod.ts';
import { type CallRecords, createCallRecords } from './support/callRecords.ts';
import { callTool, type Loose, startWorld, until, type World } from './support/world.ts';

let cluster: Awaited<ReturnType<typeof startTestCluster>>;
let launcher: string;
let pod: Pod;
let peer: Peer;
let records: CallRecords;
const worlds: World[] = [];

beforeAll(async () => {
  launcher = buildLauncher();
  cluster = await startTestCluster();
});
beforeEach(async () => {
  records = createCallRecords();
  pod = await startPod({ cluster, launcher, modes: ['acts'] });
  await pod.untilReady();
  peer = await pod.peer();
});
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close();
  await pod.close();
});
afterAll(async () => {
  await cluster.close();
  rmSync(dirname(launcher), { recursive: true });
});

async function start(gatewayPod: string): Promise<World> {
  const world = await startWorld(
    { dialWindowMs: 500 },
    {
      toolCalls: records,
      gatewayPod,
      openConnections: () => ({
        dispatcher: () => peer.dispatcher() as never,
        close: async () => {},
      }),
    },
  );
  worlds.push(world);
  world.tool('acme', { timeout: '5s' });
  world.agent('reviewer', ['acme.act']);
  world.pod('acme', undefined);
  world.endpoints('acme', []);
  world.pod('acme', { port: 1 } as never, { uid: 'tool-pod-1' });
  await world.listed(['acme__act']);
  return world;
}

const act = async (world: World, id: string, ms = 0): Promise<Loose> =>
  (await callTool(world, 'acme__act', { id, ms }, { meta: { 'ai.oz0/call-id': id } })).body.result;
const phase = (): unknown => records.all()[0]?.status?.phase;
const acted = (id: string): number => pod.events(`acted ${id}`).length;

describe('[R11] one effect, and one outcome', () => {
  test('in peace, and delivered again', async () => {
    const world = await start('gateway-1');
    for (const _ of [1, 2]) expect((await act(world, 'a')).content[0].text).toBe('a');
    expect(acted('a')).toBe(1);
    expect(phase()).toBe('Succeeded');
  });

  test('delivered twice at once, through two gateways', async () => {
    const [one, other] = [await start('gateway-1'), await start('gateway-2')];
    const answers = await Promise.all([act(one, 'a', 500), act(other, 'a', 500)]);
    expect(answers.map(({ content }) => content[0].text)).toEqual(['a', 'a']);
    expect(acted('a')).toBe(1);
  });

  test('[case 67] its gateway ends in mid-call: the next one writes what came of it', async () => {
    const first = await start('gateway-1');
    const given = act(first, 'a', 1_500).catch(() => undefined);
    await until(() => acted('a') === 1, 'it acts');
    await first.close();
    await given;
    // The pod's other connections live on.
    peer = await pod.peer();
    const next = await start('gateway-1');
    await until(() => phase() === 'Succeeded', 'its outcome is written', 20_000);
    expect((await act(next, 'a', 1_500)).content[0].text).toBe('a');
    expect(acted('a')).toBe(1);
  });

  test('[R05] its sidecar is started anew in mid-call: unknown, and not made again', async () => {
    const world = await start('gateway-1');
    const given = act(world, 'a', 3_000);
    await until(() => acted('a') === 1, 'it acts');
    await pod.restartSidecar();
    peer = await pod.peer();
    expect((await given)._meta['ai.oz0/outcome']).toBe('unknown');
    await until(() => phase() === 'Unknown' || phase() === 'Succeeded', 'its outcome is written', 20_000);
    await pod.untilReady();
    expect(acted('a')).toBe(1);
  });
});
