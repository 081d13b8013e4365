/**
 * Calls of gateways: each attempt reaches the tool at most once. What is recorded is on the disk before the tool sees it,
 * goes on when its gateway is gone, and is told to whoever asks; what is not recorded passes straight through.
 */
import type { Answer, Progress, ToolCall } from '../mcp/handler.ts';
import { type CallGrant, type CallKey, readCallOrders } from '../mcp/wire/callOrders.ts';
import type { CallEnd, CallState, JournalQuestion } from '../mcp/wire/callRecord.ts';
import { INVALID_PARAMS } from '../mcp/wire/errorCode.ts';
import { answerOf, answerOfEnd, endOf, failure, notStarted, type ServedTool } from './answers.ts';
import type { Journal } from './journal/journal.ts';
import { keyText } from './journal/journalIndex.ts';
import { isExpired, type SidecarCall } from './sidecarCall.ts';

export interface Calls {
  readonly call: (call: ToolCall) => Promise<Answer>;
  /** Undefined: what was asked for could not be written down. */
  readonly ask: (question: JournalQuestion, signal: AbortSignal) => Promise<CallState | undefined>;
}

export interface CallsTiming {
  /** For the disk to take what must be written before a call starts. */
  readonly recordMs: number;
  /** For it to take what came of a call, before that is answered all the same. */
  readonly finishMs: number;
}

/** Clocks of two nodes may differ by so much: a grant is held to be good for so much longer than it says. */
export const CLOCK_SKEW_MS = 2_000;
const TIMING: CallsTiming = { recordMs: 5_000, finishMs: 1_000 };
/** From the word to stop to the end of the call, which waits for no answer of the tool. */
const STOP_MS = 5_000;

interface Running {
  readonly stop: AbortController;
  stopped: 'stopped' | 'cancelled' | undefined;
  /** Of everybody who delivered it. */
  readonly progress: Set<(progress: Progress) => void>;
  readonly answer: Promise<Answer>;
  /** What came of it is with the journal. */
  readonly ended: Promise<void>;
}

