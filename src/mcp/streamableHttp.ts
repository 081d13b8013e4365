/**
 * The client's side of Streamable HTTP towards a remote server, both eras: one message a POST, an answer as JSON or as an
 * event stream with notices before it, the older era's event stream of a session and its end. Every message is sent at
 * most once. Knows no session, era or policy: headers are the caller's.
 */
import { type HttpEnd, type HttpHead, type RemoteServer, runExchange } from './streamableHttpExchange.ts';
import { outcomeOf, type RemoteOutcome } from './streamableHttpOutcome.ts';
import { encodeRequest, type JsonObject, parseMessage, type RpcMessage, type RpcRequest } from './wire/jsonrpc.ts';
import { createSseDecoder } from './wire/sse.ts';

/** Slows a stream down that says more than it was asked. */
export interface StreamGate {
  readonly add: (bytes: number) => void;
  readonly close: () => void;
}

export interface StreamReading {
  readonly maxAnswerBytes: number;
  readonly gate?: (pause: () => void, resume: () => void) => StreamGate;
  /** Takes out of a message's text what may go no further. */
  readonly redact?: (text: string) => string;
  readonly onNotification?: (method: string, params: JsonObject) => void;
  /** A question of the server's; answered by a message of its own, or not at all. */
  readonly onRequest?: (request: RpcRequest) => void;
}

export interface RemoteRequest extends StreamReading {
  readonly id: number;
  readonly method: string;
  readonly params: JsonObject;
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
  /** Milliseconds since 1970; nothing is sent later. */
  readonly sendBy?: number;
  readonly onHeader?: (header: (name: string) => string | undefined) => void;
}

/** A refusal is a sentence; what is longer is not read on. */
const MAX_REFUSAL_BYTES = 64 * 1024;
const POST_HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
const COMMON_HEADERS = { 'accept-encoding': 'identity' };

/** Sends one request and tells what came of it. Never throws, never sends twice. */
export async function sendRequest(server: RemoteServer, request: RemoteRequest): Promise<RemoteOutcome> {
  let answer: RemoteOutcome | undefined;
  let reader: AnswerReader | undefined;
  let tooLarge = false;
  const end = await runExchange(
    server,
    {
      method: 'POST',
      headers: { ...request.headers, ...COMMON_HEADERS, ...POST_HEADERS },
      body: encodeRequest(request.id, request.method, request.params),
      signal: request.signal,
      ...(request.timeoutMs === undefined ? {} : { timeoutMs: request.timeoutMs }),
      ...(request.sendBy === undefined ? {} : { sendBy: request.sendBy }),
    },
    {
      head(head) {
        request.onHeader?.(head.header);
        reader = readAnswer(head, request, (found) => {
          answer ??= found;
        });
      },
      data(chunk) {
        if (reader?.push(chunk) === false) tooLarge = true;
        return !tooLarge && answer === undefined;
      },
    },
  );
  reader?.close();
  // An answer that was read whole counts, however the stream ended.
  if (answer !== undefined) return answer;
  if (tooLarge) {
    const problem = `the answer is larger than ${request.maxAnswerBytes} bytes`;
    return { kind: 'unknown', reason: 'too-large', problem };
  }
  // A status that refuses is the answer, also where its body never ends.
  if (end.kind === 'ended' || (end.kind === 'lost' && reader?.refused === true)) return reader?.end() ?? lost();
  return outcomeOfEnd(end);
}

function outcomeOfEnd(end: Exclude<HttpEnd, { kind: 'ended' }>): RemoteOutcome {
  if (end.kind === 'lost') return { kind: 'unknown', reason: end.reason, problem: end.problem };
  return end.kind === 'stopped' ? lost() : end;
}

function lost(): RemoteOutcome {
  return { kind: 'unknown', reason: 'connection', problem: 'the answer broke off' };
}

interface AnswerReader {
  /** The status was another than 200. */
  readonly refused: boolean;
  /** False: over the limit. */
  readonly push: (chunk: Buffer) => boolean;
  /** What a response that ended says. */
  readonly end: () => RemoteOutcome;
  readonly close: () => void;
}

