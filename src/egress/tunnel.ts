/** Carries bytes both ways between two sockets until either ends, or a bound is reached; then both are gone. */
import type { Duplex } from 'node:stream';

export interface TunnelBounds {
  /** Longest life in milliseconds. */
  readonly maxMs: number;
  /** Bytes in each direction. */
  readonly maxBytes: number;
}

export type TunnelEnd = 'ended' | 'too-long' | 'too-many-bytes';

/** Resolves when both sockets are closed. */
export function tunnel(client: Duplex, upstream: Duplex, head: Buffer, bounds: TunnelBounds): Promise<TunnelEnd> {
  return new Promise((resolve) => {
    let end: TunnelEnd = 'ended';
    let open = 2;
    const cut = (why: TunnelEnd) => {
      if (end === 'ended') end = why;
      client.destroy();
      upstream.destroy();
    };
    const timer = setTimeout(() => cut('too-long'), bounds.maxMs);
    const closed = () => {
      open--;
      // One end gone: the other has nobody to talk to.
      if (open > 0) cut('ended');
      else {
        clearTimeout(timer);
        resolve(end);
      }
    };
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      let bytes = 0;
      from.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > bounds.maxBytes) cut('too-many-bytes');
      });
      from.on('error', () => cut('ended'));
      from.once('close', closed);
      from.pipe(to);
    }
    if (head.length > 0) upstream.write(head);
  });
}
