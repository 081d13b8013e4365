import { describe, expect, it } from 'vitest';
import { lines } from './lines.ts';

async function collect(chunks: readonly (string | Uint8Array)[], maxBytes = 1000): Promise<string[]> {
  async function* source() {
    for (const chunk of chunks) yield typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
  }
  const all: string[] = [];
  for await (const line of lines(source(), maxBytes)) all.push(line);
  return all;
}

describe('lines', () => {
  it('joins a line from several chunks and splits a chunk of several lines', async () => {
    expect(await collect(['{"a"', ':1}\n{"b":2}\n{"c"', ':3}', '\n'])).toEqual(['{"a":1}', '{"b":2}', '{"c":3}']);
  });

  it('keeps a character whose bytes are in two chunks', async () => {
    const bytes = Buffer.from('"é€😀"\n');
    const chunks = [...bytes].map((byte) => Uint8Array.of(byte));
    expect(await collect(chunks)).toEqual(['"é€😀"']);
  });

  it('drops a last line without its end, and empty lines', async () => {
    expect(await collect(['\n\r\n{"a":1}\n{"b":', '2}'])).toEqual(['{"a":1}']);
  });

  it('refuses a line over the limit before it is whole', async () => {
    await expect(collect(['x'.repeat(600), 'x'.repeat(600)])).rejects.toMatchObject({
      code: 'malformed',
      reason: 'LineTooLong',
    });
    expect(await collect([`${'x'.repeat(1000)}\n`, `${'y'.repeat(1000)}\n`])).toHaveLength(2);
  });
});
