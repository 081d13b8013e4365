/** Outcomes of calls as gateways are told them, and as the journal keeps them. Pure. */
import type { Answer } from '../mcp/handler.ts';
import type { CallEnd } from '../mcp/wire/callRecord.ts';
import { INTERNAL_ERROR, INVALID_PARAMS, passableCode } from '../mcp/wire/errorCode.ts';
import { isObject, type JsonObject, type RpcError } from '../mcp/wire/jsonrpc.ts';
import { META_OUTCOME, passableMeta, requestMeta } from '../mcp/wire/meta.ts';
import type { CallRefusal } from './decideCall.ts';
import type { RemoteCallOutcome, RemoteTool } from './remote/remoteTool.ts';
import type { ToolProcess } from './toolProcess.ts';

/** What runs the tool: a process of this pod, or a server elsewhere. */
export type ServedTool = Pick<ToolProcess | RemoteTool, 'call' | 'refusal' | 'listing' | 'onListing' | 'status'>;

export function answerOf(outcome: RemoteCallOutcome): Answer {
  switch (outcome.kind) {
    case 'result':
      return answerOfResult(outcome.result);
    case 'error':
      return { kind: 'error', error: passableError(outcome.error) };
    case 'refused':
      return notStarted(outcome.reason);
    case 'unknown':
      return answerOfEnd(outcome);
    case 'cancelled':
      // Not read by anybody; told all the same.
      return failure(INTERNAL_ERROR, 'cancelled', { [META_OUTCOME]: 'unknown', reason: 'connection' });
    case 'lost':
      return failure(INTERNAL_ERROR, outcome.problem, { [META_OUTCOME]: 'unknown', reason: 'connection' });
    case 'unreachable':
      return failure(INTERNAL_ERROR, outcome.problem, { [META_OUTCOME]: 'not-started', reason: 'down' });
    case 'refused-by-server':
      return failure(INTERNAL_ERROR, `${outcome.problem}. The call was not made.`);
    case 'no-such-function':
      return failure(INVALID_PARAMS, 'the tool lists no function of this name');
    case 'call-too-large':
      return failure(INVALID_PARAMS, 'the call is larger than the tool takes');
    case 'too-large':
      return failure(INTERNAL_ERROR, "the tool's answer is larger than the limit");
  }
}

function answerOfResult(result: JsonObject): Answer {
  const type = result['resultType'];
  if (type !== undefined && type !== 'complete') {
    return failure(INTERNAL_ERROR, 'the tool asks for more than was said: that is not supported');
  }
  const meta = requestMeta(result);
  return { kind: 'result', result: meta === undefined ? result : { ...result, _meta: passableMeta(meta) } };
}

/** A tool's own error, without what only we may say: an outcome in it would make a gateway call again. */
function passableError(error: RpcError): RpcError {
  const { data } = error;
  const code = passableCode(error.code);
  const message = error.message.slice(0, 4_000);
  if (data === undefined) return { code, message };
  return { code, message, data: isObject(data) ? passableMeta(data) : data };
}

/** What was answered, from its record. */
export function answerOfEnd(end: CallEnd): Answer {
  switch (end.kind) {
    case 'result':
      if (!('lost' in end)) return end;
      return failure(
        INTERNAL_ERROR,
        `the call was made${end.isError ? ', and failed' : ''}; its answer is not kept`,
        LOST,
      );
    case 'error':
      return 'lost' in end ? failure(INTERNAL_ERROR, 'the call ended with an error that is not kept', LOST) : end;
    case 'unknown':
      return failure(INTERNAL_ERROR, UNKNOWNS[end.reason] ?? UNKNOWNS['connection'] ?? '', {
        [META_OUTCOME]: 'unknown',
        reason: end.reason,
      });
    case 'not-started':
      return failure(INTERNAL_ERROR, 'the call was not started', {
        [META_OUTCOME]: 'not-started',
        reason: end.reason,
      });
    case 'stopped':
      return failure(INTERNAL_ERROR, 'the call was stopped', { [META_OUTCOME]: 'stopped', reason: 'stopped' });
  }
}

const LOST: JsonObject = { [META_OUTCOME]: 'done', reason: 'lost' };

/** What the journal keeps of an answer. */
export function endOf(answer: Answer): CallEnd {
  if (answer.kind === 'result') return answer;
  const { error } = answer;
  const data = isObject(error.data) ? error.data : {};
  const reason = String(data['reason'] ?? '');
  switch (data[META_OUTCOME]) {
    case 'unknown':
      return { kind: 'unknown', reason };
    case 'not-started':
      return { kind: 'not-started', reason };
    case 'stopped':
      return { kind: 'stopped' };
    default:
      return { kind: 'error', error };
  }
}

const UNKNOWNS: Readonly<Record<string, string>> = {
  timeout: 'the tool did not answer in time',
  'process-ended': "the tool's process ended in mid-call",
  connection: 'the connection to the tool broke in mid-call',
  cancelled: 'the call was cancelled in mid-call',
  forgotten: 'nothing is kept of this call',
};

const REFUSALS: Record<CallRefusal, string> = {
  draining: 'the pod is ending',
  down: "the tool's process is down",
  'not-ready': "the tool's process is starting",
  busy: 'all slots of the tool are taken',
  'definition-changed': 'the function has another definition now',
  'grant-expired': 'the call came too late',
  fenced: 'the call was given up before it came',
  journal: 'the call cannot be written down',
};

export function notStarted(reason: CallRefusal): Answer {
  return failure(INTERNAL_ERROR, REFUSALS[reason], { [META_OUTCOME]: 'not-started', reason });
}

export function failure(code: number, message: string, data?: JsonObject): Answer {
  return { kind: 'error', error: { code, message, ...(data === undefined ? {} : { data }) } };
}
