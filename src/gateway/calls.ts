/** The handler of the gateway's endpoints: lists, calls and tells of changes, for one caller at a time. */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { idempotencyKey } from '../domain/calls/callName.ts';
import { nextAttempt, retrySafe } from '../domain/calls/retry.ts';
import type { InFlight } from '../domain/inFlight.ts';
import type { Answer, McpHandler, ToolCall } from '../mcp/handler.ts';
import { HEADER_MISMATCH, INVALID_PARAMS } from '../mcp/wire/errorCode.ts';
import type { JsonObject } from '../mcp/wire/jsonrpc.ts';
import {
  META_CALL_ID,
  META_IDEMPOTENCY_KEY,
  META_MISSING,
  META_PROGRESS_TOKEN,
  passableMeta,
} from '../mcp/wire/meta.ts';
import { paramMismatch } from '../mcp/wire/paramHeader.ts';
import { passedResult, resultProblem } from './answer.ts';
import { type Attempted, type AttemptOptions, attempt, DIAL_WINDOW_MS } from './attempt.ts';
import { EVERY_NAMESPACE } from './catalog/catalog.ts';
import type { Decision } from './decide.ts';
import type { Hops } from './hops.ts';
import { type Job, jobKey, jobOf } from './job.ts';
import { accountKey, principalKey } from './principal.ts';
import type { CallOutcome, CallRecord, Recorder } from './record.ts';
import type { KeptResults } from './results/keptResults.ts';
import { giveResult, READ_ON, READ_ON_DEFINITION, readOn } from './results/readOn.ts';
import type { RunningCalls } from './runningCalls.ts';
import type { Carried } from './toolCalls/carry.ts';
import { concludeRecorded, notTaken } from './toolCalls/told.ts';
import { type Delivered, type Delivery, readCallId, type ToolCalls } from './toolCalls/toolCalls.ts';
import {
  type Asked,
  type Caller,
  decideFor,
  fingerprint,
  labelsOf,
  listFor,
  resolveName,
  type Target,
  type World,
} from './view.ts';
import {
  mismatchResult,
  notStartedResult,
  passedError,
  refusedResult,
  stoppedResult,
  unknownFunction,
  unknownResult,
} from './wording.ts';

export interface CallsOptions {
  readonly world: World;
  readonly hops: Hops;
  readonly running: RunningCalls;
  readonly results: KeptResults;
  /** Of a result that is given at once, by estimate; 0: any. */
  readonly resultTokens: number;
  readonly serverInfo: { readonly name: string; readonly version: string };
  readonly perAgent: InFlight;
  readonly perTool: InFlight;
  readonly recorder: Recorder;
  /** Unset: nothing can be written down, so only calls that are safe to repeat are made. */
  readonly toolCalls?: ToolCalls;
  readonly maxAnswerBytes: number;
  readonly dialWindowMs?: number;
  /** Changes within this time are told once. */
  readonly settleMs?: number;
}

export function createCalls(options: CallsOptions): McpHandler<Caller> {
  return {
    serverInfo: options.serverInfo,
    listTools: (caller, cursor) => list(options, caller, cursor),
    callTool: (caller, call) => serveCall(options, caller, call),
    subscribe: (caller, onChange) => subscribe(options, caller, onChange),
  };
}

/** The whole listing at once: it is bounded by what was granted, and a cursor of ours was never given out. */
function list({ world, results }: CallsOptions, caller: Caller, cursor: string | undefined): Answer {
  if (cursor !== undefined) {
    return { kind: 'error', error: { code: INVALID_PARAMS, message: 'Unknown cursor' } };
  }
  const { offered, missing } = listFor(world, caller);
  const tools = offered.map(({ name, definition }) => ({ name, ...definition }));
  if (results.hasReader(accountKey(caller.principal))) tools.push({ name: READ_ON, ...READ_ON_DEFINITION });
  const meta = missing.length === 0 ? {} : { _meta: { [META_MISSING]: missing } };
  return { kind: 'result', result: { tools, ...meta } };
}

