import { describe, expect, test } from 'vitest';
import { createSseDecoder, encodeEvent, KEEP_ALIVE } from './sse.ts';

function decode(chunks: readonly (string | Uint8Array)[], limit = 1_000): { seen: string[]; ok: boolean } {
  const seen: string[] = [];
  const decoder = createSseDecoder(limit, (data) => seen.push(data));
  const ok = chunks.every((chunk) => decoder.push(typeof chunk === 'string' ? Buffer.from(chunk) : chunk));
  return { seen, ok };
}

const STREAMS: [string, string, string[]][] = [
  ['one event', 'data: a\n\n', ['a']],
  ['no space after the colon', 'data:a\n\n', ['a']],
  ['only one space is dropped', 'data:  a\n\n', [' a']],
  ['several data lines', 'data: a\ndata: b\n\n', ['a\nb']],
  ['a type', 'event: message\ndata: a\n\n', ['a']],
  ['another type', 'event: ping\ndata: a\n\ndata: b\n\n', ['b']],
  ['comments, ids and junk', ': x\nid: 1\nretry: 5\nnonsense\ndata: a\n\n', ['a']],
  ['CRLF', 'data: a\r\n\r\ndata: b\r\n\r\n', ['a', 'b']],
  ['CR', 'data: a\r\rdata: b\r\r', ['a', 'b']],
  ['mixed', 'data: a\r\ndata: b\n\r\n', ['a\nb']],
  ['a BOM', '\ufeffdata: a\n\n', ['a']],
  ['no data', 'event: message\n\n', []],
  ['empty data', 'data\n\n', ['']],
  ['an event that does not end', 'data: a\n\ndata: b\n', ['a']],
  ['characters of several bytes', 'data: Grüße 🎉\n\n', ['Grüße 🎉']],
  ['what we encode', KEEP_ALIVE + encodeEvent('{"a":"b\\n"}'), ['{"a":"b\\n"}']],
];

describe('server-sent events', () => {
  test.each(STREAMS)('[case 26] %s, whole and split at every byte', (_, stream, expected) => {
    const bytes = Buffer.from(stream);
    expect(decode([bytes]).seen).toEqual(expected);
    for (let at = 1; at < bytes.length; at += 1) {
      expect(decode([bytes.subarray(0, at), bytes.subarray(at)]).seen).toEqual(expected);
    }
    expect(decode([...bytes].map((byte) => Uint8Array.of(byte))).seen).toEqual(expected);
  });

  test('an event over the limit is not given, and the stream is not to be read on', () => {
    const limit = 100;
    for (const stream of [`data: ${'x'.repeat(200)}`, `data: ${'x'.repeat(101)}\n\n`, 'data: xxxxxxxxx\n'.repeat(12)]) {
      expect(decode([stream], limit)).toEqual({ seen: [], ok: false });
      expect(
        decode(
          [...Buffer.from(stream)].map((byte) => Uint8Array.of(byte)),
          limit,
        ).seen,
      ).toEqual([]);
    }
    expect(decode([`data: ${'x'.repeat(90)}\n\n`.repeat(10)], limit).seen).toHaveLength(10);
  });
});
