/**
 * One leader by a Lease. Leadership is judged by what this process saw on its own monotonic clock, never by times that others
 * wrote. A process that was stopped or starved for long is no leader when it wakes: ask `mayWrite` before each write.
 */
import { ApiError, apiErrorCode } from './api-error.ts';
import { type Clock, type Random, sleep } from './clock.ts';
import type { KubeObject } from './contract.ts';
import type { ApiDoor } from './door.ts';
import type { Log } from './log.ts';
import { LEASES } from './rules.ts';

export interface LeaderTimings {
  /** Others wait this long after the last renewal that they saw. */
  readonly leaseMs: number;
  /** A leader that did not renew for this long stops by itself; well below `leaseMs`. */
  readonly renewDeadlineMs: number;
  readonly retryMs: number;
}

export const LEADER_TIMINGS: LeaderTimings = { leaseMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 };

export interface LeaderOptions {
  readonly door: Pick<ApiDoor, 'get' | 'create' | 'replace'>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly namespace: string;
  readonly name: string;
  /** Unlike any other process', also of an earlier one of this pod. */
  readonly identity: string;
  readonly timings?: LeaderTimings;
  /** Ends the election; a lease that is held is given back. */
  readonly signal: AbortSignal;
  /** Called once, when leading begins; `leading` aborts when it ends, and with it whatever is under way. */
  readonly onLead: (leading: AbortSignal) => void;
}

export interface Leader {
  /** Whether a write may be sent at this very moment. */
  readonly mayWrite: () => boolean;
  /** `lost`: the process must exit, since what it knows and has under way is another's now. `released`: after the signal. */
  readonly ended: Promise<'lost' | 'released'>;
}

interface Seen {
  readonly lease: KubeObject | undefined;
  readonly atMs: number;
}