export function createCalls(tool: Pick<ServedTool, 'call' | 'refusal'>, journal: Journal, times?: CallsTiming): Calls {
  const timing = times ?? TIMING;
  const running = new Map<string, Running>();
  const fencing = new Map<string, Promise<boolean>>();

  async function call(asked: ToolCall): Promise<Answer> {
    const read = readCallOrders(asked.meta);
    if (!read.ok) return failure(INVALID_PARAMS, read.problem);
    const { grant, definition, told } = read.orders;
    const ordered: SidecarCall = {
      ...asked,
      ...(definition === undefined ? {} : { definition }),
      told,
      ...(grant === undefined ? {} : { startBy: grant.notAfter + CLOCK_SKEW_MS }),
    };
    if (grant?.recorded !== true) return answerOf(await tool.call(ordered));
    const fence = fencing.get(keyText(grant));
    if (fence !== undefined && (await within(fence, timing.recordMs)) === undefined) return notStarted('journal');
    return deliver(ordered, grant);
  }

  /** Nothing is waited for between a look at what is known and what follows from it. */
  function deliver(asked: SidecarCall, grant: CallGrant): Promise<Answer> | Answer {
    const found = running.get(keyText(grant));
    if (found !== undefined) return join(found, asked);
    switch (journal.see(grant, grant.notAfter)) {
      case 'fenced':
        return notStarted('fenced');
      case 'done':
        return recall(grant).then(answerOfEnd);
      case 'forgotten':
        // One whose grant is still good is forgotten only where the journal cannot be trusted: then nothing is started.
        return isExpired(asked, Date.now())
          ? answerOfEnd({ kind: 'unknown', reason: 'forgotten' })
          : notStarted('journal');
      case 'running':
        return answerOfEnd({ kind: 'unknown', reason: 'process-ended' });
      case 'never-seen': {
        const refused = tool.refusal(asked);
        return refused === undefined ? join(start(asked, grant), asked) : answerOf(refused);
      }
    }
  }

  function join(call: Running, { progress, signal }: SidecarCall): Promise<Answer> {
    if (progress !== undefined) {
      call.progress.add(progress);
      signal.addEventListener('abort', () => call.progress.delete(progress), { once: true });
    }
    return call.answer;
  }

  function start(asked: SidecarCall, grant: CallGrant): Running {
    const key = keyText(grant);
    const answer = Promise.withResolvers<Answer>();
    const ended = Promise.withResolvers<void>();
    const call: Running = {
      stop: new AbortController(),
      stopped: undefined,
      progress: new Set(),
      answer: answer.promise,
      ended: ended.promise,
    };
    running.set(key, call);
    void (async () => {
      const came = await run(call, asked, grant);
      const written = journal.finish(grant, endOf(came));
      await within(written, timing.finishMs);
      answer.resolve(came);
      await written;
      running.delete(key);
      ended.resolve();
    })().catch((error) => {
      running.delete(key);
      answer.reject(error);
      ended.resolve();
    });
    return call;
  }

  async function run(call: Running, asked: SidecarCall, grant: CallGrant): Promise<Answer> {
    const recorded = await within(journal.begin(grant, grant.notAfter), timing.recordMs);
    if (recorded !== true) return notStarted('journal');
    if (call.stopped !== undefined) return answerOfEnd({ kind: 'stopped' });
    const { progress, ...rest } = asked;
    const tell = (said: Progress): void => {
      for (const each of call.progress) each(said);
    };
    const outcome = await tool.call({
      ...rest,
      // The gateway may be gone: whoever comes after it asks for what came of the call.
      signal: call.stop.signal,
      ...(progress === undefined ? {} : { progress: tell }),
    });
    if (outcome.kind === 'cancelled' && call.stopped !== undefined) {
      const end: CallEnd = call.stopped === 'stopped' ? { kind: 'stopped' } : { kind: 'unknown', reason: 'cancelled' };
      return answerOfEnd(end);
    }
    return answerOf(outcome);
  }

  async function ask(question: JournalQuestion, signal: AbortSignal): Promise<CallState | undefined> {
    const { stop, cancel, waitMs, notAfter } = question;
    const key = keyText(question);
    const found = running.get(key);
    if (found !== undefined && (stop || cancel)) {
      found.stopped ??= stop ? 'stopped' : 'cancelled';
      found.stop.abort(new Error('stopped'));
      await within(found.ended, STOP_MS, signal);
    } else if (found !== undefined && waitMs > 0) await within(found.ended, waitMs, signal);
    if (running.has(key)) return { state: 'running' };
    const wanted = question.fence || stop || cancel;
    if (wanted && journal.see(question, notAfter) === 'never-seen' && !(await fenceOff(question))) return undefined;
    const seen = journal.see(question, notAfter);
    switch (seen) {
      case 'done':
        return { state: 'done', outcome: await recall(question) };
      case 'forgotten':
        return { state: 'done', outcome: { kind: 'unknown', reason: 'forgotten' } };
      case 'running':
        return { state: 'done', outcome: { kind: 'unknown', reason: 'process-ended' } };
      default:
        return { state: seen };
    }
  }

  async function fenceOff(question: JournalQuestion): Promise<boolean> {
    const key = keyText(question);
    const writing = fencing.get(key) ?? journal.fence(question, question.notAfter).finally(() => fencing.delete(key));
    fencing.set(key, writing);
    return (await within(writing, timing.recordMs)) === true;
  }

  async function recall(key: CallKey): Promise<CallEnd> {
    return (await journal.end(key)) ?? { kind: 'unknown', reason: 'forgotten' };
  }

  return { call, ask };
}

/** What a promise came to, or undefined where the time was over first or nobody waits any more. */
async function within<T>(promise: Promise<T>, ms: number, signal?: AbortSignal): Promise<T | undefined> {
  const { promise: over, resolve } = Promise.withResolvers<undefined>();
  const giveUp = (): void => resolve(undefined);
  const timer = setTimeout(giveUp, ms);
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
  }
}
