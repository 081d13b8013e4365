/**
 * Ends a connection of the tool so that its last answer arrives: a reset, which closing over unread bytes would be, throws
 * away what the tool has not read yet.
 */
import type { Duplex } from 'node:stream';

const LINGER_BYTES = 1024 * 1024;

/** @param lingerMs how long the tool may take to read the rest and to hang up */
export function endClient(client: Duplex, lingerMs: number, last?: string): void {
  if (client.destroyed) return;
  if (last === undefined) client.end();
  else client.end(last);
  let left = LINGER_BYTES;
  client.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) client.destroy();
  });
  client.once('end', () => client.destroy());
  client.resume();
  const timer = setTimeout(() => client.destroy(), lingerMs);
  client.once('close', () => clearTimeout(timer));
}
