/** Connects to a part of ours by its Service's name, in bounded time. Never for what a tool asks: its hosts are judged (`dialHost.ts`). */
import { connect, type Socket } from 'node:net';

export interface NamedOptions {
  readonly host: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

/** Undefined when nobody answers in time. */
export function dialNamed({ host, port, timeoutMs, signal }: NamedOptions): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(undefined);
    const socket = connect({ host, port, noDelay: true });
    const settle = (result: Socket | undefined) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', fail);
      socket.removeListener('error', fail);
      if (result === undefined) socket.on('error', () => {}).destroy();
      resolve(result);
    };
    const fail = () => settle(undefined);
    const timer = setTimeout(fail, timeoutMs);
    signal.addEventListener('abort', fail, { once: true });
    socket.once('error', fail);
    socket.once('connect', () => settle(socket));
  });
}