async function serveCall(options: CallsOptions, caller: Caller, call: ToolCall): Promise<Answer> {
  const { world, recorder, results } = options;
  const startedMs = performance.now();
  if (call.name === READ_ON && results.hasReader(accountKey(caller.principal)))
    return serveReadOn(options, caller, call);
  const target = resolveName(world, caller, call.name);
  const asked: Asked = { args: call.arguments, job: jobFor(world, caller, call.meta) };
  const labels = labelsOf(world, caller, asked.job);
  let decision: Decision | undefined;
  const end = (outcome: CallOutcome, reason: string, answer: Answer, attempted?: Attempted): Answer => {
    const { namespace, serviceAccount, podUid } = caller.principal;
    recorder.called({
      namespace,
      serviceAccount,
      pod: podUid,
      tool: target?.toolId,
      function: target?.functionName,
      outcome,
      reason,
      ...problemOf(attempted),
      ...describeDecision(decision),
      ...(labels.length === 0 ? {} : { labels: labels.join(',') }),
      ...(asked.job.id === undefined ? {} : { job: asked.job.id }),
      ...(outcome === 'ok' ? usageOf(decision) : {}),
      toolPod: attempted?.pod,
      dials: attempted?.dials ?? 0,
      durationMs: performance.now() - startedMs,
    });
    return answer;
  };
  const hidden = (reason: string): Answer =>
    end('refused', reason, { kind: 'error', error: unknownFunction(call.name) });

  if (target === undefined) return hidden('no-such-function');
  const callId = readCallId(call.meta);
  if (callId === 'malformed') {
    const error = { code: INVALID_PARAMS, message: `${META_CALL_ID} must be 1 to 128 visible ASCII characters` };
    return end('refused', 'malformed-call-id', { kind: 'error', error });
  }
  decision = decideFor(world, caller, target, asked);
  if (decision.do === 'refuse') {
    if (decision.hidden) return hidden(decision.reason);
    // One with an id may have been made before it came to be refused.
    if (callId === undefined || options.toolCalls === undefined)
      return end('refused', decision.reason, tellRefusal(decision));
  }
  if ((decision.do === 'run' || decision.do === 'ask') && call.paramHeader !== undefined) {
    const problem = paramMismatch(decision.listed.paramHeaders, call.arguments, call.paramHeader);
    if (problem !== undefined) {
      const error = { code: HEADER_MISMATCH, message: `Header mismatch: ${problem}` };
      return end('refused', 'header-mismatch', { kind: 'error', error, status: 400 });
    }
  }

  const leaveAgent = options.perAgent.enter(principalKey(caller.principal));
  const leaveTool = options.perTool.enter(`${caller.principal.namespace}/${target.toolId}`);
  const running = options.running.enter(caller.principal, target.toolId, call.signal);
  try {
    if (leaveAgent === undefined || leaveTool === undefined) {
      return end('not-started', 'gateway-busy', { kind: 'result', result: notStartedResult('gateway-busy') });
    }
    let runs: Decision = decision;
    if (runs.do !== 'run' || !isRetrySafe(runs)) {
      const delivery: Delivery = {
        caller,
        target,
        asked,
        call,
        callId,
        running,
        meta: sentMeta(call),
        ...(call.progress === undefined ? {} : { onNotification: progressOf(call) }),
      };
      runs = await settle(options, runs, () => decideFor(world, caller, target, asked), running.signal);
      decision = runs;
      if (runs.do !== 'run' || !isRetrySafe(runs)) return await serveRecorded(options, delivery, runs, end);
    }
    const attempted = await attemptSafely({
      decide: () => {
        const now = decideFor(world, caller, target, asked);
        // What came to need a record while it waited is begun anew by whoever wants it.
        decision = now.do === 'run' && !isRetrySafe(now) ? CHANGED : now;
        return decision;
      },
      hops: options.hops,
      ownNode: world.ownNode,
      arguments: call.arguments,
      meta: runs.kind === 'ReadOnly' ? sentMeta(call) : { ...sentMeta(call), ...keyMeta(runs, callId) },
      signal: running.signal,
      maxAnswerBytes: options.maxAnswerBytes,
      ...(call.reserve === undefined ? {} : { reserve: call.reserve }),
      ...(options.dialWindowMs === undefined ? {} : { dialWindowMs: options.dialWindowMs }),
      ...(call.progress === undefined ? {} : { onNotification: progressOf(call) }),
    });
    if (decision.do === 'run' && decision.described.openWorld && toldSomething(attempted)) {
      world.jobs.readOutside(accountKey(caller.principal), jobKey(caller.principal, asked.job));
    }
    const stop = running.stopped();
    if (attempted.outcome.kind === 'cancelled' && stop !== undefined) {
      return attempted.outcome.sent
        ? end('stopped', 'stopped', { kind: 'result', result: stoppedResult(stop.because) }, attempted)
        : end('refused', 'stopped', { kind: 'result', result: refusedResult('stopped', stop) }, attempted);
    }
    return conclude(call, decision, target, attempted, giveTo(options, caller, target, decision), end);
  } finally {
    leaveAgent?.();
    leaveTool?.();
    running.leave();
  }
}

