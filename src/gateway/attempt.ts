/**
 * One call, one attempt: picks a pod and sends the request at most once. Where no byte left, or the sidecar says that it
 * started nothing, another dial is no second attempt, for a moment. Once bytes left, whatever breaks is an unknown
 * outcome, told and never retried.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ToolCall } from '../mcp/handler.ts';
import { callHop, type HopOutcome, type LostReason, type NotStartedReason } from '../mcp/hop.ts';
import type { JsonObject, RpcError } from '../mcp/wire/jsonrpc.ts';
import { META_DEFINITION } from '../mcp/wire/meta.ts';
import type { Route } from './catalog/route.ts';
import type { Decision, WaitReason } from './decide.ts';
import type { Hops } from './hops.ts';
import { labelArguments } from './overrides/labelArguments.ts';

export type AttemptOutcome =
  | { readonly kind: 'answered'; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly error: RpcError }
  /** Nothing reached the tool. */
  | {
      readonly kind: 'not-started';
      readonly reason: NotStartedReason | WaitReason | 'unreachable';
      readonly problem: string;
    }
  | { readonly kind: 'unknown'; readonly reason: LostReason; readonly problem: string }
  /** The sidecar ended it, on the word of a Stop. */
  | { readonly kind: 'stopped'; readonly problem: string }
  /** The decision changed while it waited. */
  | { readonly kind: 'refused'; readonly decision: Extract<Decision, { do: 'refuse' }> }
  | { readonly kind: 'cancelled'; readonly sent: boolean };

export interface Attempted {
  readonly outcome: AttemptOutcome;
  /** Pods that were dialled; more than one only while nothing had been sent. */
  readonly dials: number;
  readonly pod: string | undefined;
}

export interface AttemptOptions {
  /** Asked anew for each dial: a grant, a listing and the pods may change while a call waits. */
  readonly decide: () => Decision;
  readonly hops: Hops;
  readonly ownNode: string;
  readonly arguments: JsonObject;
  readonly meta: JsonObject;
  readonly signal: AbortSignal;
  readonly onNotification?: (method: string, params: JsonObject) => void;
  /** The one pod that may be called; unset: any that the decision names. */
  readonly only?: string;
  /** How long another dial may follow one that sent nothing. */
  readonly dialWindowMs?: number;
  readonly maxAnswerBytes: number;
  readonly reserve?: ToolCall['reserve'];
}

export const DIAL_WINDOW_MS = 2_000;
const PAUSE_FIRST_MS = 20;
const PAUSE_LONGEST_MS = 200;

let lastId = 0;

export async function attempt(options: AttemptOptions): Promise<Attempted> {
  const { hops, ownNode, signal } = options;
  const untilMs = performance.now() + (options.dialWindowMs ?? DIAL_WINDOW_MS);
  const tried = new Set<string>();
  let dials = 0;
  let pod: string | undefined;
  let pauseMs = PAUSE_FIRST_MS;
  for (;;) {
    const decision = options.decide();
    let outcome: AttemptOutcome;
    if (decision.do === 'ask') {
      const refused = { do: 'refuse', hidden: false, reason: 'needs-a-person' } as const;
      return { outcome: { kind: 'refused', decision: refused }, dials, pod };
    }
    if (decision.do === 'refuse') return { outcome: { kind: 'refused', decision }, dials, pod };
    if (decision.do === 'wait') {
      outcome = { kind: 'not-started', reason: decision.reason, problem: decision.reason };
    } else {
      const { tool, listed } = decision;
      const { only } = options;
      const routes = only === undefined ? decision.routes : decision.routes.filter(({ podUid }) => podUid === only);
      if (routes.length === 0) return { outcome: notReady(), dials, pod };
      const labelled = labelArguments(decision, options.arguments);
      if (!labelled.ok) {
        const refused = { do: 'refuse', hidden: false, reason: 'no-place-for-label' } as const;
        return { outcome: { kind: 'refused', decision: refused }, dials, pod };
      }
      const route = pickRoute(routes, ownNode, tried, hops.busy);
      pod = route.podUid;
      dials += 1;
      tried.add(route.podUid);
      const { hop, giveBack } = hops.borrow({ namespace: tool.namespace, tool: tool.name, route }, 'call');
      lastId = (lastId + 1) % Number.MAX_SAFE_INTEGER;
      // Never throws, so it is always given back.
      const sent = await callHop(hop, {
        id: lastId,
        method: 'tools/call',
        params: { name: listed.name, arguments: labelled.arguments },
        meta: { ...options.meta, ...labelled.meta, [META_DEFINITION]: listed.hash },
        signal,
        timeoutMs: tool.timeoutMs,
        maxAnswerBytes: options.maxAnswerBytes,
        ...(options.reserve === undefined ? {} : { reserve: options.reserve }),
        ...(options.onNotification === undefined ? {} : { onNotification: options.onNotification }),
      });
      giveBack();
      outcome = describe(sent);
      if (routes.every((each) => tried.has(each.podUid))) tried.clear();
    }
    if (outcome.kind !== 'not-started' || outcome.reason === 'busy') return { outcome, dials, pod };
    if (performance.now() + pauseMs >= untilMs) return { outcome, dials, pod };
    // Another pod is asked at once, the same one after a pause.
    if (tried.size === 0 || decision.do === 'wait') {
      await sleep(pauseMs, undefined, { signal }).catch(() => {});
      if (signal.aborted) return { outcome: { kind: 'cancelled', sent: false }, dials, pod };
      pauseMs = Math.min(pauseMs * 2, PAUSE_LONGEST_MS);
    }
  }
}

function notReady(): AttemptOutcome {
  return { kind: 'not-started', reason: 'not-ready', problem: 'the pod takes no calls now' };
}

function describe(outcome: HopOutcome): AttemptOutcome {
  switch (outcome.kind) {
    case 'result':
      return { kind: 'answered', result: outcome.result };
    case 'error':
      return outcome;
    case 'not-started':
      return { kind: 'not-started', reason: outcome.reason, problem: outcome.message };
    case 'not-sent':
      return { kind: 'not-started', reason: 'unreachable', problem: outcome.problem };
    case 'stopped':
      return { kind: 'stopped', problem: outcome.problem };
    case 'lost':
      return { kind: 'unknown', reason: outcome.reason, problem: outcome.problem };
    case 'cancelled':
      return outcome;
  }
}

let turn = 0;

/**
 * Own node before others, least busy first, in turn where they are equal; one that was just tried in vain comes last.
 * `routes` is not empty.
 */
export function pickRoute(
  routes: readonly Route[],
  ownNode: string,
  tried: ReadonlySet<string>,
  busy: (podUid: string) => number,
): Route {
  const fresh = routes.filter((route) => !tried.has(route.podUid));
  const open = fresh.length > 0 ? fresh : routes;
  const near = open.filter((route) => route.node === ownNode);
  const candidates = near.length > 0 ? near : open;
  const [only] = candidates;
  if (only === undefined) throw new Error('no route to pick from');
  if (candidates.length === 1) return only;
  turn = (turn + 1) % Number.MAX_SAFE_INTEGER;
  let best = only;
  let least = Number.POSITIVE_INFINITY;
  for (let index = 0; index < candidates.length; index += 1) {
    const route = candidates[(index + turn) % candidates.length] ?? only;
    const load = busy(route.podUid);
    if (load < least) {
      best = route;
      least = load;
    }
  }
  return best;
}
