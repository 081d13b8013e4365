/** What an agent is told of a call that is on record: its outcome, or how to learn it later. Pure. */

import type { Answer } from '../../mcp/handler.ts';
import type { JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { META_CALL, META_CALL_ID, META_FAILURE, META_OUTCOME, META_REASON } from '../../mcp/wire/meta.ts';
import type { ToldReason } from '../decide.ts';
import type { CallOutcome } from '../record.ts';
import {
  isNotStartedReason,
  isRefusedReason,
  isUnknownReason,
  notStartedResult,
  refusedResult,
  stoppedResult,
  unknownResult,
} from '../wording.ts';
import type { Carried } from './carry.ts';
import type { Delivered } from './toolCalls.ts';

export interface Concluded {
  readonly outcome: CallOutcome;
  /** A word of a closed set. */
  readonly reason: string;
  readonly answer: Answer;
}

/** By which a call is known afterwards. */
export interface CallRef {
  readonly name: string;
  readonly callId: string;
}

/**
 * Of a call that has no answer of the tool to pass on; undefined where `carried.body` is that answer.
 * @param asks whether a person is asked about an unknown outcome
 * @param because of the Stop that ended it
 */
export function concludeRecorded(
  carried: Carried,
  ref: CallRef,
  asks: boolean,
  because: string | undefined,
): Concluded | undefined {
  const { told, recorded, body, learned } = carried;
  const call = recorded?.call;
  switch (told) {
    case 'waiting':
      return waiting(ref, call?.decision === 'approve');
    case 'running':
      return running(ref);
    case 'no-record':
      return notTaken('no-record');
    case 'another-call':
      return plain('refused', 'another-call', 'refused', ANOTHER_CALL, ref);
    case 'not-made':
      return notMade(learned?.reason ?? '', ref);
    case 'unknown':
      return unknown(learned?.reason ?? '', ref, asks);
    case 'ended':
      break;
  }
  switch (call?.phase) {
    case 'Succeeded':
      if (body !== undefined) return undefined;
      if (call.reason === 'said-by-a-person')
        return plain('ok', call.reason, 'succeeded', SAID_BY_A_PERSON, ref, false);
      return plain('ok', 'result-lost', 'succeeded', RESULT_LOST, ref, false);
    case 'Failed':
      if (call.notMade) return notMade(call.reason, ref);
      if (body !== undefined) return undefined;
      return plain('tool-error', 'result-lost', 'failed', ERROR_LOST, ref);
    case 'Refused':
      return refused(carried, call.reason, ref);
    case 'Stopped':
      if (call.reason === 'left-by-a-person') return plain('stopped', call.reason, 'stopped', LEFT_BY_A_PERSON, ref);
      return { outcome: 'stopped', reason: 'stopped', answer: result(withRef(stoppedResult(because), ref)) };
    case 'Expired':
      return plain('refused', 'expired', 'not-started', EXPIRED, ref);
    default:
      return unknown(call?.reason ?? '', ref, asks);
  }
}

export function notTaken(reason: Extract<Delivered, { kind: 'not-taken' }>['reason']): Concluded {
  return plain('not-started', reason, 'not-started', NOT_TAKEN[reason]);
}

const NOT_TAKEN: Readonly<Record<Extract<Delivered, { kind: 'not-taken' }>['reason'], string>> = {
  'no-record':
    'This call has to be written down before it is made, and the API server takes no writes now. Nothing was made for this request; try again later.',
  'too-many-open':
    'Too many calls of this namespace wait or run already. The call was not made; try again once some of them have ended.',
  'too-large-to-ask':
    'A person must allow this call, and its arguments are too large to be shown to one. It was not made; send less at once.',
  'too-deep': 'The arguments are nested too deeply to be written down. The call was not made.',
};

const ANOTHER_CALL =
  'This call id was used before, for another function or other arguments. The call was not made; use a new id for a new call.';
const SAID_BY_A_PERSON =
  'The outcome of this call was unknown; a person checked and says that it happened. There is no result to show. Do not call it again.';
const RESULT_LOST =
  'This call was made and succeeded, but its result is lost. Do not call it again; look at what it did.';
const ERROR_LOST = 'This call was made, and the tool answered with an error, whose text is lost.';
const LEFT_BY_A_PERSON =
  'The outcome of this call was unknown, and a person decided to leave it at that. It will not be made again.';
const EXPIRED =
  'Nobody decided on this call in time. It was not made; if it is still wanted, call again with a new call id.';

/**
 * No error: nothing failed, and an error is what makes a model or its harness try again at once, or look for a way around
 * the person that is asked. The first words say that nothing was done, since they are read as the result of the call.
 */
function waiting(ref: CallRef, approved: boolean): Concluded {
  const text = approved
    ? `Not made yet: a person approved this call, and it is made as soon as the tool takes it. ${howToLook(ref)}`
    : `Not made yet: a person has to approve this call first, and was asked. Do not try another way, and do not make a new call of it. ${howToLook(ref)}`;
  return plain('waiting', approved ? 'approved' : 'needs-a-person', 'waiting', text, ref, false);
}

function running(ref: CallRef): Concluded {
  return plain(
    'running',
    'running',
    'running',
    `This call still runs; there is no result yet. ${howToLook(ref)}`,
    ref,
    false,
  );
}

function howToLook({ name, callId }: CallRef): string {
  return `To see what became of it, send the same call again, with the same arguments and with "${META_CALL_ID}": ${JSON.stringify(callId)} in its _meta; that makes it only once. For people, its name is ${name}.`;
}

function unknown(reason: string, ref: CallRef, asks: boolean): Concluded {
  const known = isUnknownReason(reason) ? reason : 'connection';
  const why = isUnknownReason(reason) || LEFT.has(reason) ? reason : 'connection';
  const base = unknownResult(known);
  const [block] = base['content'] as readonly JsonObject[];
  const more = asks ? ` A person is asked what became of it. ${howToLook(ref)}` : ` It is on record as ${ref.name}.`;
  const content = [{ type: 'text', text: `${String(block?.['text'])}${more}` }];
  const failure = asks ? {} : { [META_FAILURE]: 'unknown_outcome' };
  const told = withRef({ ...base, content }, ref, { [META_REASON]: why, ...failure });
  return { outcome: 'unknown', reason: why, answer: result(told) };
}

/** Reasons of what was found out after the fact. */
const LEFT: ReadonlySet<string> = new Set(['pod-gone', 'node-lost', 'unreachable', 'no-journal']);

function notMade(reason: string, ref: CallRef): Concluded {
  const known = isNotStartedReason(reason) ? reason : undefined;
  if (known !== undefined)
    return { outcome: 'not-started', reason, answer: result(withRef(notStartedResult(known), ref)) };
  if (isRefusedReason(reason)) {
    return { outcome: 'refused', reason, answer: result(withRef(refusedResult(reason), ref)) };
  }
  return plain(reason === 'cancelled' ? 'cancelled' : 'not-started', 'never-sent', 'not-started', NEVER_SENT, ref);
}

const NEVER_SENT = 'This call was not made: it never reached the tool. It may be called again.';

function refused(carried: Carried, reason: string, ref: CallRef): Concluded {
  if (reason === 'denied') {
    const note = carried.recorded?.spec.decision?.note;
    const why = note === undefined ? '' : ` The reason given: ${note}`;
    return plain(
      'refused',
      'denied',
      'refused',
      `A person denied this call. It was not made, and will not be.${why}`,
      ref,
    );
  }
  const { refused: decision } = carried;
  const known: ToldReason = isRefusedReason(reason) ? reason : 'changed';
  const said = decision?.hidden === false ? decision : {};
  return { outcome: 'refused', reason: known, answer: result(withRef(refusedResult(known, said), ref)) };
}

function plain(
  outcome: CallOutcome,
  reason: string,
  told: string,
  text: string,
  ref?: CallRef,
  isError = true,
): Concluded {
  const body = { content: [{ type: 'text', text }], isError, _meta: { [META_OUTCOME]: told, [META_REASON]: reason } };
  return { outcome, reason, answer: result(ref === undefined ? body : withRef(body, ref)) };
}

function withRef(body: JsonObject, { name, callId }: CallRef, more: JsonObject = {}): JsonObject {
  const meta = body['_meta'] as JsonObject;
  return { ...body, _meta: { ...meta, ...more, [META_CALL]: name, [META_CALL_ID]: callId } };
}

function result(body: JsonObject): Answer {
  return { kind: 'result', result: body };
}
