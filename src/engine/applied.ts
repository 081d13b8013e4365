/**
 * What was applied last, and what the API server made of it: so that what is as wanted is not written again, though the
 * server or a webhook stores it in other words than ours, and so that two writers who disagree do not fight at full speed.
 */
import { hashOf } from './canonical.ts';
import type { KubeObject } from './contract.ts';

export interface Applied {
  /** Hash of what we wanted. */
  readonly wanted: string;
  /** Hash of what was then stored, but for its status. */
  readonly stored: string;
  /** How often in a row the same was applied again since somebody had changed it. */
  readonly repairs: number;
  readonly atMs: number;
}

// Watched objects are never changed in place, and every pass asks.
const fingerprints = new WeakMap<KubeObject, string>();

/** Of a live object, without what changes by itself or by every write. */
export function fingerprint(object: KubeObject): string {
  const known = fingerprints.get(object);
  if (known !== undefined) return known;
  const { status: _, metadata, ...rest } = object;
  const { resourceVersion: __, managedFields: ___, generation: ____, ...kept } = metadata;
  const hash = hashOf({ ...rest, metadata: kept });
  fingerprints.set(object, hash);
  return hash;
}

/** A first few repairs are made at once; then at most one in a time that doubles up to this. */
const FREE_REPAIRS = 3;
const FIRST_PAUSE_MS = 5_000;
const LONGEST_PAUSE_MS = 300_000;
/** Nobody touched it for this long: the next change is a new one. */
const CALM_MS = 900_000;

/** How long to wait before repairing this object once more; 0 or less: now. */
export function repairPauseMs(applied: Applied | undefined, wanted: string, nowMs: number): number {
  if (!applied || applied.wanted !== wanted || applied.repairs < FREE_REPAIRS) return 0;
  const pause = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(applied.repairs - FREE_REPAIRS, 20), LONGEST_PAUSE_MS);
  return applied.atMs + pause - nowMs;
}

/** What to remember after an apply of `wanted` that left `stored`. */
export function afterApply(before: Applied | undefined, wanted: string, stored: KubeObject, nowMs: number): Applied {
  const again = before?.wanted === wanted && nowMs - before.atMs < CALM_MS;
  return { wanted, stored: fingerprint(stored), repairs: again ? before.repairs + 1 : 0, atMs: nowMs };
}
