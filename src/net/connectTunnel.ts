/**
 * CONNECT, the client's side: asks a proxy over an open connection for a way to a target. What the proxy answers when it
 * refuses is read, within a limit, since its reason is for a person.
 */
import type { Socket } from 'node:net';

/** The proxy refused, or what it answered is no answer. Nothing reached the target. */
export class TunnelRefusedError extends Error {
  readonly code: string;
  /** HTTP status of the refusal; 0 where there was none. */
  readonly status: number;
  constructor(code: string, message: string, status = 0) {
    super(message);
    this.code = code;
    this.status = status;
  }
}

const MAX_HEAD_BYTES = 8_192;
const MAX_REFUSAL_BYTES = 4_096;
/** How long the reason of a refusal is waited for. */
const REFUSAL_MS = 1_000;
const MAX_REASON_LENGTH = 200;

/**
 * Resolves when the proxy agreed; the connection is then the tunnel, and paused.
 * @throws TunnelRefusedError, the socket's error or the signal's reason; the connection is destroyed
 */
export function connectTunnel(socket: Socket, target: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    let read: Buffer = Buffer.alloc(0);
    let refused: { readonly status: number; readonly line: string; readonly from: number } | undefined;
    let timer: NodeJS.Timeout | undefined;
    const settle = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      socket.removeListener('data', data);
      socket.removeListener('error', fail);
      socket.removeListener('close', closed);
    };
    const fail = (error: unknown) => {
      settle();
      socket.on('error', () => {});
      socket.destroy();
      reject(error);
    };
    const abort = () => fail(signal.reason);
    const closed = () =>
      refused === undefined
        ? fail(new TunnelRefusedError('connection-closed', 'egress closed the connection'))
        : refuse();
    const refuse = () => {
      const { status = 0, line = '', from = 0 } = refused ?? {};
      fail(readRefusal(status, line, read.subarray(from)));
    };
    const data = (chunk: Buffer) => {
      read = Buffer.concat([read, chunk]);
      if (refused !== undefined) {
        if (isWhole(read.subarray(refused.from)) || read.length > refused.from + MAX_REFUSAL_BYTES) refuse();
        return;
      }
      const end = read.indexOf('\r\n\r\n');
      if (end < 0) {
        if (read.length > MAX_HEAD_BYTES) fail(new TunnelRefusedError('bad-answer', 'egress answered without end'));
        return;
      }
      const [line = ''] = read.subarray(0, end).toString('latin1').split('\r\n', 1);
      const [, status] = /^HTTP\/1\.1 ([0-9]{3})(?: |$)/.exec(line) ?? [];
      if (status !== '200') {
        refused = { status: Number(status ?? 0), line, from: end + 4 };
        if (isWhole(read.subarray(refused.from))) refuse();
        else timer = setTimeout(refuse, REFUSAL_MS);
        return;
      }
      settle();
      socket.pause();
      const rest = read.subarray(end + 4);
      if (rest.length > 0) socket.unshift(rest);
      resolve();
    };
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    socket.on('data', data);
    socket.once('error', fail);
    socket.once('close', closed);
    socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  });
}

function isWhole(body: Buffer): boolean {
  return reasonOf(body) !== undefined;
}

/** `{"error": {"code", "message"}}`, as servers of ours refuse. */
function reasonOf(body: Buffer): { readonly code: string; readonly message: string } | undefined {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    const { error } = (value ?? {}) as { error?: { code?: unknown; message?: unknown } };
    const { code, message } = error ?? {};
    if (typeof code !== 'string' || typeof message !== 'string') return undefined;
    return { code: code.slice(0, MAX_REASON_LENGTH), message: message.slice(0, MAX_REASON_LENGTH) };
  } catch {
    return undefined;
  }
}

function readRefusal(status: number, line: string, body: Buffer): TunnelRefusedError {
  const reason = reasonOf(body);
  if (reason !== undefined) return new TunnelRefusedError(reason.code, reason.message, status);
  return new TunnelRefusedError('refused', line.slice(0, MAX_REASON_LENGTH), status);
}
