/**
 * Looks after calls that are on record and that no delivery carries: approved ones are made, what a dead gateway left is
 * cleared up, what nobody decided expires. Each gateway looks after those that its own node's gateway was asked for; what
 * nobody took up for a while, anybody does. Several may look after one: the record lets one of them write.
 */

import { newUpkeep } from '../../domain/calls/hand.ts';
import { nextMove } from '../../domain/calls/nextMove.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { compareVersions } from '../../engine/resource-version.ts';
import type { Carried } from './carry.ts';
import { type Recorded, readToolCall } from './toolCallObject.ts';

export interface UpkeepOptions {
  /** Uid of this gateway's pod. */
  readonly self: string;
  readonly lookAfter: (recorded: Recorded) => Promise<Carried>;
  /** Whether a hand of this process makes the attempt with this mark. */
  readonly inFlight: (nonce: string) => boolean;
  /** Whether the catalog is whole: before, a pod that is not known may be there. */
  readonly synced: () => boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly onProblem: (error: unknown) => void;
  readonly tickMs?: number;
}

export interface Upkeep {
  /** An object of the own node, as it was last seen. */
  readonly put: (object: KubeObject) => void;
  readonly remove: (object: KubeObject) => void;
  /** All open calls, of whatever node, as a list gave them: what is the same as the time before is taken up. */
  readonly sweep: (objects: readonly KubeObject[]) => void;
  /** Calls of a namespace that wait or are being sent. */
  readonly open: (namespace: string) => number;
  readonly size: () => number;
  readonly close: () => Promise<void>;
}

interface Entry {
  recorded: Recorded;
  /** Milliseconds since the epoch. */
  dueMs: number;
  pauseMs: number;
  busy: boolean;
  readonly own: boolean;
}

const TICK_MS = 500;
const PAUSE_FIRST_MS = 1_000;
const PAUSE_LONGEST_MS = 30_000;
/** Looked after at once; the others wait for their turn. */
const MOST_BUSY = 16;
const MOST_FOREIGN = 1_000;

export function createUpkeep(options: UpkeepOptions): Upkeep {
  const { now } = options;
  const entries = new Map<string, Entry>();
  const running = new Set<Promise<void>>();
  let seen = new Map<string, string | undefined>();
  let closed = false;

  const keyOf = ({ metadata }: KubeObject): string => `${metadata.namespace}/${metadata.name}`;

  const keep = (object: KubeObject, own: boolean): void => {
    const key = keyOf(object);
    const recorded = readToolCall(object);
    if (recorded === undefined || isOver(recorded)) {
      drop(key);
      return;
    }
    const known = entries.get(key);
    if (known === undefined) {
      entries.set(key, { recorded, dueMs: now(), pauseMs: PAUSE_FIRST_MS, busy: false, own });
    } else if (known.recorded.object.metadata.resourceVersion !== object.metadata.resourceVersion) {
      known.recorded = recorded;
      known.dueMs = now();
      known.pauseMs = PAUSE_FIRST_MS;
    }
    tick();
  };
  const drop = (key: string): void => {
    entries.delete(key);
  };

  const tick = (): void => {
    if (closed || !options.synced()) return;
    for (const [key, entry] of entries) {
      if (running.size >= MOST_BUSY) return;
      if (entry.busy || entry.dueMs > now()) continue;
      const { claim } = entry.recorded.call;
      if (claim !== undefined && options.inFlight(claim.nonce)) continue;
      const waitsUntil = idleUntil(entry.recorded, options.self, now());
      if (waitsUntil !== undefined) {
        entry.dueMs = waitsUntil;
        continue;
      }
      entry.busy = true;
      const work = look(key, entry).finally(() => {
        running.delete(work);
        entry.busy = false;
      });
      running.add(work);
    }
  };

  const look = async (key: string, entry: Entry): Promise<void> => {
    try {
      const { recorded } = await options.lookAfter(entry.recorded);
      if (recorded !== undefined && newer(recorded, entry.recorded)) entry.recorded = recorded;
    } catch (error) {
      options.onProblem(error);
    }
    entry.dueMs = now() + entry.pauseMs;
    entry.pauseMs = Math.min(entry.pauseMs * 2, PAUSE_LONGEST_MS);
    if (isOver(entry.recorded)) drop(key);
  };

  const timer = setInterval(tick, options.tickMs ?? TICK_MS);
  timer.unref();

  return {
    put: (object) => keep(object, true),
    remove: (object) => drop(keyOf(object)),
    sweep: (objects) => {
      const before = seen;
      seen = new Map(objects.map((object) => [object.metadata.uid ?? '', object.metadata.resourceVersion]));
      for (const [key, entry] of entries) {
        if (!entry.own && !entry.busy && !seen.has(entry.recorded.uid)) drop(key);
      }
      for (const object of objects) {
        const version = object.metadata.resourceVersion;
        if (entries.size >= MOST_FOREIGN) return;
        if (version !== undefined && before.get(object.metadata.uid ?? '') === version && !entries.has(keyOf(object))) {
          keep(object, false);
        }
      }
    },
    open: (namespace) => {
      let open = 0;
      for (const { recorded } of entries.values()) {
        // What nobody answers for is over as far as its agent goes.
        if (recorded.namespace === namespace && recorded.call.phase !== 'Unknown') open += 1;
      }
      return open;
    },
    size: () => entries.size,
    close: async () => {
      closed = true;
      clearInterval(timer);
      await Promise.all(running);
    },
  };
}

/** Whether nothing can be done for it any more. */
function isOver({ call }: Recorded): boolean {
  return call.phase !== 'Waiting' && call.phase !== 'Sending' && call.phase !== 'Unknown';
}

/** Until when there is nothing to do but to wait for somebody; undefined: there is something. */
function idleUntil({ call }: Recorded, self: string, nowMs: number): number | undefined {
  const situation = {
    nowMs,
    self,
    inFlight: () => false,
    mayAct: () => true,
    canClaim: true,
    elsewhere: false,
    giveUp: false,
    patient: false,
  };
  if (nextMove(newUpkeep('', call), situation).do !== 'rest') {
    // Its sender is about to send it; after that it is asked for.
    const soonMs = call.phase === 'Sending' && call.claim?.holder !== self ? (call.claim?.notAfterMs ?? 0) : 0;
    return soonMs > nowMs ? Math.min(soonMs, nowMs + 1_000) : undefined;
  }
  return call.phase === 'Waiting' ? Math.min(call.expiresAtMs, nowMs + 60_000) : nowMs + 60_000;
}

function newer(a: Recorded, b: Recorded): boolean {
  return (compareVersions(a.object.metadata.resourceVersion, b.object.metadata.resourceVersion) ?? 0) > 0;
}