function serveReadOn({ world, recorder, results }: CallsOptions, caller: Caller, call: ToolCall): Answer {
  const startedMs = performance.now();
  const { principal } = caller;
  const read = readOn(world, results, caller, call.arguments);
  const job = jobFor(world, caller, call.meta);
  if (read.ok && read.outside) world.jobs.readOutside(accountKey(principal), jobKey(principal, job));
  recorder.called({
    namespace: principal.namespace,
    serviceAccount: principal.serviceAccount,
    pod: principal.podUid,
    tool: 'oz',
    function: 'read_on',
    outcome: read.ok ? 'ok' : 'refused',
    reason: read.ok ? 'none' : read.reason,
    ...(job.id === undefined ? {} : { job: job.id }),
    toolPod: undefined,
    dials: 0,
    durationMs: performance.now() - startedMs,
  });
  return { kind: 'result', result: read.result };
}

/** How a result is given to this caller: what is over the budget is kept for it. */
function giveTo(
  { results, resultTokens }: CallsOptions,
  caller: Caller,
  target: Target,
  decision: Decision,
): (result: JsonObject) => JsonObject {
  const terms = decision.do === 'run' || decision.do === 'ask' ? decision : undefined;
  const keepsStructured = terms !== undefined && terms.listed.definition['outputSchema'] !== undefined;
  const outside = terms === undefined || terms.described.openWorld;
  return (result) => giveResult(results, resultTokens, caller, { target, outside }, result, keepsStructured);
}

/** Of a decision that runs: whether a second call cannot do more than the first. */
function isRetrySafe({ kind, idempotent, honoursKey }: Extract<Decision, { do: 'run' }>): boolean {
  // What runs is as its approved snapshot says, remote or not: else it would wait, or be refused.
  return retrySafe({ kind, idempotent, honoursKey, approved: true });
}

const CHANGED: Decision = { do: 'refuse', hidden: false, reason: 'changed' };

function keyMeta({ agent }: Extract<Decision, { do: 'run' }>, callId: string | undefined): JsonObject {
  return { [META_IDEMPOTENCY_KEY]: idempotencyKey(agent.uid, callId ?? randomUUID()) };
}

/** After a crash: the tool's process starts anew before it takes a call again. */
const AGAIN_WINDOW_MS = 10_000;

