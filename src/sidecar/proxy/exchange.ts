/**
 * One request and its answer between the tool and a host. The request was decided on and is written anew from its checked
 * parts; its body is looked through on its way; the answer goes back with every secret masked. Redirects are answers.
 */
import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Injection } from '../../domain/credential/decideInjection.ts';
import { BODY_ENCODINGS, type BodyEncoding, type RequestDecision } from '../../domain/credential/decideRequest.ts';
import { type Field, valuesOf, writeRequestHead } from '../../domain/credential/requestHead.ts';
import {
  type BodyFraming,
  NOT_FOR_TOOLS,
  parseResponseHead,
  type ResponseHead,
  responseFraming,
} from '../../domain/credential/responseHead.ts';
import { createRedactor, masked } from '../../domain/credential/search.ts';
import { type ByteReader, writeAll } from './byteReader.ts';
import { createDecompressor } from './decompress.ts';
import { joinStreams } from './joinStreams.ts';
import type { ProxyLimits } from './limits.ts';
import { BodyError, readBody } from './readBody.ts';
import { answerRefusal, type ProxyRefusal } from './refusal.ts';
import type { Upstream } from './upstream.ts';

export interface Exchange {
  readonly client: Duplex;
  readonly clientReader: ByteReader;
  readonly upstream: Upstream;
  readonly method: string;
  /** What is sent: secrets are in it. */
  readonly target: string;
  readonly fields: readonly Field[];
  readonly authority: string;
  readonly request: Extract<RequestDecision, { do: 'send' }>;
  readonly injection: Injection;
  readonly limits: ProxyLimits;
}

export type ExchangeEnd =
  /** Both connections can carry another. */
  | { readonly kind: 'again' }
  /** Answered, and at least one connection is at its end. */
  | { readonly kind: 'done' }
  /** The tool was told why not, or hung up on in the middle of an answer. */
  | { readonly kind: 'refused'; readonly refusal: ProxyRefusal }
  /** The host had closed a connection that was used before: for the tool as if there were no proxy. */
  | { readonly kind: 'stale' };

/** Bodies up to this are read and judged whole, before the host hears of the request. */
const WHOLE_BODY_BYTES = 64 * 1024;
const MAX_INTERIM_ANSWERS = 16;
/** The length is written anew. */
const NOT_RETURNED: ReadonlySet<string> = new Set([...NOT_FOR_TOOLS, 'content-length']);

class RequestBodyRefused extends Error {
  readonly refusal: ProxyRefusal;

  constructor(refusal: ProxyRefusal) {
    super(refusal);
    this.refusal = refusal;
  }
}

export async function runExchange(exchange: Exchange, reused: boolean): Promise<ExchangeEnd> {
  const { client, upstream, limits, request } = exchange;
  let bodyRefusal: ProxyRefusal | undefined;
  let sent = false;
  const sending = sendRequest(exchange).then(
    () => {
      sent = true;
    },
    (error) => {
      if (error instanceof RequestBodyRefused) bodyRefusal = error.refusal;
      else if (error instanceof BodyError) bodyRefusal = error.problem === 'too-large' ? 'body-too-large' : 'bad-body';
      // Nothing half said may look whole to the host.
      upstream.stream.destroy();
    },
  );
  const failed = (refusal: ProxyRefusal): ExchangeEnd => {
    upstream.stream.destroy();
    answerRefusal(client, bodyRefusal ?? refusal);
    return { kind: 'refused', refusal: bodyRefusal ?? refusal };
  };

  const head = await readResponseHead(upstream.reader, limits, request.websocket);
  if (head === 'end') {
    await sending;
    return reused && bodyRefusal === undefined ? { kind: 'stale' } : failed('upstream-bad-answer');
  }
  if (head === 'bad') return failed('upstream-bad-answer');
  if (head.status === 101) return openWebSocket(exchange, head);
  const framing = responseFraming(head, exchange.method);
  const encoding = readEncoding(head, framing);
  if (framing === undefined || encoding === 'unknown') return failed('upstream-bad-answer');

  const again =
    request.keepAlive &&
    !request.websocket &&
    framing.kind !== 'until-close' &&
    head.minorVersion === 1 &&
    !/(?:^|[, \t])close(?:$|[, \t])/i.test(valuesOf(head.fields, 'connection').join(','));
  try {
    await returnAnswer(exchange, head, framing, encoding, again);
  } catch {
    // Part of the answer is out: only a broken connection says that the rest is missing.
    client.destroy();
    upstream.stream.destroy();
    return { kind: 'refused', refusal: bodyRefusal ?? 'upstream-bad-answer' };
  }
  // An answer may come before the request has ended; then neither connection is of use afterwards.
  return again && sent && !upstream.reader.ahead() ? { kind: 'again' } : { kind: 'done' };
}

