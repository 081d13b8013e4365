/**
 * Connects to one of a few addresses, in order, each next one after a short wait or a failure (RFC 8305). Takes addresses
 * only, never a name: whoever calls has judged them, and nothing is resolved here. What connected is what was asked for.
 */
import { connect, isIP, type Socket } from 'node:net';
import { isSameAddress } from '../domain/egress/cidr.ts';

export type Dialled =
  | { readonly kind: 'connected'; readonly socket: Socket; readonly address: string }
  /** Every address failed; the code is the last one's, such as `ECONNREFUSED`. */
  | { readonly kind: 'failed'; readonly code: string }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'aborted' };

export interface DialOptions {
  /** Judged already; at least one. */
  readonly addresses: readonly string[];
  readonly port: number;
  /** For all of it, in milliseconds. */
  readonly timeoutMs?: number;
  /** How long an address is waited for before the next is tried beside it. */
  readonly fallbackMs?: number;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 5_000;
const FALLBACK_MS = 250;

export function dial(options: DialOptions): Promise<Dialled> {
  const { port, signal, timeoutMs = TIMEOUT_MS, fallbackMs = FALLBACK_MS } = options;
  const waiting = interleave(options.addresses);
  return new Promise((resolve) => {
    if (signal.aborted) return resolve({ kind: 'aborted' });
    const trying = new Set<Socket>();
    let lastCode = 'no-address';
    let settled = false;
    let fallback: NodeJS.Timeout | undefined;
    const settle = (result: Dialled) => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      clearTimeout(fallback);
      signal.removeEventListener('abort', abort);
      for (const socket of trying) socket.destroy();
      trying.clear();
      resolve(result);
    };
    const abort = () => settle({ kind: 'aborted' });
    const timer = setTimeout(() => settle({ kind: 'timeout' }), timeoutMs);
    signal.addEventListener('abort', abort, { once: true });

    const next = () => {
      clearTimeout(fallback);
      if (settled) return;
      const address = waiting.shift();
      if (address === undefined) {
        if (trying.size === 0) settle({ kind: 'failed', code: lastCode });
        return;
      }
      // A name here would be resolved again, past the judgement.
      if (isIP(address) === 0) throw new Error('only addresses are dialled');
      const socket = connect({ host: address, port, noDelay: true, autoSelectFamily: false, allowHalfOpen: true });
      trying.add(socket);
      const failed = (code: string) => {
        socket.destroy();
        if (!trying.delete(socket)) return;
        lastCode = code;
        next();
      };
      // Stays: a socket that is given up must not end the process.
      socket.on('error', (error) => failed('code' in error && typeof error.code === 'string' ? error.code : 'unknown'));
      socket.once('connect', () => {
        const { remoteAddress } = socket;
        if (remoteAddress === undefined || !isSameAddress(remoteAddress, address)) return failed('other-address');
        trying.delete(socket);
        if (settled) socket.destroy();
        else settle({ kind: 'connected', socket, address });
      });
      fallback = setTimeout(next, fallbackMs);
    };
    next();
  });
}

/** Families in turn, IPv6 first, each in the order given. */
function interleave(addresses: readonly string[]): string[] {
  const six = addresses.filter((address) => isIP(address) === 6);
  const four = addresses.filter((address) => isIP(address) !== 6);
  const ordered: string[] = [];
  for (let i = 0; i < Math.max(six.length, four.length); i++) {
    for (const address of [six[i], four[i]]) if (address !== undefined) ordered.push(address);
  }
  return ordered;
}
