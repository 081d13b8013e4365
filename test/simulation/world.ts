/** A world with a simulated API server, other controllers, and processes of ours that run the engine and can be killed. */
import { canonical } from '../../src/engine/canonical.ts';
import type { Random } from '../../src/engine/clock.ts';
import { type KubeObject, resourceKey } from '../../src/engine/contract.ts';
import { type Engine, type EngineOptions, startEngine } from '../../src/engine/engine.ts';
import { type Log, silentLog } from '../../src/engine/log.ts';
import type { AnyReconciler } from '../../src/engine/rules.ts';
import { type ApiServer, createApiServer, type Entry } from './api-server.ts';
import { type Client, createClient, type WriteFault } from './client.ts';
import { createFakeClock, createProcessClock, type FakeClock, type ProcessClock } from './fake-clock.ts';

export const FIELD_MANAGER = 'oz0-controller';
export const ANNOTATION = 'oz0.ai/applied';

/** Called for each entry of the log; throws when something happened that must never happen. */
export type Invariant = (entry: Entry, server: ApiServer) => void;

export interface WorldOptions {
  readonly reconcilers: (clock: ProcessClock) => readonly AnyReconciler[];
  readonly invariants?: readonly Invariant[];
  readonly seed?: number;
  /** Other controllers: called with each entry. */
  readonly actors?: readonly ((entry: Entry, world: World) => void)[];
  readonly log?: Log;
}

export interface World {
  readonly server: ApiServer;
  readonly clock: FakeClock;
  readonly random: Random;
  readonly start: (options?: ProcessOptions) => Process;
  /** Lets time go by until nothing was written for a while; throws when that never comes, or when an invariant broke. */
  readonly settle: (boundMs?: number) => Promise<void>;
  readonly advance: (ms: number) => Promise<void>;
  /** Writes of our processes. */
  readonly writes: (since?: number) => readonly Entry[];
}

export interface ProcessOptions {
  readonly name?: string;
  readonly fault?: WriteFault;
  readonly lagMs?: readonly [number, number];
  /** Show the world as it was then, until thawed. */
  readonly frozenAt?: number;
  readonly lead?: boolean;
  readonly door?: (client: Client, clock: ProcessClock) => EngineOptions['door'];
}

export interface Process {
  readonly name: string;
  readonly client: Client;
  readonly clock: ProcessClock;
  readonly engine: Engine;
  readonly kill: () => void;
  readonly isAlive: () => boolean;
}

const PREFIX = 'controller-';

export function createWorld(options: WorldOptions): World {
  const clock = createFakeClock();
  const server = createApiServer(clock);
  const random = seeded(options.seed ?? 1);
  const broken: unknown[] = [];
  let processes = 0;

  server.onEntry((entry) => {
    for (const invariant of options.invariants ?? []) {
      try {
        invariant(entry, server);
      } catch (error) {
        broken.push(error);
      }
    }
    for (const actor of options.actors ?? []) actor(entry, world);
  });

  const world: World = {
    server,
    clock,
    random,
    start: (given = {}) => {
      processes += 1;
      const name = given.name ?? `${PREFIX}${processes}`;
      const own = createProcessClock(clock);
      const ending = new AbortController();
      const kill = () => {
        own.kill();
        ending.abort(new Error('killed'));
      };
      const client = createClient({
        server,
        clock: own,
        random,
        name,
        onCrash: kill,
        ...(given.fault === undefined ? {} : { fault: given.fault }),
        ...(given.lagMs === undefined ? {} : { lagMs: given.lagMs }),
      });
      if (given.frozenAt !== undefined) client.freeze(given.frozenAt);
      const engine = startEngine({
        reconcilers: options.reconcilers(own),
        door: given.door?.(client, own) ?? client.door,
        watch: client.watch,
        clock: own,
        random,
        log: options.log ?? silentLog,
        fieldManager: FIELD_MANAGER,
        annotation: ANNOTATION,
        controller: 'toys.test/controller',
        instance: name,
        signal: ending.signal,
      });
      if (given.lead !== false) engine.lead();
      return { name, client, clock: own, engine, kill, isAlive: () => own.isRunning() };
    },
    settle: async (boundMs = 900_000) => {
      const startMs = clock.monotonicMs();
      let length = -1;
      // Longer than any pause or backoff of a system that is still on its way, in the cases that are run.
      while (length !== server.log.length) {
        length = server.log.length;
        await world.advance(130_000);
        if (clock.monotonicMs() - startMs > boundMs) throw new Error(`no rest: ${tail(server.log)}`);
      }
    },
    advance: async (ms) => {
      await clock.advance(ms);
      if (broken.length > 0) throw broken[0];
    },
    writes: (since = 0) => server.log.filter((entry) => entry.version > since && isOurs(entry)),
  };
  return world;
}

/** Whether a process of ours wrote it. */
export function isOurs(entry: Entry): boolean {
  return entry.by.startsWith(PREFIX);
}

/** All objects but events, without what differs from run to run. */
export function endState(server: ApiServer): string {
  const kinds = [...new Set(server.log.map((entry) => entry.kind))].filter((kind) => !kind.endsWith('/Event')).sort();
  const names = new Map<string, string>();
  const objects = kinds.flatMap((kind) =>
    [...server.list(kind)].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)),
  );
  for (const object of objects) names.set(object.metadata.uid ?? '', `uid of ${object.kind} ${object.metadata.name}`);
  return JSON.stringify(
    objects.map((object) => JSON.parse(comparable(object, names)) as unknown),
    undefined,
    1,
  );
}

function comparable(object: KubeObject, names: ReadonlyMap<string, string>): string {
  const { resourceVersion: _, generation: __, creationTimestamp: ___, annotations, ...metadata } = object.metadata;
  const { [ANNOTATION]: ____, ...kept } = annotations ?? {};
  const text = canonical({ ...object, metadata: { ...metadata, annotations: kept } })
    .replace(/"(lastTransitionTime|time)":"[^"]*"/g, '"$1":""')
    .replace(/"(observedGeneration|ready)":\d+/g, '"$1":0');
  return text.replace(/uid-\d+/g, (uid) => names.get(uid) ?? uid);
}

export function tail(log: readonly Entry[], count = 12): string {
  return log
    .slice(-count)
    .map(
      (entry) =>
        `${entry.atMs} ${entry.version} ${entry.type} ${entry.object.kind} ${entry.object.metadata.name} by ${entry.by}`,
    )
    .join('\n');
}

/** Children of a kind by the uid of their controller. */
export function childrenOf(server: ApiServer, resource: { apiVersion: string; kind: string }, uid: string | undefined) {
  return server
    .list(resourceKey(resource))
    .filter((object) => object.metadata.ownerReferences?.some((owner) => owner.uid === uid && owner.controller));
}

/** The same numbers for the same seed (mulberry32). */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
