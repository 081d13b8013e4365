/**
 * Whether the views show what we ourselves wrote. A parent is not looked at before: deciding on a view older than one's own last
 * write is how controllers make things twice and undo themselves.
 */
import type { KubeObject } from './contract.ts';
import { compareVersions } from './resource-version.ts';

export interface Freshness {
  /** An object was written for this key. */
  readonly wrote: (key: string, written: Written) => void;
  /** Whether all that was written for this key is seen. `look` shows the view of a kind. */
  readonly isFresh: (key: string, look: Look) => boolean;
  /** The parent is gone. */
  readonly forget: (key: string) => void;
}

export interface Written {
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
  readonly uid: string;
  /** Undefined: it was deleted. */
  readonly resourceVersion: string | undefined;
  readonly atMs: number;
}

export type Look = (
  kind: string,
  name: string,
  namespace: string | undefined,
) => { readonly object: KubeObject | undefined; readonly version: string | undefined };

/**
 * After this we look again though it was not seen: versions that cannot be compared, or an object that came and went
 * within a gap of a quiet watch, must not stop a parent for ever. Preconditions then keep a stale view from doing harm.
 */
export const LONGEST_WAIT_MS = 120_000;

export function createFreshness(nowMs: () => number): Freshness {
  const pending = new Map<string, Map<string, Written>>();
  return {
    wrote: (key, written) => {
      const held = pending.get(key) ?? new Map<string, Written>();
      pending.set(key, held);
      held.set(`${written.kind}|${written.namespace ?? ''}/${written.name}`, written);
    },
    isFresh: (key, look) => {
      const held = pending.get(key);
      if (!held) return true;
      for (const [name, written] of held) {
        const late = nowMs() - written.atMs > LONGEST_WAIT_MS;
        if (late || isSeen(written, look(written.kind, written.name, written.namespace))) held.delete(name);
      }
      if (held.size > 0) return false;
      pending.delete(key);
      return true;
    },
    forget: (key) => {
      pending.delete(key);
    },
  };
}

function isSeen(written: Written, view: ReturnType<Look>): boolean {
  const { metadata } = view.object ?? {};
  if (written.resourceVersion === undefined) {
    return metadata?.uid !== written.uid || metadata.deletionTimestamp !== undefined;
  }
  const reached = compareVersions(view.version, written.resourceVersion);
  if (reached !== undefined && reached >= 0) return true;
  return (compareVersions(metadata?.resourceVersion, written.resourceVersion) ?? -1) >= 0;
}
