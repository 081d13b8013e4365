/** The handler of the gateway's endpoints: lists, calls and tells of changes, for one caller at a time. */

import type { InFlight } from '../domain/inFlight.ts';
import type { Answer, McpHandler, ToolCall } from '../mcp/handler.ts';
import { HEADER_MISMATCH, INVALID_PARAMS } from '../mcp/wire/errorCode.ts';
import type { JsonObject } from '../mcp/wire/jsonrpc.ts';
import { META_MISSING, META_PROGRESS_TOKEN, passableMeta } from '../mcp/wire/meta.ts';
import { paramMismatch } from '../mcp/wire/paramHeader.ts';
import { passedResult, resultProblem } from './answer.ts';
import { type Attempted, attempt } from './attempt.ts';
import { EVERY_NAMESPACE } from './catalog/catalog.ts';
import type { Decision } from './decide.ts';
import type { Hops } from './hops.ts';
import { type Job, jobKey, jobOf } from './job.ts';
import { accountKey, principalKey } from './principal.ts';
import type { CallOutcome, CallRecord, Recorder } from './record.ts';
import type { KeptResults } from './results/keptResults.ts';
import { giveResult, READ_ON, READ_ON_DEFINITION, readOn } from './results/readOn.ts';
import type { RunningCalls } from './runningCalls.ts';
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
  decision = decideFor(world, caller, target, asked);
  if (decision.do === 'refuse') {
    if (decision.hidden) return hidden(decision.reason);
    return end('refused', decision.reason, { kind: 'result', result: refusedResult(decision.reason, decision) });
  }
  if (decision.do === 'ask') {
    return end('refused', 'needs-a-person', { kind: 'result', result: refusedResult('needs-a-person', decision) });
  }
  if (decision.do === 'run' && call.paramHeader !== undefined) {
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
    const attempted = await attempt({
      decide: () => {
        decision = decideFor(world, caller, target, asked);
        return decision;
      },
      hops: options.hops,
      ownNode: world.ownNode,
      arguments: call.arguments,
      meta: sentMeta(call),
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
    const give = (result: JsonObject): JsonObject => {
      const keepsStructured = decision?.do === 'run' && decision.listed.definition['outputSchema'] !== undefined;
      const outside = decision?.do === 'run' && decision.described.openWorld;
      return giveResult(results, options.resultTokens, caller, { target, outside }, result, keepsStructured);
    };
    return conclude(call, decision, target, attempted, give, end);
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
  const usage = decision?.do === 'run' ? decision.described.override?.usage : undefined;
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
      const check = decision.do === 'run' ? decision.described.override?.check : undefined;
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
