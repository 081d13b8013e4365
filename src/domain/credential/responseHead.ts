/**
 * The head of an upstream's answer, and how its body is framed. An answer that could be read in two ways is none: its
 * connection is dropped. Pure.
 */
import { type Field, splitLines } from './requestHead.ts';

export interface ResponseHead {
  readonly status: number;
  readonly minorVersion: 0 | 1;
  readonly fields: readonly Field[];
}

export type BodyFraming =
  | { readonly kind: 'none' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' }
  | { readonly kind: 'until-close' };

/** Fields of an answer that concern hops, or are not for a tool: who puts a secret in sets no cookies and sends nobody elsewhere. */
export const NOT_FOR_TOOLS: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'set-cookie',
  'set-cookie2',
  'alt-svc',
  'clear-site-data',
]);

const STATUS_LINE = /^HTTP\/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?$/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}):[\t ]*([\t\x20-\x7e\x80-\xff]*)$/;
const MAX_RESPONSE_HEADERS = 512;

/** @param bytes up to and with the empty line. @returns undefined for what is no such head */
export function parseResponseHead(bytes: Uint8Array): ResponseHead | undefined {
  const [first = '', ...rest] = splitLines(bytes) ?? [];
  const match = STATUS_LINE.exec(first);
  if (match === null || rest.length > MAX_RESPONSE_HEADERS) return undefined;
  const fields: Field[] = [];
  for (const line of rest) {
    const [, name, value] = FIELD.exec(line) ?? [];
    if (name === undefined || value === undefined) return undefined;
    fields.push([name, value.replace(/[\t ]+$/, '')]);
  }
  return { status: Number(match[2]), minorVersion: match[1] === '0' ? 0 : 1, fields };
}

/** RFC 9112, 6.3. @returns undefined for lengths that contradict each other, or that are none */
export function responseFraming(head: ResponseHead, method: string): BodyFraming | undefined {
  const lengths: string[] = [];
  const codings: string[] = [];
  for (const [name, value] of head.fields) {
    const lower = name.toLowerCase();
    if (lower === 'content-length') lengths.push(value);
    else if (lower === 'transfer-encoding') codings.push(value.toLowerCase());
  }
  const bytes = lengths.length === 0 ? undefined : readLength(lengths);
  if (bytes === null || (lengths.length > 0 && codings.length > 0)) return undefined;
  if (codings.length > 0 && (codings.length > 1 || codings[0] !== 'chunked' || head.minorVersion === 0))
    return undefined;
  if (method === 'HEAD' || head.status < 200 || head.status === 204 || head.status === 304) return { kind: 'none' };
  if (codings.length > 0) return { kind: 'chunked' };
  return bytes === undefined ? { kind: 'until-close' } : { kind: 'length', bytes };
}

/** The one length that is given; null for several, and for what is no number. */
export function readLength(values: readonly string[]): number | null {
  const [value = '', ...more] = values;
  return more.length === 0 && /^(?:0|[1-9][0-9]{0,14})$/.test(value) ? Number(value) : null;
}
