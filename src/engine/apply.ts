/** Carries out a plan, step by step in its order, and stops at the first that fails: what comes later may rely on it. */
import { ApiError, apiErrorCode } from './api-error.ts';
import { type Applied, afterApply } from './applied.ts';
import { type KubeObject, resourceKey } from './contract.ts';
import type { ApiDoor } from './door.ts';
import type { Written } from './freshness.ts';
import type { Standing, Step } from './plan.ts';

export interface ApplyContext {
  readonly door: ApiDoor;
  readonly fieldManager: string;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** What was applied last, by uid. */
  readonly applied: Map<string, Applied>;
  readonly onWritten: (written: Written) => void;
  readonly nowMs: () => number;
}

export type ApplyResult =
  | { readonly ok: true; readonly writes: number }
  | { readonly ok: false; readonly writes: number; readonly step: Step; readonly error: ApiError };

export async function apply(steps: readonly Step[], context: ApplyContext): Promise<ApplyResult> {
  let writes = 0;
  const confirmed = new Set<string>();
  for (const step of steps) {
    try {
      if (step.do === 'create') await confirm(step.after, confirmed, context);
      await carryOut(step, context);
      writes += 1;
    } catch (error) {
      if (error instanceof ApiError) return { ok: false, writes, step, error };
      throw error;
    }
  }
  return { ok: true, writes };
}

/** Throws `conflict` when one of these is not there any more, or is another. */
async function confirm(after: readonly Standing[], confirmed: Set<string>, context: ApplyContext): Promise<void> {
  for (const { resource, name, namespace, uid } of after) {
    if (confirmed.has(uid)) continue;
    const ref = { resource, name, ...(namespace === undefined ? {} : { namespace }) };
    const call = { signal: context.signal, timeoutMs: context.timeoutMs };
    const live = await context.door.get(ref, call).catch((error: unknown) => {
      if (apiErrorCode(error) !== 'notFound') throw error;
      return undefined;
    });
    if (live?.metadata.uid !== uid || live.metadata.deletionTimestamp !== undefined) {
      throw new ApiError('conflict', `${resource.kind} ${name} is no longer there.`);
    }
    confirmed.add(uid);
  }
}

async function carryOut(step: Step, context: ApplyContext): Promise<void> {
  const call = { signal: context.signal, timeoutMs: context.timeoutMs };
  switch (step.do) {
    case 'create': {
      const options = { ...call, fieldManager: context.fieldManager, force: false, onlyCreate: true };
      remember(step, await context.door.apply(step.resource, step.object, options), context);
      return;
    }
    case 'update': {
      const { uid, resourceVersion } = step;
      const preconditions = { uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
      const object = { ...step.object, metadata: { ...step.object.metadata, ...preconditions } };
      // Forced: the object is ours by its owner, so a field that another writer took is taken back.
      const options = { ...call, fieldManager: context.fieldManager, force: true };
      remember(step, await context.door.apply(step.resource, object, options), context);
      return;
    }
    case 'delete': {
      const { resource, name, namespace, uid, resourceVersion } = step;
      const ref = { resource, name, ...(namespace === undefined ? {} : { namespace }) };
      const preconditions = { uid, ...(resourceVersion === undefined ? {} : { resourceVersion }) };
      await context.door.delete(ref, { ...call, ...preconditions }).catch((error: unknown) => {
        // Gone is what was wanted.
        if (apiErrorCode(error) !== 'notFound') throw error;
      });
      context.applied.delete(uid);
      const atMs = context.nowMs();
      context.onWritten({ kind: resourceKey(resource), name, namespace, uid, resourceVersion: undefined, atMs });
      return;
    }
  }
}

function remember(step: Extract<Step, { wanted: string }>, stored: KubeObject, context: ApplyContext): void {
  const { uid, resourceVersion, name, namespace } = stored.metadata;
  if (uid === undefined) return;
  const nowMs = context.nowMs();
  context.applied.set(uid, afterApply(context.applied.get(uid), step.wanted, stored, nowMs));
  context.onWritten({ kind: resourceKey(step.resource), name, namespace, uid, resourceVersion, atMs: nowMs });
}
