/** The toy in its world: the other controller that makes boxes ready, what must never happen, and a story to be disturbed. */
import { sleep } from '../../src/engine/clock.ts';
import { type KubeObject, resourceKey } from '../../src/engine/contract.ts';
import { refTo } from './api-server.ts';
import { checkStatus } from './status-rules.ts';
import { BOX, CONFIG, config, FENCE, TOY, type Toy, toy, toyReconciler } from './toy.ts';
import { createWorld, type Invariant, isOurs, type World, type WorldOptions } from './world.ts';

export function toyWorld(options: Partial<WorldOptions> = {}): World {
  const world = createWorld({
    reconcilers: (clock) => [
      toyReconciler(async (input) => {
        await sleep(clock, 20);
        return Number(input) * 10;
      }),
    ],
    invariants: toyInvariants(),
    actors: [makeReady],
    ...options,
  });
  // The server stores sizes in its own words, as it does quantities: `1000m` becomes `1`.
  world.server.admit((object) =>
    object.kind === BOX.kind ? { ...object, spec: { colour: 'grey', ...inUnits(object['spec']) } } : object,
  );
  return world;
}

function inUnits(spec: unknown): object {
  const { size, ...rest } = spec as { readonly size: string };
  return { ...rest, size: size.replace(/000m$/, '') };
}

/** The controller of boxes: ready 50 ms after each change of their spec. */
function makeReady(entry: { readonly type: string; readonly object: KubeObject }, world: World): void {
  const { object } = entry;
  if (object.kind !== BOX.kind || entry.type === 'DELETED') return;
  world.clock.after(50, () => {
    const { name, namespace, uid } = object.metadata;
    const live = world.server.get(resourceKey(BOX), name, namespace);
    if (live?.metadata.uid !== uid || !live) return;
    world.server.replace({ ...live, status: { ready: live.metadata.generation } }, 'box-controller', 'status');
  });
}

function toyInvariants(): readonly Invariant[] {
  /** Every spec that a toy ever had, by uid. */
  const specs = new Map<string, Toy['spec'][]>();
  return [
    (entry) => {
      if (entry.object.kind !== TOY.kind) return;
      const uid = entry.object.metadata.uid ?? '';
      specs.set(uid, [...(specs.get(uid) ?? []), entry.object['spec'] as Toy['spec']]);
    },
    // [I11] in small: no box without a fence before it; but for a toy that is gone, of which nothing stays anyway.
    (entry, server) => {
      if (entry.type !== 'ADDED' || entry.object.kind !== BOX.kind || !isOurs(entry)) return;
      const owner = entry.object.metadata.ownerReferences?.[0];
      if (!server.list(resourceKey(TOY)).some((toy) => toy.metadata.uid === owner?.uid)) return;
      const fence = server.get(resourceKey(FENCE), `${owner?.name}-fence`, entry.object.metadata.namespace);
      if (fence?.metadata.ownerReferences?.[0]?.uid !== owner?.uid) {
        throw new Error(`[I11] ${entry.object.metadata.name} was made without its fence`);
      }
    },
    // [I2] Only what is controlled by one of ours, by uid, is deleted, and [I1] only what its toy at some time did not want.
    (entry) => {
      if (entry.type !== 'DELETED' || !isOurs(entry)) return;
      const { name, ownerReferences } = entry.object.metadata;
      const known = specs.get(ownerReferences?.find((owner) => owner.controller)?.uid ?? '');
      if (!known || ![FENCE.kind, BOX.kind].includes(entry.object.kind)) {
        throw new Error(`[I2] ${entry.object.kind} ${name} is not ours to delete`);
      }
      const box = name.split('-box-')[1];
      const unwanted = known.some(({ boxes }) => (box === undefined ? boxes?.length === 0 : !boxes?.includes(box)));
      if (!unwanted) throw new Error(`[I1] ${entry.object.kind} ${name} was deleted and always wanted`);
    },
    // [I3] A status of ours keeps its rules, and nobody else writes conditions.
    (entry) => {
      if (entry.object.kind === TOY.kind && isOurs(entry)) checkStatus(entry.object);
    },
    // Nothing of ours is ever written over what somebody else made.
    (entry, server) => {
      if (entry.type !== 'MODIFIED' || !isOurs(entry) || entry.object.kind === TOY.kind) return;
      const first = server.log.find(({ object }) => object.metadata.uid === entry.object.metadata.uid);
      if (first && !isOurs(first)) throw new Error(`[I2] ${entry.object.metadata.name} was made by ${first.by}`);
    },
  ];
}

/** What people do, step by step; after each the world comes to rest. */
export const STORY: readonly { readonly name: string; readonly act: (world: World) => void }[] = [
  { name: 'a toy and its config', act: ({ server }) => create(server, toy('one'), config()) },
  { name: 'another with three boxes', act: ({ server }) => create(server, toy('two', { boxes: ['a', 'b', 'c'] })) },
  { name: 'a size changes', act: ({ server }) => change(server, 'one', { size: 2 }) },
  {
    name: 'the config changes',
    act: ({ server }) => {
      server.edit(refTo(CONFIG, 'config'), 'user', (object) => ({ ...object, data: { text: 'second' } }));
    },
  },
  { name: 'boxes change', act: ({ server }) => change(server, 'two', { boxes: ['c', 'd'] }) },
  {
    name: 'one is deleted and made anew',
    act: ({ server }) => {
      server.delete(refTo(TOY, 'one'), 'user');
      create(server, toy('one', { size: 3, boxes: ['a', 'x'] }));
    },
  },
  { name: 'no boxes', act: ({ server }) => change(server, 'two', { boxes: [] }) },
];

function create(server: World['server'], ...objects: readonly KubeObject[]): void {
  for (const object of objects) server.create(object, 'user');
}

export function change(server: World['server'], name: string, spec: Partial<Toy['spec']>): void {
  server.edit(refTo(TOY, name), 'user', (object) => ({ ...object, spec: { ...(object['spec'] as object), ...spec } }));
}

/** Runs the story; `between` is called after each act, before the world comes to rest. */
export async function tell(world: World, between: (step: number) => Promise<void> | void = () => {}): Promise<void> {
  for (const [step, { act }] of STORY.entries()) {
    act(world);
    await between(step);
    await world.settle();
  }
}
