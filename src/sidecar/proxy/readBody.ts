/** The parts of a message's body, by its framing; strict about chunks, since a lenient reader is what smuggling needs. */
import type { BodyFraming } from '../../domain/credential/responseHead.ts';
import type { ByteReader } from './byteReader.ts';

export type BodyProblem = 'cut-off' | 'bad-chunk' | 'trailers' | 'too-large';

export class BodyError extends Error {
  readonly code = 'OZ0_BODY';
  readonly problem: BodyProblem;

  constructor(problem: BodyProblem) {
    super(`body: ${problem}`);
    this.problem = problem;
  }
}

export interface BodyLimits {
  readonly maxBytes: number;
  /** Between two parts. */
  readonly idleMs: number;
  /** Trailers of an answer are read and dropped; a request's are refused. */
  readonly trailers: 'drop' | 'refuse';
}

const PART = 64 * 1024;
const MAX_TRAILER_LINES = 64;

/** @throws BodyError; then the connection has no next message */
export async function* readBody(reader: ByteReader, framing: BodyFraming, limits: BodyLimits): AsyncGenerator<Buffer> {
  let total = 0;
  const count = (bytes: number): void => {
    total += bytes;
    if (total > limits.maxBytes) throw new BodyError('too-large');
  };
  switch (framing.kind) {
    case 'none':
      return;
    case 'length':
      count(framing.bytes);
      yield* exactly(reader, framing.bytes, limits.idleMs);
      return;
    case 'until-close':
      for (;;) {
        const part = await reader.read(PART, limits.idleMs);
        if (part === undefined) return;
        count(part.length);
        yield part;
      }
    case 'chunked':
      for (;;) {
        const line = await reader.readLine(16, limits.idleMs);
        // No extensions, no leading zeros: one spelling of each size.
        if (line === undefined || !/^(?:0|[1-9A-Fa-f][0-9A-Fa-f]{0,7})$/.test(line)) throw new BodyError('bad-chunk');
        const size = Number.parseInt(line, 16);
        if (size === 0) break;
        count(size);
        yield* exactly(reader, size, limits.idleMs);
        if ((await reader.readLine(0, limits.idleMs)) !== '') throw new BodyError('bad-chunk');
      }
      for (let lines = 0; ; lines++) {
        const line = await reader.readLine(limits.trailers === 'drop' ? 8_192 : 0, limits.idleMs);
        if (line === '') return;
        if (limits.trailers === 'refuse' || line === undefined || lines >= MAX_TRAILER_LINES) {
          throw new BodyError('trailers');
        }
      }
  }
}

async function* exactly(reader: ByteReader, bytes: number, idleMs: number): AsyncGenerator<Buffer> {
  for (let left = bytes; left > 0; ) {
    const part = await reader.read(Math.min(left, PART), idleMs);
    if (part === undefined) throw new BodyError('cut-off');
    left -= part.length;
    yield part;
  }
}
