/**
 * Carries bytes both ways between two sockets until either ends, a bound is reached or it is told to end; then both are gone. Looks
 * at the client's first bytes where asked to, and at nothing else.
 */
import type { Duplex } from 'node:stream';
import type { HelloRefusal } from '../domain/egress/clientHello.ts';

export interface TunnelBounds {
  /** Longest life in milliseconds. */
  readonly maxMs: number;
  /** Bytes in each direction. */
  readonly maxBytes: number;
  /** Longest time without a byte either way, in milliseconds; unset: as long as it lives. */
  readonly idleMs?: number;
}

export type TunnelEnd =
  | 'ended'
  | 'too-long'
  | 'too-many-bytes'
  | 'idle'
  /** The client's first bytes did not come in time. */
  | 'silent'
  /** A change of configuration closed the way. */
  | 'no-longer-allowed'
  | HelloRefusal;

export interface FirstBytes {
  /** Judges all that came so far; until it passes, nothing goes to the other side. */
  readonly judge: (bytes: Uint8Array) => 'pass' | 'more' | HelloRefusal;
  /** Longest wait for it to pass, in milliseconds. Unset: the other side may speak first, and for as long as it likes. */
  readonly withinMs?: number;
}

export interface TunnelOptions {
  readonly client: Duplex;
  readonly upstream: Duplex;
  /** What came behind the request for the tunnel. */
  readonly head: Buffer;
  readonly bounds: TunnelBounds;
  readonly first?: FirstBytes;
}

export interface Tunnel {
  /** Resolves when both sockets are closed. */
  readonly ended: Promise<TunnelResult>;
  readonly end: (why: TunnelEnd) => void;
}

export interface TunnelResult {
  readonly end: TunnelEnd;
  readonly bytesUp: number;
  readonly bytesDown: number;
}

/** How long what is on its way may take to arrive once the other side has closed. */
const FLUSH_MS = 10_000;
/** A client that sends its hello in more parts than this does so to be looked at for long. */
const MAX_FIRST_PARTS = 64;
/** TLS alert, fatal, unrecognized_name: the client's error then says what is wrong. */
const ALERT = Buffer.from([21, 3, 3, 0, 2, 2, 112]);

export function tunnel(options: TunnelOptions): Tunnel {
  const { client, upstream, bounds, first } = options;
  const { promise, resolve } = Promise.withResolvers<TunnelResult>();
  let end: TunnelEnd | undefined;
  let bytesUp = 0;
  let bytesDown = 0;
  // One that was closed before tells it no more.
  let open = [client, upstream].filter((side) => !side.closed).length;
  const timers: NodeJS.Timeout[] = [];
  const after = (ms: number, then: () => void): NodeJS.Timeout => {
    const timer = setTimeout(then, ms);
    timers.push(timer);
    return timer;
  };
  const finish = () => {
    for (const timer of timers) clearTimeout(timer);
    resolve({ end: end ?? 'ended', bytesUp, bytesDown });
  };
  const cut = (why: TunnelEnd) => {
    end ??= why;
    client.destroy();
    upstream.destroy();
  };

  // A side that has said all may still be told something.
  for (const side of [client, upstream]) side.allowHalfOpen = true;
  after(bounds.maxMs, () => cut('too-long'));
  const idle = bounds.idleMs === undefined ? undefined : after(bounds.idleMs, () => cut('idle'));

  for (const [side, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    side.on('error', () => cut('ended'));
    side.once('close', () => {
      open--;
      if (open === 0) finish();
      else if (!other.destroyed) {
        // It has nobody to talk to any more, but may still get what was sent to it.
        after(FLUSH_MS, () => cut('ended'));
        other.end(() => other.destroy());
      }
    });
  }

  if (client.destroyed || upstream.destroyed) {
    cut('ended');
    if (open === 0) finish();
    return { ended: promise, end: cut };
  }

  const carryUp = () => {
    client.on('data', (chunk: Buffer) => {
      bytesUp += chunk.length;
      idle?.refresh();
      if (bytesUp > bounds.maxBytes) cut('too-many-bytes');
    });
    client.pipe(upstream);
  };
  upstream.on('data', (chunk: Buffer) => {
    bytesDown += chunk.length;
    idle?.refresh();
    if (bytesDown > bounds.maxBytes) cut('too-many-bytes');
  });
  upstream.pipe(client);

  if (first === undefined) {
    bytesUp += options.head.length;
    if (options.head.length > 0) upstream.write(options.head);
    carryUp();
  } else {
    const silent = first.withinMs === undefined ? undefined : after(first.withinMs, () => cut('silent'));
    let held: Buffer = Buffer.alloc(0);
    let parts = 0;
    const look = (chunk: Buffer) => {
      held = Buffer.concat([held, chunk]);
      parts++;
      idle?.refresh();
      const verdict = parts > MAX_FIRST_PARTS ? 'odd-hello' : first.judge(held);
      if (verdict === 'more') return;
      client.off('data', look);
      client.off('end', endEarly);
      clearTimeout(silent);
      if (verdict === 'pass') {
        bytesUp += held.length;
        upstream.write(held);
        carryUp();
        return;
      }
      end ??= verdict;
      client.pause();
      upstream.unpipe(client);
      client.end(verdict === 'tls-required' ? undefined : ALERT, () => cut(verdict));
      upstream.destroy();
    };
    const endEarly = () => upstream.end();
    client.on('data', look);
    client.once('end', endEarly);
    if (options.head.length > 0) look(options.head);
  }
  return { ended: promise, end: cut };
}