export function startLeaderElection(options: LeaderOptions): Leader {
  const { door, clock, random, log, signal } = options;
  const timings = options.timings ?? LEADER_TIMINGS;
  const leading = new AbortController();
  let seen: Seen | undefined;
  let renewedMs: number | undefined;

  const holds = () => renewedMs !== undefined && clock.monotonicMs() - renewedMs < timings.renewDeadlineMs;
  const mayWrite = () => holds() && !signal.aborted && !leading.signal.aborted;

  /** Whether the lease is ours after this. Throws `ApiError` when that is not known. */
  async function acquireOrRenew(stop: AbortSignal): Promise<boolean> {
    // Counted from before the request: the lease runs at the others' from when they see it, which is later.
    const startedMs = clock.monotonicMs();
    const call = { signal: stop, timeoutMs: timings.retryMs * 2 };
    const ref = { resource: LEASES, namespace: options.namespace, name: options.name };
    const current = await door.get(ref, call).catch((error: unknown) => {
      if (apiErrorCode(error) === 'notFound') return undefined;
      throw error;
    });
    if (!seen || current?.metadata.resourceVersion !== seen.lease?.metadata.resourceVersion) {
      seen = { lease: current, atMs: clock.monotonicMs() };
    }
    const spec = specOf(current);
    const holder = spec['holderIdentity'];
    const held = typeof holder === 'string' && holder !== '' && holder !== options.identity;
    const theirsMs = typeof spec['leaseDurationSeconds'] === 'number' ? spec['leaseDurationSeconds'] * 1000 : 0;
    if (held && clock.monotonicMs() - seen.atMs < Math.max(theirsMs, timings.leaseMs)) return false;
    // A lease that once was ours and is another's was lost, even if it has run out since.
    if (held && renewedMs !== undefined) return false;
    const written = await write(current, options.identity, timings.leaseMs / 1000, call);
    seen = { lease: written, atMs: clock.monotonicMs() };
    renewedMs = startedMs;
    return true;
  }

  async function write(
    current: KubeObject | undefined,
    identity: string,
    leaseSeconds: number,
    call: { readonly signal?: AbortSignal; readonly timeoutMs: number },
  ): Promise<KubeObject> {
    const before = specOf(current);
    const now = `${new Date(clock.wallMs()).toISOString().slice(0, -1)}000Z`;
    const taken = before['holderIdentity'] !== identity && identity !== '';
    const transitions = typeof before['leaseTransitions'] === 'number' ? before['leaseTransitions'] : 0;
    const spec = {
      ...before,
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.round(leaseSeconds)),
      acquireTime: taken ? now : before['acquireTime'],
      renewTime: now,
      leaseTransitions: current && taken ? transitions + 1 : transitions,
    };
    if (current) return door.replace(LEASES, { ...current, spec }, call);
    const metadata = { name: options.name, namespace: options.namespace };
    return door.create(LEASES, { apiVersion: LEASES.apiVersion, kind: LEASES.kind, metadata, spec }, call);
  }

  async function attempt(stop: AbortSignal): Promise<boolean> {
    try {
      return await acquireOrRenew(stop);
    } catch (error) {
      const problem = error instanceof ApiError ? error.message : String(error);
      log.debug({ lease: options.name, problem }, 'the lease could not be taken or renewed');
      return false;
    }
  }

  async function acquire(): Promise<void> {
    while (!(await attempt(signal))) await sleep(clock, timings.retryMs * (1 + random() * 0.2), signal);
    signal.throwIfAborted();
  }

  /** Renews until the lease is lost. */
  async function renew(): Promise<void> {
    while (mayWrite()) {
      await sleep(clock, timings.retryMs, signal);
      // A renewal that hangs must not outlive the time that we may lead.
      const deadline = new AbortController();
      const leftMs = (renewedMs ?? 0) + timings.renewDeadlineMs - clock.monotonicMs();
      const cancel = clock.after(Math.max(leftMs, 0), () => deadline.abort(new Error('the lease ran out')));
      const end = () => deadline.abort(signal.reason);
      signal.addEventListener('abort', end, { once: true });
      try {
        if (!(await attempt(deadline.signal)) && holderOf(seen?.lease) !== options.identity) return;
      } finally {
        cancel();
        signal.removeEventListener('abort', end);
      }
    }
  }

  async function release(): Promise<void> {
    if (!holds() || !seen?.lease) return;
    const { lease } = seen;
    leading.abort(new Error('the lease is given back'));
    await write(lease, '', 1, { timeoutMs: timings.retryMs }).catch((error: unknown) => {
      log.debug({ lease: options.name, problem: String(error) }, 'the lease could not be given back');
    });
  }

  async function run(): Promise<'lost' | 'released'> {
    try {
      await acquire();
      log.info({ lease: options.name, identity: options.identity }, 'this process leads');
      options.onLead(leading.signal);
      await renew();
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    if (signal.aborted) {
      await release();
      leading.abort(signal.reason);
      return 'released';
    }
    log.error({ lease: options.name, identity: options.identity }, 'the lease was lost');
    leading.abort(new Error('the lease was lost'));
    return 'lost';
  }

  return { mayWrite, ended: run() };
}

/** A door through which writes pass only while `mayWrite`, and on which whatever is under way ends with `leading`. */
export function guardWrites(door: ApiDoor, mayWrite: () => boolean, leading: AbortSignal): ApiDoor {
  const guarded = async <T>(call: (signal: AbortSignal) => Promise<T>, given: AbortSignal | undefined): Promise<T> => {
    if (!mayWrite()) throw new ApiError('aborted', 'This process does not lead.');
    return call(given === undefined ? leading : AbortSignal.any([given, leading]));
  };
  return {
    get: door.get,
    list: door.list,
    create: (resource, object, call) =>
      guarded((signal) => door.create(resource, object, { ...call, signal }), call?.signal),
    apply: (resource, object, call) =>
      guarded((signal) => door.apply(resource, object, { ...call, signal }), call.signal),
    applyStatus: (resource, object, call) =>
      guarded((signal) => door.applyStatus(resource, object, { ...call, signal }), call.signal),
    replace: (resource, object, call) =>
      guarded((signal) => door.replace(resource, object, { ...call, signal }), call?.signal),
    replaceStatus: (resource, object, call) =>
      guarded((signal) => door.replaceStatus(resource, object, { ...call, signal }), call?.signal),
    delete: (ref, call) => guarded((signal) => door.delete(ref, { ...call, signal }), call.signal),
  };
}

function specOf(lease: KubeObject | undefined): Record<string, unknown> {
  const spec = lease?.['spec'];
  return typeof spec === 'object' && spec !== null ? (spec as Record<string, unknown>) : {};
}

function holderOf(lease: KubeObject | undefined): unknown {
  return specOf(lease)['holderIdentity'];
}