async function sendRequest(exchange: Exchange): Promise<void> {
  const { request, clientReader, upstream, limits } = exchange;
  const { framing } = request;
  const head = writeRequestHead({
    method: exchange.method,
    target: exchange.target,
    minorVersion: 1,
    fields: [
      ['Host', exchange.authority],
      ...exchange.fields,
      // What is compressed cannot be looked through as it passes.
      ['Accept-Encoding', 'identity'],
      ...(framing.kind === 'length' ? [['Content-Length', String(framing.bytes)] as const] : []),
      ...(framing.kind === 'chunked' ? [['Transfer-Encoding', 'chunked'] as const] : []),
      ...(request.websocket ? ([['Connection', 'Upgrade'] as const, ['Upgrade', 'websocket'] as const] as const) : []),
    ],
  });
  const send = async (bytes: Uint8Array): Promise<void> => {
    if (!(await writeAll(upstream.stream, bytes, limits.responseIdleMs))) throw new Error('the host takes no more');
  };
  const parts = checkedBody(exchange);
  if (request.expectsContinue)
    await writeAll(exchange.client, 'HTTP/1.1 100 Continue\r\n\r\n', limits.requestBodyIdleMs);
  if (framing.kind === 'none') return send(head);
  if (framing.kind === 'length' && framing.bytes <= WHOLE_BODY_BYTES) {
    const whole: Buffer[] = [head];
    for await (const part of parts) whole.push(part);
    return send(Buffer.concat(whole));
  }
  await send(head);
  for await (const part of parts) await send(framing.kind === 'chunked' ? chunk(part) : part);
  if (framing.kind === 'chunked') await send(Buffer.from('0\r\n\r\n'));

  async function* checkedBody({ injection }: Exchange): AsyncGenerator<Buffer> {
    const placeholders = createRedactor(injection.placeholders);
    const secrets = createRedactor(injection.secrets);
    const look = (bytes: Buffer): Buffer => {
      const clean = placeholders.push(bytes);
      secrets.push(bytes);
      if (placeholders.found() > 0) throw new RequestBodyRefused('placeholder-out-of-place');
      if (secrets.found() > 0) throw new RequestBodyRefused('secret-in-request');
      return clean;
    };
    const body = readBody(clientReader, framing, {
      maxBytes: limits.maxRequestBodyBytes,
      idleMs: limits.requestBodyIdleMs,
      trailers: 'refuse',
    });
    if (request.encoding === undefined) {
      for await (const part of body) {
        const clean = look(part);
        if (clean.length > 0) yield clean;
      }
      const rest = placeholders.end();
      if (rest.length > 0) yield rest;
      return;
    }
    // Looked through decompressed, sent on as it came.
    const decompressor = createDecompressor(request.encoding, limits.maxRequestBodyBytes);
    try {
      for await (const part of body) {
        for (const plain of await decompressor.push(part)) look(plain);
        yield part;
      }
      for (const plain of await decompressor.end()) look(plain);
    } finally {
      decompressor.close();
    }
  }
}

/** Interim answers are for hops; 101 is one that was asked for, or none. */
async function readResponseHead(
  reader: ByteReader,
  limits: ProxyLimits,
  websocket: boolean,
): Promise<ResponseHead | 'end' | 'bad'> {
  for (let interim = 0; interim <= MAX_INTERIM_ANSWERS; interim++) {
    const outcome = await reader.readHead({
      maxBytes: limits.maxResponseHeadBytes,
      idleMs: limits.responseIdleMs,
      headMs: limits.headMs,
    });
    if (outcome.kind === 'end') return interim === 0 ? 'end' : 'bad';
    const head = outcome.kind === 'head' ? parseResponseHead(outcome.bytes) : undefined;
    if (head === undefined) return 'bad';
    if (head.status === 101) {
      return websocket && valuesOf(head.fields, 'upgrade').join().toLowerCase() === 'websocket' ? head : 'bad';
    }
    if (head.status >= 200) return head;
  }
  return 'bad';
}

function readEncoding(head: ResponseHead, framing: BodyFraming | undefined): BodyEncoding | undefined | 'unknown' {
  const codings = valuesOf(head.fields, 'content-encoding').join(',').toLowerCase().trim();
  if (codings === '' || codings === 'identity' || framing?.kind === 'none') return undefined;
  return BODY_ENCODINGS.find((each) => each === codings || (each === 'gzip' && codings === 'x-gzip')) ?? 'unknown';
}

