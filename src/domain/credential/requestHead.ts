/**
 * The head of an HTTP/1.1 request, read in one exact form: what is accepted writes out again as the same bytes, so nobody
 * after us can read it otherwise. Stricter than RFC 9112 on purpose: refused, never repaired. Pure.
 */

export type Field = readonly [name: string, value: string];

export interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly minorVersion: 0 | 1;
  /** In order and in the sender's case; values are latin1, one character a byte. */
  readonly fields: readonly Field[];
}

export type HeadProblem =
  | 'bad-line-ends'
  | 'bad-request-line'
  | 'target-too-long'
  | 'bad-header'
  | 'too-many-headers'
  | 'unsupported-version';

export type HeadReading<Head> =
  | { readonly ok: true; readonly head: Head }
  | { readonly ok: false; readonly problem: HeadProblem };

export const MAX_HEADERS = 128;
export const MAX_TARGET_LENGTH = 8_192;

const REQUEST_LINE = /^([A-Z][A-Z-]{0,23}) ([\x21-\x7e]+) HTTP\/1\.([01])$/;
const FIELD_NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}$/;
const FIELD_VALUE = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/;

/** @param bytes up to and with the empty line */
export function parseRequestHead(bytes: Uint8Array): HeadReading<RequestHead> {
  const lines = splitLines(bytes);
  if (lines === undefined) return { ok: false, problem: 'bad-line-ends' };
  const [first = '', ...rest] = lines;
  const match = REQUEST_LINE.exec(first);
  if (match === null) {
    const other = / HTTP\/(?!1\.[01]$)[0-9.]+$/.test(first);
    return { ok: false, problem: other ? 'unsupported-version' : 'bad-request-line' };
  }
  const [, method = '', target = '', minor] = match;
  if (target.length > MAX_TARGET_LENGTH) return { ok: false, problem: 'target-too-long' };
  if (rest.length > MAX_HEADERS) return { ok: false, problem: 'too-many-headers' };
  const fields: Field[] = [];
  for (const line of rest) {
    const field = parseField(line);
    if (field === undefined) return { ok: false, problem: 'bad-header' };
    fields.push(field);
  }
  return { ok: true, head: { method, target, minorVersion: minor === '0' ? 0 : 1, fields } };
}

export function writeRequestHead(head: RequestHead): Buffer {
  const lines = head.fields.map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.from(`${head.method} ${head.target} HTTP/1.${head.minorVersion}\r\n${lines.join('')}\r\n`, 'latin1');
}

/** The values of a header, whatever the case of its name. */
export function valuesOf(fields: readonly Field[], name: string): readonly string[] {
  return fields.filter(([each]) => each.toLowerCase() === name).map(([, value]) => value);
}

/** Lines without their ends; undefined where a line ends in anything but CRLF, or a NUL is in one. */
export function splitLines(bytes: Uint8Array): string[] | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
  if (!text.endsWith('\r\n\r\n')) return undefined;
  const lines = text.slice(0, -4).split('\r\n');
  return lines.some((line) => /[\0\r\n]/.test(line)) ? undefined : lines;
}

function parseField(line: string): Field | undefined {
  const colon = line.indexOf(': ');
  const name = line.slice(0, Math.max(0, colon));
  const value = line.slice(colon + 2);
  return colon > 0 && FIELD_NAME.test(name) && FIELD_VALUE.test(value) ? [name, value] : undefined;
}
