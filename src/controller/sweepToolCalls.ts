/**
 * Deletes ToolCalls that are long over, a bounded number at a time. One whose outcome is unknown is kept longer, since
 * somebody may still want to say what became of it; what waits or runs is never touched.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { API_GROUP_VERSION } from '../domain/naming.ts';
import { apiErrorCode } from '../engine/api-error.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { Log } from '../engine/log.ts';
import type { KubeClient } from '../kube/client.ts';

const TOOL_CALL: Resource = {
  apiVersion: API_GROUP_VERSION,
  kind: 'ToolCall',
  plural: 'toolcalls',
  namespaced: true,
};

export interface SweepOptions {
  readonly client: Pick<KubeClient, 'listPage' | 'delete'>;
  /** How long one is kept after its end. */
  readonly retentionMs: number;
  /** Whether this replica leads. */
  readonly leads: () => boolean;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly log: Log;
}

const EVERY_MS = 10 * 60_000;
const PAGE = 500;
/** Of one sweep: the rest is for the next. */
const MOST_PAGES = 20;
const MOST_DELETIONS = 2_000;
const UNKNOWN_TIMES = 7;

/** Sweeps now and then until the signal; waits between sweeps, never in one. */
export async function sweepRegularly(options: SweepOptions, signal: AbortSignal, everyMs = EVERY_MS): Promise<void> {
  while (!signal.aborted) {
    await sleep(everyMs, undefined, { signal }).catch(() => {});
    if (signal.aborted || !options.leads()) continue;
    try {
      await sweepToolCalls(options, signal);
    } catch (error) {
      if (!signal.aborted) options.log.warn({ code: apiErrorCode(error) }, 'cannot delete calls that are over');
    }
  }
}

/** @returns how many were deleted */
export async function sweepToolCalls(options: SweepOptions, signal: AbortSignal): Promise<number> {
  const { client, leads } = options;
  let deleted = 0;
  let next: string | undefined;
  for (let pages = 0; pages < MOST_PAGES; pages += 1) {
    const page = await client.listPage({ resource: TOOL_CALL }, { limit: PAGE, continue: next }, { signal });
    for (const object of page.items) {
      if (!isLongOver(object, options)) continue;
      if (deleted >= MOST_DELETIONS || signal.aborted || !leads()) return deleted;
      const { namespace = '', name, uid = '', resourceVersion } = object.metadata;
      try {
        await client.delete(
          { resource: TOOL_CALL, namespace, name },
          { uid, ...(resourceVersion === undefined ? {} : { resourceVersion }), signal },
        );
        deleted += 1;
      } catch (error) {
        const code = apiErrorCode(error);
        // Somebody was faster, or it changed: then it is looked at again.
        if (code !== 'notFound' && code !== 'conflict') throw error;
      }
    }
    next = page.continue;
    if (next === undefined) break;
  }
  return deleted;
}

function isLongOver(object: KubeObject, { now, retentionMs }: SweepOptions): boolean {
  const { phase, endedAt } = (object['status'] ?? {}) as { readonly phase?: unknown; readonly endedAt?: unknown };
  const endedMs = typeof endedAt === 'string' ? Date.parse(endedAt) : Number.NaN;
  switch (phase) {
    case 'Succeeded':
    case 'Failed':
    case 'Refused':
    case 'Stopped':
    case 'Expired':
      return now() > endedMs + retentionMs;
    case 'Unknown':
      return now() > endedMs + retentionMs * UNKNOWN_TIMES;
    default:
      return false;
  }
}
