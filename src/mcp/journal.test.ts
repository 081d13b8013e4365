import { describe, expect, test } from 'vitest';
import type { HopHandler, HopRequest } from './hop.ts';
import { type AskJournal, askJournal } from './journal.ts';
import { readCallState, readJournalQuestion } from './wire/callRecord.ts';

const QUESTION: AskJournal = {
  id: 'a',
  attempt: 2,
  signal: new AbortController().signal,
  timeoutMs: 1_000,
  maxAnswerBytes: 1_000,
};

/** A dispatcher that does as it is told, and keeps what it was asked. */
function scripted(act: (handler: HopHandler, controller: Parameters<HopHandler['onRequestStart']>[0]) => void) {
  const requests: HopRequest[] = [];
  let aborted = 0;
  const controller = { abort: () => void aborted++, pause: () => {}, resume: () => {} };
  return {
    requests,
    aborted: () => aborted,
    dispatcher: {
      dispatch(request: HopRequest, handler: HopHandler) {
        requests.push(request);
        act(handler, controller);
        return true;
      },
    },
  };
}
const answering = (status: number, body: string) =>
  scripted((handler, controller) => {
    handler.onRequestStart(controller);
    handler.onResponseStart(controller, status, {});
    for (let at = 0; at < body.length; at += 7) handler.onResponseData(controller, Buffer.from(body.slice(at, at + 7)));
    handler.onResponseEnd();
  });

describe('askJournal', () => {
  test('sends one question, with what was asked for', async () => {
    const hop = answering(200, '{"state":"fenced"}');
    const asked = { ...QUESTION, fence: true, end: 'stop', waitMs: 5, notAfter: 9 } as const;
    expect(await askJournal(hop, asked)).toEqual({ ok: true, call: { state: 'fenced' } });
    expect(hop.requests).toHaveLength(1);
    expect(hop.requests[0]).toMatchObject({ path: '/calls', method: 'POST', idempotent: false });
    expect(readJournalQuestion(JSON.parse(hop.requests[0]?.body ?? ''))).toEqual({
      id: 'a',
      attempt: 2,
      fence: true,
      stop: true,
      cancel: false,
      waitMs: 5,
      notAfter: 9,
    });
  });

  test.each([
    ['no JSON', 200, 'no', true],
    ['another state', 200, '{"state":"lost"}', true],
    ['done without an outcome', 200, '{"state":"done"}', true],
    ['a refusal', 503, '{"problem":"it cannot be written down"}', true],
    ['a state with another status', 500, '{"state":"fenced"}', true],
    ['more than is read', 200, `{"state":"fenced","x":"${'x'.repeat(2_000)}"}`, true],
  ])('[I9] %s is no answer', async (_name, status, body, sent) => {
    const answer = await askJournal(answering(status, body), QUESTION);
    expect(answer).toMatchObject({ ok: false, sent });
  });

  test('tells whether it was sent', async () => {
    const refused = scripted((handler) => handler.onResponseError(undefined, new Error('ECONNREFUSED')));
    expect(await askJournal(refused, QUESTION)).toEqual({ ok: false, sent: false, problem: 'ECONNREFUSED' });
    const broken = scripted((handler, controller) => {
      handler.onRequestStart(controller);
      handler.onResponseError(undefined, new Error('ECONNRESET'));
    });
    expect(await askJournal(broken, QUESTION)).toEqual({ ok: false, sent: true, problem: 'ECONNRESET' });
  });

  test('gives up when its time is over or its caller has gone', async () => {
    const silent = () => scripted((handler, controller) => handler.onRequestStart(controller));
    const late = silent();
    expect(await askJournal(late, { ...QUESTION, timeoutMs: 10 })).toMatchObject({ ok: false, sent: true });
    expect(late.aborted()).toBe(1);
    const gone = new AbortController();
    const left = silent();
    const asked = askJournal(left, { ...QUESTION, signal: gone.signal });
    gone.abort();
    expect(await asked).toMatchObject({ ok: false, problem: 'given up' });
    expect(left.aborted()).toBe(1);
    const none = silent();
    expect(await askJournal(none, { ...QUESTION, signal: gone.signal })).toMatchObject({ ok: false, sent: false });
    expect(none.requests).toEqual([]);
  });
});

test.each([
  [{ kind: 'result', result: { content: [] } }],
  [{ kind: 'result', lost: true, isError: true }],
  [{ kind: 'error', error: { code: 1, message: 'm', data: 2 } }],
  [{ kind: 'error', lost: true }],
  [{ kind: 'unknown', reason: 'timeout' }],
  [{ kind: 'not-started', reason: 'busy' }],
  [{ kind: 'stopped' }],
])('an outcome is read as it was written: %j', (outcome) => {
  expect(readCallState({ state: 'done', outcome })).toEqual({ state: 'done', outcome });
});

test.each([{}, { kind: 'result' }, { kind: 'error', error: {} }, { kind: 'unknown' }, { kind: 'odd' }, [], null])(
  '[I9] no outcome: %j',
  (outcome) => {
    expect(readCallState({ state: 'done', outcome })).toBeUndefined();
  },
);
