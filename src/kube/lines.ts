import { ApiError } from '../engine/api-error.ts';

/**
 * Splits a stream of bytes into lines, whatever the chunks' borders (also within a character). Empty lines are left
 * out; what follows the last newline is dropped, since a watch event is whole only with it. Throws `malformed` as soon as a
 * line is longer than `maxBytes`, before it is held whole.
 */
export async function* lines(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<string> {
  let parts: Uint8Array[] = [];
  let held = 0;
  for await (const chunk of chunks) {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      held += end - start;
      if (held > maxBytes) throw tooLong(maxBytes);
      parts.push(chunk.subarray(start, end));
      const line = Buffer.concat(parts).toString('utf8');
      parts = [];
      held = 0;
      start = end + 1;
      if (line.trim() !== '') yield line;
    }
    if (start < chunk.length) {
      held += chunk.length - start;
      if (held > maxBytes) throw tooLong(maxBytes);
      parts.push(chunk.subarray(start));
    }
  }
}

function tooLong(maxBytes: number): ApiError {
  return new ApiError('malformed', `An event of a watch is longer than ${maxBytes} bytes.`, { reason: 'LineTooLong' });
}
