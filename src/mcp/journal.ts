/**
 * The client of a sidecar's journal: what became of one attempt of a call, with a fence or a stop where that is asked for.
 * Asking twice does no more than asking once, so whoever asks may ask again. Sent once a question; never throws.
 */
import type { Holding, Reservation } from './heldBytes.ts';
import type { Hop, HopHandler } from './hop.ts';
import type { CallKey } from './wire/callOrders.ts';
import { type CallState, readCallState } from './wire/callRecord.ts';
import { isObject } from './wire/jsonrpc.ts';
import { MAX_ANSWER_DEPTH, parseJson } from './wire/jsonText.ts';

export interface AskJournal extends CallKey {
  /** Where it was never seen: make sure that it never will be. */
  readonly fence?: boolean;
  /** End it where it runs, as `stopped`, or as unknown for the reason `cancelled`. Where it was never seen, it is fenced. */
  readonly end?: 'stop' | 'cancel';
  /** How long the sidecar may wait for the end of what runs; at most a minute. */
  readonly waitMs?: number;
  /** The attempt's own, in milliseconds since 1970. */
  readonly notAfter?: number;
  readonly signal: AbortSignal;
  /** From now to the whole answer, waiting included. */
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
  /** Asks for room for a large answer: it is not read on before there is some. */
  readonly reserve?: Holding['reserve'];
}

export type JournalAnswer =
  | { readonly ok: true; readonly call: CallState }
  /** `sent`: what was asked for beside the answer may have been done. */
  | { readonly ok: false; readonly sent: boolean; readonly problem: string };

const PATH = '/calls';
const SMALL_ANSWER_BYTES = 64 * 1024;

export function askJournal(hop: Pick<Hop, 'dispatcher'>, question: AskJournal): Promise<JournalAnswer> {
  const { promise, resolve } = Promise.withResolvers<JournalAnswer>();
  const { id, attempt, fence = false, end, waitMs, notAfter, signal, timeoutMs, maxAnswerBytes } = question;
  let controller: Parameters<HopHandler['onRequestStart']>[0] | undefined;
  let room: Reservation | undefined;
  let sent = false;
  let settled = false;
  let status = 0;
  let size = 0;
  let chunks: Uint8Array[] = [];

  const settle = (answer: JournalAnswer): void => {
    if (settled) return;
    settled = true;
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
    room?.give();
    chunks = [];
    resolve(answer);
  };
  const fail = (problem: string): void => settle({ ok: false, sent, problem });
  const giveUp = (problem: string): void => {
    fail(problem);
    controller?.abort(new Error(problem));
  };
  const onAbort = (): void => giveUp('given up');
  const timer = setTimeout(() => giveUp(`no answer within ${timeoutMs} ms`), timeoutMs);
  if (signal.aborted) {
    onAbort();
    return promise;
  }
  signal.addEventListener('abort', onAbort, { once: true });

  const waitForRoom = (from: NonNullable<typeof controller>): void => {
    let granted = false;
    room = question.reserve?.(maxAnswerBytes, () => {
      granted = true;
      setImmediate(() => from.resume());
    });
    if (room !== undefined && !granted) from.pause();
  };
  const handler: HopHandler = {
    onRequestStart(started) {
      controller = started;
      if (settled) started.abort(new Error('given up'));
      else sent = true;
    },
    onResponseStart(_, code) {
      status = code;
    },
    onResponseData(from, chunk) {
      if (settled) return;
      size += chunk.length;
      chunks.push(chunk);
      if (size > maxAnswerBytes) giveUp(`the answer is larger than ${maxAnswerBytes} bytes`);
      else if (size > SMALL_ANSWER_BYTES && room === undefined) waitForRoom(from);
    },
    onResponseEnd() {
      const json = parseJson(Buffer.concat(chunks, size).toString('utf8'), MAX_ANSWER_DEPTH);
      const body = json.ok ? json.value : undefined;
      const call = status === 200 ? readCallState(body) : undefined;
      if (call !== undefined) settle({ ok: true, call });
      else fail(`HTTP status ${status}${problemIn(body)}`);
    },
    onResponseError: (_, error) => fail(error.message),
  };
  const asked = {
    id,
    attempt,
    fence,
    ...(end === undefined ? {} : { [end]: true }),
    ...(waitMs === undefined ? {} : { waitMs }),
    ...(notAfter === undefined ? {} : { notAfter }),
  };
  try {
    hop.dispatcher.dispatch(
      {
        path: PATH,
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json' },
        body: JSON.stringify(asked),
        idempotent: false,
      },
      handler,
    );
  } catch (error) {
    fail(error instanceof Error ? error.message : 'dispatch failed');
  }
  return promise;
}

function problemIn(body: unknown): string {
  const problem = isObject(body) ? body['problem'] : undefined;
  return typeof problem === 'string' ? `: ${problem.slice(0, 200)}` : '';
}
