/**
 * What can be done for one call: whether it still may be made, sending it to the pod that its record names, and asking that
 * pod's journal. The same for a delivery, where the client's arguments and connection are at hand, and for upkeep.
 */
import type { Learned } from '../../domain/calls/call.ts';
import type { ToolCall } from '../../mcp/handler.ts';
import type { LostReason } from '../../mcp/hop.ts';
import { askJournal } from '../../mcp/journal.ts';
import type { CallEnd } from '../../mcp/wire/callRecord.ts';
import type { JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { META_CALL, META_IDEMPOTENCY_KEY } from '../../mcp/wire/meta.ts';
import { passedResult } from '../answer.ts';
import { type Attempted, attempt, pickRoute } from '../attempt.ts';
import type { Route } from '../catalog/route.ts';
import type { Decision, WaitReason } from '../decide.ts';
import type { Hops } from '../hops.ts';
import { type Asked as AskedCall, type Caller, decideFor, type Target, type World } from '../view.ts';
import type { Asked, Body, Errand, Judged, Sent } from './carry.ts';
import { prefixed, type Recorded } from './toolCallObject.ts';

export interface Surroundings {
  readonly world: World;
  readonly hops: Hops;
  readonly maxAnswerBytes: number;
  readonly now: () => number;
  readonly dialWindowMs?: number;
  /** This gateway ends: what runs is another's to look after. */
  readonly closing: () => boolean;
}

/** Whose call it is, and what it is. */
export interface Trip {
  readonly name: string;
  readonly caller: Caller;
  readonly target: Target;
  /** Undefined where its arguments are not known: it can then be looked after, and not be made. */
  readonly asked: AskedCall | undefined;
  readonly meta: JsonObject;
  /** Aborted when nobody waits for it any more, or a Stop is for it. */
  readonly signal: AbortSignal;
  readonly stopped: () => boolean;
  readonly gone: () => boolean;
  readonly timeoutMs: number;
  readonly create?: Errand['create'];
  readonly onNotification?: (method: string, params: JsonObject) => void;
  readonly reserve?: ToolCall['reserve'];
  /** Whether this gateway's node is the one whose gateway was asked. */
  readonly ownNode: boolean;
  /** The longest that it waits for what runs. */
  readonly patienceMs: number;
}

type Standing =
  | { readonly kind: 'holds'; readonly decision: Extract<Decision, { do: 'run' }> }
  | { readonly kind: 'waits'; readonly decision: Extract<Decision, { do: 'wait' }> }
  | { readonly kind: 'refused'; readonly decision: Extract<Decision, { do: 'refuse' }> };

/** How long a pod that does not answer is asked again before that is told. */
const SILENCE_MS = 3_000;
/** After the longest time that a call may run: a pod that was never heard of since will not be. */
const OVERDUE_MS = 60_000;
/** The same for a pod of another node's, which nobody here can ask. */
const NODE_LOST_MS = 600_000;
/** Beyond the time that the sidecar waits before it answers. */
const ASK_MARGIN_MS = 3_000;
/** The sidecar's: from the word to end a call to its end. */
const END_MS = 6_000;

export function createErrand(around: Surroundings, trip: Trip): Errand {
  const { world, hops, now } = around;
  const { namespace } = trip.caller.principal;
  let lost: LostReason | undefined;

  /** Whether it may be made now, read live. */
  const standing = (recorded: Recorded): Standing => {
    if (trip.asked === undefined) return { kind: 'waits', decision: nothing(world, namespace, trip.target) };
    const decision = decideFor(world, trip.caller, trip.target, trip.asked);
    if (decision.do === 'refuse') return { kind: 'refused', decision };
    if (decision.do === 'wait') return { kind: 'waits', decision };
    const { spec, call } = recorded;
    const asked = spec.sender === undefined;
    const same =
      prefixed(decision.listed.hash) === spec.definition &&
      decision.agent.uid === spec.agentUid &&
      (!asked || prefixed(decision.policyHash) === spec.policy);
    if (!same) return { kind: 'refused', decision: { do: 'refuse', hidden: false, reason: 'changed' } };
    if (decision.do === 'ask' && call.decision !== 'approve') {
      return { kind: 'refused', decision: { do: 'refuse', hidden: false, reason: 'needs-a-person' } };
    }
    return { kind: 'holds', decision: { ...decision, do: 'run' } };
  };

  const locate = ({ spec, call }: Recorded): { readonly tool: string; readonly route: Route } | undefined => {
    const tool = world.catalog.tool(namespace, spec.tool);
    const route = tool === undefined || call.place === undefined ? undefined : world.catalog.locate(tool, call.place);
    return tool === undefined || route === undefined ? undefined : { tool: tool.name, route };
  };

  const questionTo = async (
    recorded: Recorded,
    found: { readonly tool: string; readonly route: Route },
    question: { readonly fence: boolean; readonly end?: 'stop' | 'cancel'; readonly waitMs: number },
  ) => {
    const { call, uid } = recorded;
    const { hop, giveBack } = hops.borrow({ namespace, tool: found.tool, route: found.route }, 'upkeep');
    const { fence, end, waitMs } = question;
    const answer = await askJournal(hop, {
      id: uid,
      attempt: call.attempt,
      fence,
      ...(end === undefined ? {} : { end }),
      waitMs,
      ...(call.claim === undefined ? {} : { notAfter: call.claim.notAfterMs }),
      signal: AbortSignal.timeout(waitMs + END_MS + ASK_MARGIN_MS),
      timeoutMs: waitMs + ASK_MARGIN_MS + (end === undefined ? 0 : END_MS),
      maxAnswerBytes: around.maxAnswerBytes,
      ...(trip.reserve === undefined ? {} : { reserve: trip.reserve }),
    });
    giveBack();
    return answer;
  };

  const unknown = (reason: string): Asked => ({
    event: { of: 'ask', came: 'learned', learned: { kind: 'unknown', reason } },
  });
  const silent = (problem: string): Asked => ({ event: { of: 'ask', came: 'silent' }, problem });

  /** Nobody can be asked: is there still hope? */
  const nobody = ({ call, spec, status }: Recorded, own: boolean): Asked => {
    if (own) return unknown(lost ?? 'pod-gone');
    const grantMs = call.claim?.notAfterMs ?? 0;
    const tool = world.catalog.tool(namespace, spec.tool);
    const elsewhere = tool?.affinity === 'node' && !trip.ownNode;
    const waitMs = elsewhere ? trip.timeoutMs + NODE_LOST_MS : 0;
    const node = elsewhere ? `the pod is on node ${status.node ?? 'unknown'}` : 'the pod is not known';
    return now() < grantMs + waitMs ? silent(node) : unknown(elsewhere ? 'node-lost' : 'pod-gone');
  };

  return {
    namespace,
    name: trip.name,
    patienceMs: trip.patienceMs,
    silenceMs: SILENCE_MS,
    gone: trip.gone,
    ...(trip.create === undefined ? {} : { create: trip.create }),
    places: (tried) => {
      if (trip.asked === undefined) return [];
      const decision = decideFor(world, trip.caller, trip.target, trip.asked);
      if (decision.do !== 'run' && decision.do !== 'ask') return [];
      const { routes } = decision;
      if (routes.length === 0) return [];
      const first = pickRoute(routes, world.ownNode, tried, hops.busy);
      return [first, ...routes.filter((route) => route !== first)];
    },
    refusedNow: (recorded) => recorded !== undefined && standing(recorded).kind === 'refused',
    judge: (recorded): Judged => {
      const now = standing(recorded);
      switch (now.kind) {
        case 'holds':
          return { event: { of: 'judge', came: 'holds' } };
        case 'waits':
          return {
            event: { of: 'judge', came: 'learned', learned: { kind: 'not-made', reason: now.decision.reason } },
          };
        case 'refused': {
          const learned: Learned = { kind: 'refused', reason: now.decision.reason };
          return { event: { of: 'judge', came: 'learned', learned }, refused: now.decision };
        }
      }
    },
    send: async (recorded, others): Promise<Sent> => {
      const { call, uid, spec } = recorded;
      const windowMs = others ? 0 : around.dialWindowMs;
      const attempted = await attempt({
        decide: () => standing(recorded).decision,
        hops,
        ownNode: world.ownNode,
        arguments: trip.asked?.args ?? {},
        meta: {
          ...trip.meta,
          [META_CALL]: { id: uid, attempt: call.attempt, notAfter: call.claim?.notAfterMs ?? 0, recorded: true },
          [META_IDEMPOTENCY_KEY]: spec.idempotencyKey,
        },
        signal: trip.signal,
        maxAnswerBytes: around.maxAnswerBytes,
        only: call.place ?? '',
        ...(windowMs === undefined ? {} : { dialWindowMs: windowMs }),
        ...(trip.reserve === undefined ? {} : { reserve: trip.reserve }),
        ...(trip.onNotification === undefined ? {} : { onNotification: trip.onNotification }),
      });
      const { outcome } = attempted;
      if (outcome.kind === 'unknown') lost = outcome.reason;
      return sentOf(attempted, trip.stopped());
    },
    ask: async (recorded, { fence, own, waitMs }): Promise<Asked> => {
      const found = locate(recorded);
      if (found === undefined) return nobody(recorded, own);
      // Clients that go away because this gateway ends did not cancel anything.
      const cancelled = lost === 'timeout' || (trip.gone() && !around.closing());
      const end = !own ? undefined : trip.stopped() ? 'stop' : cancelled ? 'cancel' : undefined;
      const answer = await questionTo(recorded, found, {
        fence,
        waitMs: end === undefined ? waitMs : 0,
        ...(end === undefined ? {} : { end }),
      });
      if (!answer.ok) {
        // It is there, and keeps no journal.
        if (answer.problem.startsWith('HTTP status'))
          return { ...unknown(lost ?? 'no-journal'), problem: answer.problem };
        const startedMs = Date.parse(recorded.status.startedAt ?? '') || (recorded.call.claim?.notAfterMs ?? 0);
        const overdue = now() > startedMs + trip.timeoutMs + OVERDUE_MS;
        return overdue ? { ...unknown('unreachable'), problem: answer.problem } : silent(answer.problem);
      }
      switch (answer.call.state) {
        case 'running':
          return { event: { of: 'ask', came: 'running' } };
        case 'never-seen':
          return { event: { of: 'ask', came: 'unseen' } };
        case 'fenced':
          return { event: { of: 'ask', came: 'learned', learned: { kind: 'not-made', reason: 'never-sent' } } };
        case 'done': {
          const { learned, body } = learnedOfEnd(answer.call.outcome, own ? lost : undefined);
          return { event: { of: 'ask', came: 'learned', learned }, ...(body === undefined ? {} : { body }) };
        }
      }
    },
    fetch: async (recorded): Promise<Body | undefined> => {
      const found = locate(recorded);
      if (found === undefined) return undefined;
      const answer = await questionTo(recorded, found, { fence: false, waitMs: 0 });
      if (!answer.ok || answer.call.state !== 'done') return undefined;
      return bodyOf(answer.call.outcome);
    },
  };
}

/** What an attempt came to, for the table. What was lost on the way may be in the journal. */
function sentOf(attempted: Attempted, stopped: boolean): Sent {
  const { outcome } = attempted;
  const learned = (known: Learned, more: Partial<Sent> = {}): Sent => ({
    event: { of: 'send', came: 'learned', learned: known },
    attempted,
    ...more,
  });
  switch (outcome.kind) {
    case 'answered': {
      const { result } = outcome;
      if (passedResult(result) === undefined) return learned({ kind: 'unknown', reason: 'unreadable' });
      return learned(learnedOfResult(result['isError'] === true), { body: { kind: 'result', result } });
    }
    case 'error':
      return learned({ kind: 'tool-error', reason: 'answered' }, { body: outcome });
    case 'not-started':
      return learned({ kind: 'not-made', reason: outcome.reason });
    case 'refused':
      return learned({ kind: 'refused', reason: outcome.decision.reason }, { refused: outcome.decision });
    case 'stopped':
      return learned({ kind: 'stopped', reason: 'stopped' });
    case 'unknown':
      if (outcome.reason === 'connection' || outcome.reason === 'timeout') {
        return { event: { of: 'send', came: 'lost' }, attempted };
      }
      return learned({ kind: 'unknown', reason: outcome.reason });
    case 'cancelled':
      if (!outcome.sent) return learned({ kind: 'not-made', reason: stopped ? 'stopped' : 'cancelled' });
      return { event: { of: 'send', came: 'lost' }, attempted };
  }
}

function learnedOfResult(isError: boolean): Learned {
  return isError ? { kind: 'tool-error', reason: 'tool-error' } : { kind: 'result', reason: 'ok' };
}

function learnedOfEnd(end: CallEnd, lost: LostReason | undefined): { learned: Learned; body?: Body } {
  const body = bodyOf(end);
  const held = body === undefined ? {} : { body };
  switch (end.kind) {
    case 'result':
      if ('lost' in end) return { learned: learnedOfResult(end.isError) };
      if (passedResult(end.result) === undefined) return { learned: { kind: 'unknown', reason: 'unreadable' } };
      return { learned: learnedOfResult(end.result['isError'] === true), ...held };
    case 'error':
      return { learned: { kind: 'tool-error', reason: 'answered' }, ...held };
    case 'unknown':
      // What we saw of it says more than that it was ended on our word.
      return { learned: { kind: 'unknown', reason: lost ?? end.reason } };
    case 'not-started':
      return { learned: { kind: 'not-made', reason: end.reason } };
    case 'stopped':
      return { learned: { kind: 'stopped', reason: 'stopped' } };
  }
}

function bodyOf(end: CallEnd): Body | undefined {
  if (end.kind === 'result' && !('lost' in end)) return { kind: 'result', result: end.result };
  return end.kind === 'error' && !('lost' in end) ? { kind: 'error', error: end.error } : undefined;
}

function nothing(world: World, namespace: string, { toolId }: Target): Extract<Decision, { do: 'wait' }> {
  const tool = world.catalog.tool(namespace, toolId);
  const reason: WaitReason = 'no-pod';
  if (tool !== undefined) return { do: 'wait', tool, reason };
  return { do: 'wait', reason, tool: GONE };
}

/** Stands for a tool that is not there any more, of which nothing is asked. */
const GONE: Extract<Decision, { do: 'wait' }>['tool'] = {
  namespace: '',
  name: '',
  id: '',
  affinity: 'any',
  timeoutMs: 0,
  remote: false,
  approved: undefined,
  overrides: { text: '{}', byName: new Map() },
  honoursKey: new Set(),
};