function readAnswer(head: HttpHead, request: RemoteRequest, onAnswer: (outcome: RemoteOutcome) => void): AnswerReader {
  const type = head.header('content-type')?.toLowerCase() ?? '';
  const coding = head.header('content-encoding');
  const plain = coding === undefined || coding === 'identity';
  if (head.status === 200 && plain && type.startsWith('text/event-stream')) {
    return readStream(head, request, (message) => {
      const outcome = outcomeOf({ status: 200, messages: [message] }, request.id);
      if (outcome.kind === 'result' || outcome.kind === 'error') onAnswer(outcome);
      // Of another id: an answer to nobody.
      return outcome.kind === 'unknown';
    });
  }
  const refused = head.status !== 200;
  const maxBytes = refused ? MAX_REFUSAL_BYTES : request.maxAnswerBytes;
  const chunks: Buffer[] = [];
  let size = 0;
  const end = (): RemoteOutcome => {
    const json = plain && size <= maxBytes && type.startsWith('application/json');
    const messages = json ? readMessages(Buffer.concat(chunks).toString('utf8'), request.redact) : [];
    return outcomeOf({ status: head.status, messages, retryAfter: head.header('retry-after') }, request.id);
  };
  return {
    refused,
    push(chunk) {
      size += chunk.length;
      if (size <= maxBytes) chunks.push(chunk);
      else if (refused) onAnswer(end());
      return size <= maxBytes || refused;
    },
    end,
    close() {},
  };
}

/**
 * Reads an event stream; `onResponse` gets what answers a request, and says whether it was noise.
 */
function readStream(
  head: HttpHead,
  reading: StreamReading,
  onResponse: (message: RpcMessage) => boolean,
): AnswerReader {
  const gate = reading.gate?.(head.pause, head.resume);
  let bytes = 0;
  const decoder = createSseDecoder(reading.maxAnswerBytes, (text) => {
    for (const message of readMessages(text, reading.redact)) {
      if (message.kind === 'result' || message.kind === 'error') {
        if (onResponse(message)) gate?.add(text.length);
        continue;
      }
      gate?.add(text.length);
      if (message.kind === 'request') reading.onRequest?.(message);
      else reading.onNotification?.(message.method, message.params ?? {});
    }
  });
  return {
    refused: false,
    push(chunk) {
      bytes += chunk.length;
      // No answer is that long: what comes now is something else.
      if (bytes > reading.maxAnswerBytes) gate?.add(chunk.length);
      return decoder.push(chunk);
    },
    end: () => ({ kind: 'unknown', reason: 'connection', problem: 'the stream ended without an answer' }),
    close: () => gate?.close(),
  };
}

/** The messages in a text; 2025-03-26 allowed several. What is none is left out. */
function readMessages(text: string, redact: ((text: string) => string) | undefined): readonly RpcMessage[] {
  let body: unknown;
  try {
    body = JSON.parse(redact === undefined ? text : redact(text));
  } catch {
    return [];
  }
  return (Array.isArray(body) ? body : [body]).flatMap((each) => {
    const parsed = parseMessage(each);
    return parsed.ok ? [parsed.message] : [];
  });
}

export interface RemoteMessage {
  /** The message as text, or undefined where the method says all. */
  readonly body?: string;
  readonly method: 'POST' | 'DELETE';
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

/** Sends what wants no answer. Resolves with the HTTP status, or undefined where none came. Never throws. */
export async function sendMessage(server: RemoteServer, message: RemoteMessage): Promise<number | undefined> {
  let status: number | undefined;
  const { body, method, signal, timeoutMs } = message;
  await runExchange(
    server,
    {
      method,
      headers: { ...message.headers, ...COMMON_HEADERS, ...POST_HEADERS },
      ...(body === undefined ? {} : { body }),
      signal,
      timeoutMs,
    },
    {
      head(head) {
        status = head.status;
      },
      // What it says beside its status is of no use.
      data: () => false,
    },
  );
  return status;
}

export interface RemoteStream extends StreamReading {
  readonly headers: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly onOpen?: () => void;
}

/** Reads the event stream of a session (GET) until it ends. Resolves with the status that refused it, or 200. */
export async function readEventStream(server: RemoteServer, stream: RemoteStream): Promise<number | undefined> {
  let status: number | undefined;
  let reader: AnswerReader | undefined;
  await runExchange(
    server,
    {
      method: 'GET',
      headers: { ...stream.headers, ...COMMON_HEADERS, accept: 'text/event-stream' },
      signal: stream.signal,
    },
    {
      head(head) {
        const streams = head.header('content-type')?.toLowerCase().startsWith('text/event-stream') === true;
        status = head.status === 200 && !streams ? 405 : head.status;
        if (status !== 200) return;
        reader = readStream(head, stream, () => true);
        stream.onOpen?.();
      },
      data: (chunk) => reader?.push(chunk) ?? false,
    },
  );
  reader?.close();
  return status;
}