async function returnAnswer(
  exchange: Exchange,
  head: ResponseHead,
  framing: BodyFraming,
  encoding: BodyEncoding | undefined,
  again: boolean,
): Promise<void> {
  const { client, upstream, limits, injection } = exchange;
  // Masks are as long as what they stand for, so a length stays what it was.
  const sized = framing.kind === 'length' && encoding === undefined;
  const chunked = framing.kind !== 'none' && !sized;
  const length = sized ? framing.bytes : undefined;
  const lines = [
    ...returnedFields(head, injection, encoding !== undefined),
    ...(length === undefined ? headLength(exchange.method, head) : [`Content-Length: ${length}`]),
    ...(chunked ? ['Transfer-Encoding: chunked'] : []),
    ...(again ? [] : ['Connection: close']),
  ];
  const send = async (bytes: Buffer): Promise<void> => {
    if (!(await writeAll(client, bytes, limits.responseIdleMs))) throw new Error('the tool takes no more');
  };
  let pending = Buffer.from(`${statusLine(head.status)}${lines.join('\r\n')}\r\n\r\n`, 'latin1');
  const put = async (bytes: Buffer): Promise<void> => {
    if (bytes.length === 0) return;
    const framed = chunked ? chunk(bytes) : bytes;
    await send(pending.length === 0 ? framed : Buffer.concat([pending, framed]));
    pending = Buffer.alloc(0);
  };
  // The head waits for a body that is here already, and for no other: an event stream may be silent for long.
  if (framing.kind === 'none' || !upstream.reader.ahead()) {
    await send(pending);
    pending = Buffer.alloc(0);
  }
  const events = /^text\/event-stream\b/i.test(valuesOf(head.fields, 'content-type')[0] ?? '');
  const redactor = createRedactor(injection.secrets, events);
  const decompressor = encoding === undefined ? undefined : createDecompressor(encoding, limits.maxResponseBodyBytes);
  try {
    const body = readBody(upstream.reader, framing, {
      maxBytes: limits.maxResponseBodyBytes,
      idleMs: limits.responseIdleMs,
      trailers: 'drop',
    });
    for await (const part of body) {
      const plain = decompressor === undefined ? [part] : await decompressor.push(part);
      for (const each of plain) await put(redactor.push(each));
    }
    for (const each of (await decompressor?.end()) ?? []) await put(redactor.push(each));
    await put(redactor.end());
  } finally {
    decompressor?.close();
  }
  const last = Buffer.concat([pending, chunked ? Buffer.from('0\r\n\r\n') : Buffer.alloc(0)]);
  if (last.length > 0) await send(last);
}

async function openWebSocket(exchange: Exchange, head: ResponseHead): Promise<ExchangeEnd> {
  const { client, clientReader, upstream, limits, injection } = exchange;
  const lines = [...returnedFields(head, injection, false), 'Connection: Upgrade', 'Upgrade: websocket'];
  await writeAll(client, `${statusLine(101)}${lines.join('\r\n')}\r\n\r\n`, limits.responseIdleMs);
  clientReader.release();
  upstream.reader.release();
  await joinStreams(client, upstream.stream, limits.tunnelIdleMs);
  return { kind: 'done' };
}

function returnedFields(head: ResponseHead, injection: Injection, decompressed: boolean): string[] {
  const named = valuesOf(head.fields, 'connection').flatMap((value) => value.toLowerCase().split(/[, \t]+/));
  const dropped = new Set([...NOT_RETURNED, ...named, ...(decompressed ? ['content-encoding', 'content-md5'] : [])]);
  const lines = head.fields
    .filter(([name]) => !dropped.has(name.toLowerCase()))
    .map(([name, value]) => `${name}: ${value}`);
  // Together, which is cheaper: no form of a value holds the end of a line.
  return lines.length === 0 ? [] : masked(lines.join('\r\n'), injection.secrets).split('\r\n');
}

/** The length that a body would have had. */
function headLength(method: string, head: ResponseHead): string[] {
  const [length] = method === 'HEAD' ? valuesOf(head.fields, 'content-length') : [];
  return length === undefined ? [] : [`Content-Length: ${length}`];
}

/** The host's own words for a status are dropped: they say nothing that the number does not, or too much. */
function statusLine(status: number): string {
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`;
}

function chunk(bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]);
}
