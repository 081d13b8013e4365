/** What a model is told where there is no answer of the tool: what happened, what it means, what to do. Pure. */

import type { LostReason } from '../mcp/hop.ts';
import { INVALID_PARAMS, passableCode } from '../mcp/wire/errorCode.ts';
import type { JsonObject, RpcError } from '../mcp/wire/jsonrpc.ts';
import { META_BY, META_OUTCOME, META_REASON } from '../mcp/wire/meta.ts';
import type { AttemptOutcome } from './attempt.ts';
import type { RuleSaid, ToldReason } from './decide.ts';

export type NotStarted = Extract<AttemptOutcome, { kind: 'not-started' }>['reason'] | 'gateway-busy';

const NOT_STARTED: Readonly<Record<NotStarted, string>> = {
  busy: 'The tool is busy: it runs as many calls as it may. The call was not made; try again later.',
  'gateway-busy': 'Too many calls of this agent or to this tool are running. The call was not made; try again later.',
  draining: 'The tool is being replaced. The call was not made; try again in a moment.',
  down: 'The tool is down. The call was not made.',
  'not-ready': 'The tool is not ready. The call was not made; try again in a moment.',
  'definition-changed':
    'The definition of this function has just changed. The call was not made; list the functions again before calling it.',
  'grant-expired': 'The call did not reach the tool in time. The call was not made; try again in a moment.',
  fenced: 'The call was given up before it reached the tool. The call was not made.',
  journal: 'The tool cannot write down calls now. The call was not made; try again later.',
  'other-node':
    'This tool runs calls only on the node of the agent that makes them, and this is another node. The call was not made.',
  'not-listed': 'The tool has not said yet what it offers. The call was not made; try again in a moment.',
  'no-snapshot':
    'What the tool offers was not recorded yet, so it cannot be compared. The call was not made; try again in a moment.',
  'no-pod': 'The tool does not run now. The call was not made; try again in a moment.',
  unreachable: 'The tool cannot be reached. The call was not made; try again in a moment.',
};

const REFUSED: Readonly<Record<ToldReason, string>> = {
  'tool-broken': 'The Tool object cannot be read. The call was not made; whoever runs the tool must mend it.',
  'other-node':
    'This tool runs calls only on the node of the agent that makes them, and this is another node. The call was not made.',
  'held-back':
    'The definition of this function is not valid. The call was not made; whoever runs the tool must mend it.',
  stopped: 'This was stopped by a person. The call was not made, and will not be until the stop is lifted.',
  'not-approved':
    'This function changed since it was approved. The call was not made; it waits until a person approves the change.',
  policy: 'The policy does not allow this call. It was not made; calling again changes nothing.',
  'policy-broken':
    'A policy for this function cannot be read, so it allows nothing. The call was not made; whoever keeps the policies must mend it.',
  nobody:
    'This call would need a person to allow it, and there is nobody who may. It was not made; whoever keeps the policies must say who decides.',
  shadow: 'This agent runs as a shadow, which may only call functions that read. The call was not made.',
  'api-silent':
    'The gateway cannot see now whether this was stopped, and makes only calls that read. The call was not made; try again later.',
  'no-place-for-label':
    'What this function writes is marked as written by an AI, and there is no text to put the mark on, or no mark that can be read. The call was not made; give that argument as text.',
  changed:
    'What was approved is not what would be made now: the function, its policy or its agent changed. The call was not made; a person must be asked again, with a new call.',
  'needs-a-person': 'A person must allow this call first. It was not made.',
};

const UNKNOWN: Readonly<Record<LostReason, string>> = {
  timeout: 'it ran longer than it may and was stopped',
  'process-ended': "the tool's process ended while it ran",
  connection: 'the connection broke while it ran',
  cancelled: 'it was cancelled while it ran',
  forgotten: 'the tool keeps no record of it any more',
  unreadable: 'its answer cannot be read',
  'too-large': 'its answer is larger than may be passed on',
};

export function isNotStartedReason(reason: string): reason is NotStarted {
  return Object.hasOwn(NOT_STARTED, reason);
}

export function isRefusedReason(reason: string): reason is ToldReason {
  return Object.hasOwn(REFUSED, reason);
}

export function isUnknownReason(reason: string): reason is LostReason {
  return Object.hasOwn(UNKNOWN, reason);
}

/** An error result for the model: not a protocol error, so that it can try something else. */
export function notStartedResult(reason: NotStarted): JsonObject {
  return told(NOT_STARTED[reason], { [META_OUTCOME]: 'not-started', [META_REASON]: reason });
}

export function refusedResult(reason: ToldReason, said: RuleSaid = {}): JsonObject {
  const { rule, because } = said;
  const text = because === undefined ? REFUSED[reason] : `${REFUSED[reason]} The reason given: ${because}`;
  const by = rule === undefined ? {} : { [META_BY]: rule };
  return told(text, { [META_OUTCOME]: 'not-started', [META_REASON]: reason, ...by });
}

/** For a call that ran when the Stop came. */
export function stoppedResult(because: string | undefined): JsonObject {
  const why = because === undefined ? '' : ` The reason given: ${because}`;
  const text = `This call was stopped by a person while it ran. It may have taken effect in part; it will not be made again.${why}`;
  return told(text, { [META_OUTCOME]: 'stopped', [META_REASON]: 'stopped' });
}

/** For a call that ran, with a result that is not what its Tool says. */
export function mismatchResult(problem: string): JsonObject {
  const text = `The call was made, but its result is not what this function should return: ${problem}. Do not rely on it.`;
  return told(text, { [META_REASON]: 'output-mismatch' });
}

export function unknownResult(reason: LostReason): JsonObject {
  const text = `The outcome of this call is unknown: ${UNKNOWN[reason]}. It may have taken effect, or not. It was not made again; check before calling it again.`;
  return told(text, { [META_OUTCOME]: 'unknown', [META_REASON]: reason });
}

function told(text: string, meta: JsonObject): JsonObject {
  return { content: [{ type: 'text', text }], isError: true, _meta: meta };
}

const MAX_NAME_CHARS = 128;

/** The one answer for a function that is hidden and one that does not exist. */
export function unknownFunction(name: string): RpcError {
  return { code: INVALID_PARAMS, message: `Unknown tool: ${name.slice(0, MAX_NAME_CHARS)}` };
}

const MAX_MESSAGE_CHARS = 4_096;

/** An error that the tool answered, as it may be passed on; its data stays behind, since nobody here read it. */
export function passedError(error: RpcError): RpcError {
  return { code: passableCode(error.code), message: error.message.slice(0, MAX_MESSAGE_CHARS) };
}
