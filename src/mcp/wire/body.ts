/**
 * Reads one request body: JSON in UTF-8, bounded, once. What another reader might take for another text (a charset, a
 * BOM, UTF-16, broken UTF-8) is refused, so that what is judged is what is passed on.
 */
import type { IncomingMessage } from 'node:http';
import { parseJson } from './jsonText.ts';

export const DEFAULT_MAX_BODY_BYTES = 4 * 1024 * 1024;

export type Body =
  /** `inexact`: a number in it that would be passed on as another one. */
  | { readonly ok: true; readonly value: unknown; readonly inexact: string | undefined }
  | { readonly ok: false; readonly status: 400 | 408 | 413 | 415 | 503; readonly problem: string };

const tooMuch: Body = { ok: false, status: 503, problem: 'too much is read and written for this caller' };
const CONTENT_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*(?:utf-8|"utf-8")[ \t]*)?$/i;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Whether a body of this type is JSON in UTF-8: `application/json`, alone or with that charset. */
export function isJsonType(contentType: string | undefined): boolean {
  return contentType === 'application/json' || (contentType !== undefined && CONTENT_TYPE.test(contentType));
}

/** The JSON value of these bytes. */
export function parseBody(bytes: Uint8Array): Body {
  let text: string;
  try {
    text = utf8.decode(bytes);
  } catch {
    return { ok: false, status: 400, problem: 'the body is not UTF-8' };
  }
  const parsed = parseJson(text);
  return parsed.ok ? parsed : { ok: false, status: 400, problem: `the body is ${parsed.problem}` };
}

/**
 * The JSON body of a request: at most `maxBytes`, complete within `timeoutMs`. Memory grows with what came, not with
 * what Content-Length claims, and `hold` may refuse a part of it. The rest of a body that is refused is not read: the caller closes the connection.
 */
export function readBody(
  req: IncomingMessage,
  maxBytes: number,
  timeoutMs: number,
  hold: (bytes: number) => boolean = () => true,
): Body | Promise<Body> {
  const { headers } = req;
  if (!isJsonType(headers['content-type'])) {
    return { ok: false, status: 415, problem: 'Content-Type must be application/json' };
  }
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') {
    return { ok: false, status: 415, problem: 'Content-Encoding is not supported' };
  }
  const tooLarge: Body = { ok: false, status: 413, problem: `the body is larger than ${maxBytes} bytes` };
  if (Number(headers['content-length'] ?? 0) > maxBytes) return tooLarge;
  if (isHere(req)) {
    const length = req.readableLength;
    if (length > maxBytes) return tooLarge;
    if (!hold(length)) return tooMuch;
    const whole: unknown = req.read();
    // So that it ends, which node:http waits for.
    req.resume();
    return parseBody(whole instanceof Uint8Array ? whole : new Uint8Array(0));
  }

  const { promise, resolve } = Promise.withResolvers<Body>();
  const chunks: Buffer[] = [];
  let size = 0;
  const finish = (body: Body): void => {
    clearTimeout(timer);
    req.off('data', onData).off('end', onEnd).off('close', onClose).off('error', onClose);
    if (!body.ok) req.pause();
    resolve(body);
  };
  const onData = (chunk: Buffer): void => {
    size += chunk.length;
    if (size > maxBytes) finish(tooLarge);
    else if (hold(chunk.length)) chunks.push(chunk);
    else finish(tooMuch);
  };
  const onEnd = (): void => {
    const [first] = chunks;
    finish(parseBody(first !== undefined && chunks.length === 1 ? first : Buffer.concat(chunks, size)));
  };
  const onClose = (): void => finish({ ok: false, status: 400, problem: 'the body ended early' });
  const timer = setTimeout(() => finish({ ok: false, status: 408, problem: 'the body came too slowly' }), timeoutMs);
  req.on('data', onData).on('end', onEnd).on('close', onClose).on('error', onClose);
  return promise;
}

/** Whether all of the body came with its head, as small ones do: then there is nothing to wait for. */
function isHere(req: IncomingMessage): boolean {
  if (req.complete) return true;
  // All that was announced was read, and the parser takes no more than that; that it was the end is told a moment later.
  const { headers } = req;
  return headers['transfer-encoding'] === undefined && headers['content-length'] === String(req.readableLength);
}
