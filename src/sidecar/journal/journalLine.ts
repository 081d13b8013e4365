/**
 * Lines of the journal's file: eight hex digits of a CRC-32, a space, JSON, a newline. What is torn anywhere does not match
 * its sum, and counts as never written. Pure.
 */
import { crc32 } from 'node:zlib';
import { readCallKey, readTime } from '../../mcp/wire/callOrders.ts';
import { type CallEnd, readCallEnd } from '../../mcp/wire/callRecord.ts';
import { isObject } from '../../mcp/wire/jsonrpc.ts';

interface Attempt {
  readonly id: string;
  readonly attempt: number;
  readonly at: number;
  readonly notAfter: number;
}

export type JournalLine =
  /** The first one. Attempts whose `notAfter` is not after `horizon` may have been forgotten. */
  | { readonly line: 'journal'; readonly version: 1; readonly horizon: number }
  /** `synced`: so many bytes before it were surely on the disk when it was written. */
  | ({ readonly line: 'run' | 'fence'; readonly synced: number } & Attempt)
  | ({ readonly line: 'done'; readonly end: CallEnd } & Attempt);

const SUM_CHARS = 8;

export function encodeLine(line: JournalLine): Buffer {
  const json = Buffer.from(JSON.stringify(line));
  return Buffer.concat([Buffer.from(`${sum(json)} `), json, Buffer.from('\n')]);
}

/** @param bytes without the newline */
export function decodeLine(bytes: Buffer): JournalLine | undefined {
  const json = bytes.subarray(SUM_CHARS + 1);
  if (bytes[SUM_CHARS] !== 0x20 || bytes.toString('latin1', 0, SUM_CHARS) !== sum(json)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(json.toString('utf8'));
  } catch {
    return undefined;
  }
  return isObject(value) ? readLine(value) : undefined;
}

function readLine(value: Readonly<Record<string, unknown>>): JournalLine | undefined {
  const { line } = value;
  if (line === 'journal') {
    const horizon = value['horizon'];
    return value['version'] === 1 && Number.isSafeInteger(horizon)
      ? { line, version: 1, horizon: Number(horizon) }
      : undefined;
  }
  const key = readCallKey(value);
  const at = readTime(value['at']);
  const notAfter = readTime(value['notAfter']);
  if (key === undefined || at === undefined || notAfter === undefined) return undefined;
  if (line === 'run' || line === 'fence') {
    const { synced } = value;
    return Number.isSafeInteger(synced) ? { line, ...key, at, notAfter, synced: Number(synced) } : undefined;
  }
  const end = line === 'done' ? readCallEnd(value['end']) : undefined;
  return end === undefined ? undefined : { line: 'done', ...key, at, notAfter, end };
}

function sum(json: Buffer): string {
  return crc32(json).toString(16).padStart(SUM_CHARS, '0');
}
