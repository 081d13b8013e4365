/** A compressed body's parts, decompressed as they come, up to a number of bytes: a bomb is cut off, not held. */
import type { Transform } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from 'node:zlib';
import type { BodyEncoding } from '../../domain/credential/decideRequest.ts';
import { BodyError } from './readBody.ts';

const OPENERS: Readonly<Record<BodyEncoding, () => Transform>> = {
  gzip: () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress(),
  zstd: () => createZstdDecompress(),
};

export interface Decompressor {
  /** What these bytes made. @throws BodyError for what does not decompress, or to too much */
  readonly push: (chunk: Buffer) => Promise<Buffer[]>;
  readonly end: () => Promise<Buffer[]>;
  readonly close: () => void;
}

export function createDecompressor(encoding: BodyEncoding, maxBytes: number): Decompressor {
  const transform = OPENERS[encoding]();
  let parts: Buffer[] = [];
  let total = 0;
  let broken = false;
  transform.on('data', (part: Buffer) => {
    total += part.length;
    if (total > maxBytes) {
      broken = true;
      transform.destroy();
    } else parts.push(part);
  });
  transform.on('error', () => {
    broken = true;
  });
  const finished = new Promise<void>((resolve) => transform.once('close', resolve));
  const taken = (): Buffer[] => {
    if (broken) throw new BodyError(total > maxBytes ? 'too-large' : 'bad-chunk');
    const out = parts;
    parts = [];
    return out;
  };
  return {
    async push(chunk) {
      if (!broken) {
        const written = new Promise<void>((resolve) => transform.write(chunk, () => resolve()));
        await Promise.race([written, finished]);
      }
      return taken();
    },
    async end() {
      if (!broken) {
        transform.end();
        await finished;
      }
      return taken();
    },
    close: () => void transform.destroy(),
  };
}
