/**
 * Calls that are on record: those that a person must decide, and those that must not be made twice. Delivers them, and looks
 * after the ones that were left. Functions that are safe to repeat never come here.
 */

import type { ToolCallSpec } from '../../api/toolCall.ts';
import { callName, idempotencyKey } from '../../domain/calls/callName.ts';
import { newDelivery, newUpkeep } from '../../domain/calls/hand.ts';
import type { KubeObject } from '../../engine/contract.ts';
import type { ToolCall } from '../../mcp/handler.ts';
import type { JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { META_CALL_ID } from '../../mcp/wire/meta.ts';
import type { Decision } from '../decide.ts';
import type { RunningCall, RunningCalls } from '../runningCalls.ts';
import { type Asked, type Caller, labelsOf, type Target } from '../view.ts';
import type { Breaker } from './breaker.ts';
import type { Carried, Carrier, Sender } from './carry.ts';
import { createErrand, type Surroundings, type Trip } from './errand.ts';
import {
  argumentsHash,
  isoOf,
  LABEL_NODE,
  newToolCall,
  nodeLabel,
  prefixed,
  type Recorded,
  readToolCall,
  whatOf,
} from './toolCallObject.ts';
import type { ToolCallStore } from './toolCallStore.ts';

export interface ToolCallsOptions extends Surroundings {
  readonly store: ToolCallStore;
  readonly breaker: Breaker;
  readonly carrier: Carrier;
  readonly running: RunningCalls;
  readonly self: { readonly pod: string; readonly node: string };
  /** Open calls of a namespace that this gateway knows of. */
  readonly open: (namespace: string) => number;
  readonly newCallId: () => string;
  readonly limits?: Partial<ToolCallLimits>;
}

export interface ToolCallLimits {
  /** Of one namespace at this gateway: waiting, being sent, or unknown and not answered. */
  readonly openPerNamespace: number;
  readonly maxStoredArgumentBytes: number;
  /** How long a person has to decide. */
  readonly waitMs: number;
}

const LIMITS: ToolCallLimits = {
  openPerNamespace: 500,
  maxStoredArgumentBytes: 128 * 1024,
  waitMs: 24 * 3_600_000,
};

/** What an agent delivers. */
export interface Delivery {
  readonly caller: Caller;
  readonly target: Target;
  readonly asked: Asked;
  readonly call: ToolCall;
  /** The agent's own id of the call; undefined: it gave none, and cannot deliver it again. */
  readonly callId: string | undefined;
  readonly running: RunningCall;
  /** `_meta` as it goes to the tool. */
  readonly meta: JsonObject;
  readonly onNotification?: (method: string, params: JsonObject) => void;
}

export type Delivered =
  | { readonly kind: 'carried'; readonly carried: Carried; readonly callId: string; readonly name: string }
  /** It cannot be written down now, or at all; nothing was made. */
  | { readonly kind: 'not-taken'; readonly reason: 'no-record' | 'too-many-open' | 'too-large-to-ask' | 'too-deep' };

export interface ToolCalls {
  /** A call that is to be sent at once, or that a person must decide: on record first. */
  readonly deliver: (delivery: Delivery, decision: Extract<Decision, { do: 'run' | 'ask' }>) => Promise<Delivered>;
  /**
   * One that would not be made now, but may have been before: undefined where it is not on record. An agent's own id is
   * asked for, since by nothing else it is known.
   */
  readonly recall: (delivery: Delivery & { readonly callId: string }) => Promise<Delivered | undefined>;
  /** Takes up what was left; resolves when there is nothing more to do for it now. */
  readonly lookAfter: (recorded: Recorded) => Promise<Carried>;
}

const CALL_ID = /^[\x21-\x7e]{1,128}$/;

/** The client's own id of a call; `malformed` for one that is none. */
export function readCallId(meta: JsonObject): string | undefined | 'malformed' {
  const id = meta[META_CALL_ID];
  if (id === undefined) return undefined;
  return typeof id === 'string' && CALL_ID.test(id) ? id : 'malformed';
}

/** A delivery waits so much longer than the tool may take. */
const PATIENCE_MARGIN_MS = 3_000;
/** What looks after a call comes again later. */
const UPKEEP_PATIENCE_MS = 10_000;

export function createToolCalls(options: ToolCallsOptions): ToolCalls {
  const { world, store, carrier, self, now } = options;
  const limits = { ...LIMITS, ...options.limits };

  const tripOf = (delivery: Delivery, name: string): Omit<Trip, 'create'> => {
    const { caller, target, asked, call, running, meta, onNotification } = delivery;
    const timeoutMs = world.catalog.tool(caller.principal.namespace, target.toolId)?.timeoutMs ?? 0;
    return {
      name,
      caller,
      target,
      asked,
      meta,
      signal: running.signal,
      stopped: () => running.stopped() !== undefined,
      gone: () => call.signal.aborted,
      timeoutMs,
      ...(onNotification === undefined ? {} : { onNotification }),
      ...(call.reserve === undefined ? {} : { reserve: call.reserve }),
      ownNode: true,
      patienceMs: timeoutMs + PATIENCE_MARGIN_MS,
    };
  };

  const deliver: ToolCalls['deliver'] = async (delivery, decision) => {
    const { caller, target, asked } = delivery;
    const { namespace, serviceAccount } = caller.principal;
    const hash = argumentsHash(asked.args);
    if (hash === undefined) return { kind: 'not-taken', reason: 'too-deep' };
    const stored = decision.do === 'ask' && JSON.stringify(asked.args).length > limits.maxStoredArgumentBytes;
    if (stored) return { kind: 'not-taken', reason: 'too-large-to-ask' };
    if (!options.breaker.closed()) return { kind: 'not-taken', reason: 'no-record' };
    if (options.open(namespace) >= limits.openPerNamespace) {
      // One that is on record already may still be looked at.
      const known = delivery.callId === undefined ? undefined : await recall({ ...delivery, callId: delivery.callId });
      return known ?? { kind: 'not-taken', reason: 'too-many-open' };
    }

    const callId = delivery.callId ?? options.newCallId();
    const { agent } = decision;
    const name = callName(agent.uid, callId);
    const labels = labelsOf(world, caller, asked.job);
    const base: Omit<ToolCallSpec, 'sender' | 'notAfter' | 'toolPod' | 'arguments' | 'deciders'> = {
      agent: agent.name,
      agentUid: agent.uid,
      caller: `system:serviceaccount:${namespace}:${serviceAccount}`,
      ...(asked.job.id === undefined && asked.job.startedBy === undefined ? {} : { job: asked.job }),
      tool: target.toolId,
      function: target.functionName,
      argumentsHash: hash,
      definition: prefixed(decision.listed.hash),
      policy: prefixed(decision.policyHash),
      ...(decision.do === 'ask' && decision.rule !== undefined ? { rule: decision.rule.slice(0, 320) } : {}),
      ...(decision.do === 'ask' && decision.because !== undefined ? { because: decision.because.slice(0, 512) } : {}),
      ...(labels.length === 0 ? {} : { labels: [...labels] }),
      callId,
      idempotencyKey: idempotencyKey(agent.uid, callId),
      expiresAt: isoOf(now() + limits.waitMs),
    };
    const create = (sender: Sender | undefined): KubeObject => {
      if (sender === undefined) {
        const deciders = decision.do === 'ask' ? decision.deciders.map(writtenDeciders) : [];
        const spec: ToolCallSpec = { ...base, arguments: asked.args, ...(deciders.length === 0 ? {} : { deciders }) };
        return newToolCall(namespace, name, self.node, spec);
      }
      return newToolCall(namespace, name, self.node, {
        ...base,
        sender: { pod: self.pod, nonce: sender.nonce, node: self.node },
        notAfter: isoOf(sender.notAfterMs),
        toolPod: sender.place.podUid,
      });
    };
    const what = whatOf(target.toolId, target.functionName, hash);
    const hand = newDelivery(carrier.newNonce(), decision.do === 'ask' ? 'ask' : 'send', what);
    const errand = createErrand(options, { ...tripOf(delivery, name), create });
    return { kind: 'carried', carried: await carrier.carry(hand, errand), callId, name };
  };

  const recall: ToolCalls['recall'] = async (delivery) => {
    const { caller, target, asked, callId } = delivery;
    const { namespace, serviceAccount } = caller.principal;
    const hash = argumentsHash(asked.args);
    if (hash === undefined) return undefined;
    for (const agent of world.catalog.access(namespace, serviceAccount)?.agents ?? []) {
      const name = callName(agent.uid, callId);
      const read = await store.read(namespace, name);
      const recorded = read.came === 'read' ? readToolCall(read.object) : undefined;
      if (recorded === undefined) continue;
      const hand = newDelivery(carrier.newNonce(), 'ask', whatOf(target.toolId, target.functionName, hash));
      const errand = createErrand(options, tripOf(delivery, name));
      const carried = await carrier.carry({ ...hand, call: recorded.call }, errand, recorded);
      return { kind: 'carried', carried, callId, name };
    }
    return undefined;
  };

  const lookAfter: ToolCalls['lookAfter'] = async (recorded) => {
    const { spec, namespace, name, object } = recorded;
    const ownNode = object.metadata.labels?.[LABEL_NODE] === nodeLabel(self.node);
    const serviceAccount = spec.caller.split(':')[3] ?? '';
    // Its agent's pod may be gone; that it ran on this node was seen when it asked.
    const principal = { namespace, serviceAccount, podUid: undefined, node: ownNode ? self.node : undefined };
    const running = options.running.enter(principal, spec.tool, NEVER);
    const args = spec.arguments;
    const job = spec.job ?? { proved: false };
    const timeoutMs = world.catalog.tool(namespace, spec.tool)?.timeoutMs ?? 0;
    // What its job carried along when it was asked for; it may be another gateway that makes it.
    const jobs = { ...world.jobs, of: () => spec.labels ?? [] };
    const errand = createErrand(
      { ...options, world: { ...world, jobs } },
      {
        name,
        caller: { principal, endpoint: { kind: 'all' } },
        target: { toolId: spec.tool, functionName: spec.function },
        asked: args === undefined ? undefined : { args, job },
        meta: {},
        signal: running.signal,
        stopped: () => running.stopped() !== undefined,
        gone: () => false,
        timeoutMs,
        ownNode,
        patienceMs: UPKEEP_PATIENCE_MS,
      },
    );
    try {
      return await carrier.carry(newUpkeep(carrier.newNonce(), recorded.call), errand, recorded);
    } finally {
      running.leave();
    }
  };

  return { deliver, recall, lookAfter };
}

const NEVER = new AbortController().signal;

type Deciders = NonNullable<ToolCallSpec['deciders']>[number];

function writtenDeciders(written: Extract<Decision, { do: 'ask' }>['deciders'][number]): Deciders {
  const { roles, groups, notStarter } = written;
  return {
    ...(roles === undefined ? {} : { roles: [...roles] }),
    ...(groups === undefined ? {} : { groups: [...groups] }),
    notStarter,
  };
}
