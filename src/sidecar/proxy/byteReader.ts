/**
 * Reads a connection piece by piece, on demand: what is not asked for stays in the socket, which is how a fast sender is
 * held back. Each wait has a bound.
 */
import type { Duplex } from 'node:stream';

export interface ByteReader {
  /** Some bytes, at most `max`; undefined at the end of the connection, however it came. */
  readonly read: (max: number, timeoutMs: number) => Promise<Buffer | undefined>;
  /** Up to and with the next empty line. */
  readonly readHead: (limits: HeadLimits) => Promise<HeadOutcome>;
  /** Up to and with CRLF, without it; undefined when it is longer, or the connection ended. */
  readonly readLine: (maxBytes: number, timeoutMs: number) => Promise<string | undefined>;
  /** Gives back what was read too far, for whoever reads the connection next. */
  readonly release: () => void;
  /** Whether bytes wait that nobody asked for. */
  readonly ahead: () => boolean;
}

export interface HeadLimits {
  readonly maxBytes: number;
  /** For the first byte. */
  readonly idleMs: number;
  /** From the first byte to the last. */
  readonly headMs: number;
}

export type HeadOutcome =
  | { readonly kind: 'head'; readonly bytes: Buffer }
  /** Ended, or stayed idle, before the first byte. */
  | { readonly kind: 'end' }
  /** Ended within. */
  | { readonly kind: 'cut-off' }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'too-slow' };

const EMPTY: Buffer = Buffer.alloc(0);

export function createByteReader(stream: Duplex): ByteReader {
  let held: Buffer = EMPTY;

  /** Waits for bytes and adds them to `held`. */
  async function more(timeoutMs: number): Promise<'more' | 'end' | 'timeout'> {
    const chunk = stream.read() as Buffer | null;
    if (chunk === null) {
      const came = await readable(stream, timeoutMs);
      return came === 'more' ? more(timeoutMs) : came;
    }
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
    return 'more';
  }

  function takeHeld(bytes: number): Buffer {
    const taken = held.subarray(0, bytes);
    held = bytes >= held.length ? EMPTY : held.subarray(bytes);
    return taken;
  }

  return {
    async read(max, timeoutMs) {
      if (held.length === 0 && (await more(timeoutMs)) !== 'more') return undefined;
      return takeHeld(max);
    },
    async readHead({ maxBytes, idleMs, headMs }) {
      if (held.length === 0 && (await more(idleMs)) !== 'more') return { kind: 'end' };
      const until = Date.now() + headMs;
      for (let searched = 0; ; ) {
        const at = held.indexOf('\r\n\r\n', Math.max(0, searched - 3));
        if (at >= 0 && at + 4 <= maxBytes) return { kind: 'head', bytes: takeHeld(at + 4) };
        if (at >= 0 || held.length >= maxBytes) return { kind: 'too-large' };
        searched = held.length;
        const came = await more(Math.max(1, until - Date.now()));
        if (came === 'end') return { kind: 'cut-off' };
        if (came === 'timeout' || Date.now() > until) return { kind: 'too-slow' };
      }
    },
    async readLine(maxBytes, timeoutMs) {
      for (;;) {
        const at = held.indexOf('\r\n');
        if (at >= 0 && at <= maxBytes) return takeHeld(at + 2).toString('latin1', 0, at);
        if (at >= 0 || held.length > maxBytes + 2) return undefined;
        if ((await more(timeoutMs)) !== 'more') return undefined;
      }
    },
    release() {
      const rest = held;
      held = EMPTY;
      if (rest.length > 0 && !stream.destroyed) stream.unshift(rest);
    },
    ahead: () => held.length > 0 || stream.readableLength > 0,
  };
}

/** Resolves when there is something to read, or never will be. */
function readable(stream: Duplex, timeoutMs: number): Promise<'more' | 'end' | 'timeout'> {
  return new Promise((resolve) => {
    if (stream.destroyed || stream.readableEnded) return resolve('end');
    if (stream.readableLength > 0) return resolve('more');
    const settle = (outcome: 'more' | 'end' | 'timeout') => {
      clearTimeout(timer);
      stream.removeListener('readable', more);
      stream.removeListener('end', end);
      stream.removeListener('close', end);
      resolve(outcome);
    };
    const more = () => settle(stream.readableLength > 0 ? 'more' : stream.readableEnded ? 'end' : 'more');
    const end = () => settle('end');
    const timer = setTimeout(() => settle('timeout'), timeoutMs);
    stream.on('readable', more);
    stream.once('end', end);
    stream.once('close', end);
  });
}

/** Writes, and waits until the other side has taken enough of it. False: it is gone, or takes nothing for so long. */
export function writeAll(stream: Duplex, bytes: Uint8Array | string, timeoutMs: number): Promise<boolean> {
  if (stream.destroyed || stream.writableEnded) return Promise.resolve(false);
  if (typeof bytes === 'string' ? stream.write(bytes, 'latin1') : stream.write(bytes)) return Promise.resolve(true);
  return new Promise((resolve) => {
    const settle = (ok: boolean) => {
      clearTimeout(timer);
      stream.removeListener('drain', drained);
      stream.removeListener('close', closed);
      resolve(ok);
    };
    const drained = () => settle(true);
    const closed = () => settle(false);
    const timer = setTimeout(closed, timeoutMs);
    stream.once('drain', drained);
    stream.once('close', closed);
  });
}
