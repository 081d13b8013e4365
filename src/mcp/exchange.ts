/**
 * The answer to one HTTP request: JSON where the answer is all there is to say, an event stream once something must be
 * said before it. Knows no method of the protocol; says nothing after the end, and never lets a slow reader hold memory.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Holding } from './heldBytes.ts';
import { encodeEvent, KEEP_ALIVE } from './wire/sse.ts';

export interface Exchange {
  /** Calls `then` once if the client goes away before the whole answer was written. */
  readonly onGone: (then: () => void) => void;
  /** Sends a message before the answer. False: the client takes no stream, is too slow, or is gone. */
  readonly notify: (json: string) => boolean;
  /** Sends the answer and ends. */
  readonly answer: (json: string, status?: number, headers?: Readonly<Record<string, string>>) => void;
  /** Ends a stream without an answer. */
  readonly end: () => void;
  /** Opens the event stream now: for streams that may be quiet for long. */
  readonly stream: () => void;
  /** Called every tick: comments on quiet streams, and hangs up on a reader who took nothing since the last tick. */
  readonly tick: () => void;
  readonly ended: () => boolean;
  /** Room in memory for what is to be answered. */
  readonly reserve: Holding['reserve'] | undefined;
}

/** Ticks in which a whole answer must be taken: one byte now and then is no reading. */
const MAX_ENDED_TICKS = 8;

const STREAM_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache, no-transform',
  'x-accel-buffering': 'no',
};

/** What the protocol asks clients to send, and nearly all do. */
const BOTH = 'application/json, text/event-stream';

/** Whether the client takes event streams, and whether it takes JSON (an absent Accept takes all). */
export function acceptance(accept: string | undefined): { readonly json: boolean; readonly stream: boolean } {
  if (accept === undefined || accept.includes('*/*')) return { json: true, stream: true };
  if (accept === BOTH) return { json: true, stream: true };
  const lower = accept.toLowerCase();
  return {
    json: lower.includes('application/json') || lower.includes('application/*'),
    stream: lower.includes('text/event-stream') || lower.includes('text/*'),
  };
}

/** `onEnd` is called once the response was written whole or given up. */
export function createExchange(
  req: IncomingMessage,
  res: ServerResponse,
  holding: Holding | undefined,
  onEnd: (exchange: Exchange) => void,
): Exchange {
  const takesStream = acceptance(req.headers.accept).stream;
  let streaming = false;
  let ended = false;
  let ticks = 0;
  let endedTicks = 0;
  let written = 0;
  let gone: (() => void) | undefined;

  const openStream = (): void => {
    if (streaming || ended) return;
    streaming = true;
    res.writeHead(200, STREAM_HEADERS);
    res.flushHeaders();
  };

  const exchange: Exchange = {
    onGone: (then) => {
      gone = then;
    },
    notify: (json) => {
      if (ended || !takesStream || res.writableNeedDrain) return false;
      openStream();
      res.write(encodeEvent(json));
      return true;
    },
    answer: (json, status = 200, headers = {}) => {
      if (ended) return;
      ended = true;
      holding?.add(json.length);
      if (streaming) {
        res.end(encodeEvent(json));
        return;
      }
      // As text, which node:http joins with the head into one write.
      const length = Buffer.byteLength(json, 'utf8');
      res.writeHead(status, { 'content-type': 'application/json', 'content-length': length, ...headers });
      res.end(json, 'utf8');
    },
    end: () => {
      if (ended) return;
      openStream();
      ended = true;
      res.end();
    },
    stream: openStream,
    tick: () => {
      ticks += 1;
      if (ended) endedTicks += 1;
      const bytes = req.socket.bytesWritten;
      const stuck = res.writableNeedDrain || (ended && !res.writableFinished);
      if ((stuck && bytes === written && ticks > 1) || endedTicks > MAX_ENDED_TICKS) {
        res.destroy();
        return;
      }
      written = bytes;
      if (ended || res.writableNeedDrain || !takesStream) return;
      // The first tick may come at once; a stream is opened for calls that already took a whole interval.
      if (!streaming && ticks > 1) openStream();
      if (streaming) res.write(KEEP_ALIVE);
    },
    ended: () => ended,
    reserve: holding?.reserve,
  };

  // Not once: it comes once by itself, and `once` costs a wrapper for each call.
  res.on('close', () => {
    const complete = res.writableFinished;
    ended = true;
    onEnd(exchange);
    if (!complete) gone?.();
  });
  return exchange;
}