/** A call that is safe to repeat: made again where what came of it is lost. */
async function attemptSafely(options: AttemptOptions): Promise<Attempted> {
  const { signal } = options;
  let attempted = await attempt(options);
  for (let attempts = 1; ; attempts += 1) {
    const { kind } = attempted.outcome;
    const how = kind === 'unknown' ? 'lost' : kind === 'answered' || kind === 'error' ? 'answered' : 'other';
    const next = nextAttempt(true, { attempts, how, leftMs: signal.aborted ? 0 : Number.POSITIVE_INFINITY });
    if (next.do === 'end') return attempted;
    await sleep(next.afterMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return { ...attempted, outcome: { kind: 'cancelled', sent: true } };
    const { dials } = attempted;
    const again = await attempt({ ...options, dialWindowMs: Math.max(options.dialWindowMs ?? 0, AGAIN_WINDOW_MS) });
    attempted = { ...again, dials: dials + again.dials };
  }
}

/** What may pass in a moment is waited for, as long as a dial would be. */
async function settle(
  options: CallsOptions,
  first: Decision,
  decide: () => Decision,
  signal: AbortSignal,
): Promise<Decision> {
  const untilMs = performance.now() + (options.dialWindowMs ?? DIAL_WINDOW_MS);
  let decision = first;
  let pauseMs = 20;
  while (decision.do === 'wait' && performance.now() + pauseMs < untilMs && !signal.aborted) {
    await sleep(pauseMs, undefined, { signal }).catch(() => {});
    pauseMs = Math.min(pauseMs * 2, 200);
    decision = decide();
  }
  return decision;
}

type End = (outcome: CallOutcome, reason: string, answer: Answer, attempted?: Attempted) => Answer;

/** A call that is on record, or will be before anything is made. */
async function serveRecorded(options: CallsOptions, delivery: Delivery, decision: Decision, end: End): Promise<Answer> {
  const { world, toolCalls } = options;
  const { caller, asked, call, callId, target } = delivery;
  if (decision.do === 'refuse' && decision.hidden) {
    return end('refused', decision.reason, { kind: 'error', error: unknownFunction(call.name) });
  }
  let delivered: Delivered | undefined;
  if (decision.do === 'run' || decision.do === 'ask') {
    delivered = await (toolCalls?.deliver(delivery, decision) ?? NOT_TAKEN);
  } else if (callId !== undefined) delivered = await toolCalls?.recall({ ...delivery, callId });
  if (delivered === undefined) {
    if (decision.do === 'refuse') return end('refused', decision.reason, tellRefusal(decision));
    const reason = decision.do === 'wait' ? decision.reason : 'no-pod';
    return end('not-started', reason, { kind: 'result', result: notStartedResult(reason) });
  }
  if (delivered.kind === 'not-taken') {
    const { outcome, reason, answer } = notTaken(delivered.reason);
    return end(outcome, reason, answer);
  }
  const { carried } = delivered;
  const { attempted, body } = carried;
  const openWorld = decision.do === 'run' || decision.do === 'ask' ? decision.described.openWorld : true;
  if (openWorld && (body !== undefined || (attempted !== undefined && toldSomething(attempted)))) {
    world.jobs.readOutside(accountKey(caller.principal), jobKey(caller.principal, asked.job));
  }
  const told = concludeRecorded(
    carried,
    delivered,
    asksAPerson(world, caller, carried, asked.job),
    delivery.running.stopped()?.because,
  );
  if (told !== undefined && call.signal.aborted && (told.outcome === 'unknown' || told.outcome === 'cancelled')) {
    // Nobody reads the answer.
    return end('cancelled', told.outcome === 'unknown' ? 'after-sending' : 'before-sending', told.answer, attempted);
  }
  if (told !== undefined) return end(told.outcome, told.reason, told.answer, attempted);
  const answered: Attempted = {
    dials: 0,
    pod: carried.recorded?.call.place,
    ...attempted,
    outcome: body?.kind === 'error' ? body : { kind: 'answered', result: body?.result ?? {} },
  };
  return conclude(call, decision, target, answered, giveTo(options, caller, target, decision), end);
}

const NOT_TAKEN: Promise<Delivered> = Promise.resolve({ kind: 'not-taken', reason: 'no-record' });

/** Whether the outcome of a call that nobody knows waits for a person: as its Agent says, else where a person started its job. */
function asksAPerson(world: World, { principal }: Caller, { recorded }: Carried, job: Job): boolean {
  const agents = world.catalog.access(principal.namespace, principal.serviceAccount)?.agents ?? [];
  const agent = agents.find(({ uid }) => uid === recorded?.spec.agentUid) ?? agents[0];
  if (agent?.onUnknown !== undefined) return agent.onUnknown === 'ask';
  const { startedBy, proved } = recorded?.spec.job ?? job;
  return startedBy !== undefined && proved;
}

function tellRefusal(decision: Extract<Decision, { do: 'refuse'; hidden: false }>): Answer {
  return { kind: 'result', result: refusedResult(decision.reason, decision) };
}

/** Whether the job may have read something that the tool wrote: progress counts, and an answer that cannot be read. */
function toldSomething({ outcome }: Attempted): boolean {
  if (outcome.kind === 'answered' || outcome.kind === 'error' || outcome.kind === 'unknown') return true;
  return outcome.kind === 'cancelled' && outcome.sent;
}

function jobFor(world: World, { principal }: Caller, meta: JsonObject): Job {
  const access = world.catalog.access(principal.namespace, principal.serviceAccount);
  return jobOf(meta, access?.agents.every((agent) => agent.mayAssertStarter) === true);
}

type Described = Pick<CallRecord, 'agent' | 'kind' | 'outbound' | 'by'>;

function describeDecision(decision: Decision | undefined): Described {
  switch (decision?.do) {
    case 'run':
    case 'ask':
      return {
        agent: decision.agent.name,
        kind: decision.kind,
        outbound: decision.described.openWorld,
        ...(decision.do === 'ask' && decision.rule !== undefined ? { by: decision.rule } : {}),
      };
    case 'refuse':
      return decision.hidden || decision.rule === undefined ? {} : { by: decision.rule };
    default:
      return {};
  }
}

function usageOf(decision: Decision | undefined): Pick<CallRecord, 'usage'> {
  const usage = decision?.do === 'run' || decision?.do === 'ask' ? decision.described.override?.usage : undefined;
  return usage === undefined ? {} : { usage };
}

function conclude(
  call: ToolCall,
  decision: Decision,
  target: Target,
  attempted: Attempted,
  give: (result: JsonObject) => JsonObject,
  end: (outcome: CallOutcome, reason: string, answer: Answer, attempted: Attempted) => Answer,
): Answer {
  const { outcome } = attempted;
  switch (outcome.kind) {
    case 'answered': {
      const result = passedResult(outcome.result);
      if (result === undefined) {
        return end('unknown', 'unreadable', { kind: 'result', result: unknownResult('unreadable') }, attempted);
      }
      const check = decision.do === 'run' || decision.do === 'ask' ? decision.described.override?.check : undefined;
      const problem = resultProblem(result, check);
      if (problem !== undefined) {
        return end('tool-error', 'output-mismatch', { kind: 'result', result: mismatchResult(problem) }, attempted);
      }
      const answered = result['isError'] === true ? 'tool-error' : 'ok';
      return end(answered, 'none', { kind: 'result', result: give(result) }, attempted);
    }
    case 'error':
      return end('error', 'answered', { kind: 'error', error: passedError(outcome.error) }, attempted);
    case 'not-started':
      return end(
        'not-started',
        outcome.reason,
        { kind: 'result', result: notStartedResult(outcome.reason) },
        attempted,
      );
    case 'unknown':
      return end('unknown', outcome.reason, { kind: 'result', result: unknownResult(outcome.reason) }, attempted);
    case 'stopped':
      return end('stopped', 'stopped', { kind: 'result', result: stoppedResult(undefined) }, attempted);
    case 'refused': {
      const { decision: refused } = outcome;
      const answer: Answer = refused.hidden
        ? { kind: 'error', error: unknownFunction(call.name) }
        : { kind: 'result', result: refusedResult(refused.reason, refused) };
      return end('refused', refused.reason, answer, attempted);
    }
    case 'cancelled': {
      const reason = outcome.sent ? 'after-sending' : 'before-sending';
      return end('cancelled', reason, { kind: 'error', error: unknownFunction(target.functionName) }, attempted);
    }
  }
}

const MAX_PROBLEM_CHARS = 200;

function problemOf(attempted: Attempted | undefined): { readonly problem?: string } {
  const outcome = attempted?.outcome;
  if (outcome?.kind !== 'not-started' && outcome?.kind !== 'unknown') return {};
  return { problem: outcome.problem.slice(0, MAX_PROBLEM_CHARS) };
}

/** Our token, not the agent's: the tool's progress comes back on the stream of this call alone. */
function sentMeta(call: ToolCall): JsonObject {
  const passed = passableMeta(call.meta);
  return call.progress === undefined ? passed : { ...passed, [META_PROGRESS_TOKEN]: 'call' };
}

function progressOf(call: ToolCall): (method: string, params: JsonObject) => void {
  return (method, params) => {
    if (method !== 'notifications/progress') return;
    const { progress, total, message } = params;
    if (typeof progress !== 'number') return;
    call.progress?.({
      progress,
      ...(typeof total === 'number' ? { total } : {}),
      ...(typeof message === 'string' ? { message: message.slice(0, 1_024) } : {}),
    });
  };
}

/** Tells of a change only where this caller's own listing differs from what it was last told. */
function subscribe(options: CallsOptions, caller: Caller, onChange: () => void): () => void {
  const { world } = options;
  const { namespace } = caller.principal;
  const account = accountKey(caller.principal);
  const see = (): string => `${fingerprint(listFor(world, caller))}${options.results.hasReader(account)}`;
  let seen = see();
  let timer: NodeJS.Timeout | undefined;
  const check = (): void => {
    timer = undefined;
    const now = see();
    if (now === seen) return;
    seen = now;
    onChange();
  };
  const wake = (changed: string): void => {
    if (changed === namespace || changed === EVERY_NAMESPACE) timer ??= setTimeout(check, options.settleMs ?? 100);
  };
  const stops = [
    world.catalog.onChange(wake),
    world.listings.onChange(wake),
    options.results.onChange((changed) => {
      if (changed === account) wake(namespace);
    }),
  ];
  return () => {
    clearTimeout(timer);
    for (const stop of stops) stop();
  };
}
