/** Carries bytes both ways, unread, until both sides have ended or nothing moved for a time; then both are gone. */
import type { Duplex } from 'node:stream';

export function joinStreams(left: Duplex, right: Duplex, idleMs: number): Promise<void> {
  return new Promise((resolve) => {
    let open = 2;
    let moved = true;
    const cut = (): void => {
      left.destroy();
      right.destroy();
    };
    const timer = setInterval(() => {
      if (moved) moved = false;
      else cut();
    }, idleMs);
    const closed = (): void => {
      open--;
      // One end gone: the other has nobody to talk to.
      if (open > 0) cut();
      else {
        clearInterval(timer);
        resolve();
      }
    };
    for (const [from, to] of [
      [left, right],
      [right, left],
    ] as const) {
      from.on('data', () => {
        moved = true;
      });
      from.on('error', cut);
      from.pipe(to);
      if (from.destroyed) queueMicrotask(closed);
      else from.once('close', closed);
    }
  });
}
