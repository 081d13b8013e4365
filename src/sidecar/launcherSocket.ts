/**
 * The unix socket on which the pod's launcher dials in, and one connection of it: a start of the tool. Order of frames in
 * src/README.md. Reading is paused for a tool that floods; input waits for what the tool takes.
 */
import { chmod, rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { decodeFrames, encodeFrame, MAX_FRAME_BYTES } from './frames.ts';

export interface LauncherHello {
  readonly path: string;
  readonly home: string;
  readonly lang: string;
  /** SIGTERM came before this connection. */
  readonly terminating: boolean;
}

export interface StartOrder {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface ToolExit {
  readonly code?: number;
  readonly signal?: string;
  /** Why it could not be started. */
  readonly problem?: string;
}

export interface LauncherEvents {
  readonly stdout: (bytes: Buffer) => void;
  readonly stderr: (bytes: Buffer) => void;
  /** Once: the process is gone, and all it left behind. Undefined: the connection broke, so its end was not told. */
  readonly exited: (exit: ToolExit | undefined) => void;
}

/** One connection, which can start the tool once. */
export interface Launcher {
  readonly hello: LauncherHello;
  readonly start: (order: StartOrder, events: LauncherEvents) => void;
  /** Queues input; false: so much waits already that the tool does not read. */
  readonly stdin: (bytes: Buffer) => boolean;
  readonly stop: (graceMs: number) => void;
  readonly quit: () => void;
  readonly pause: () => void;
  readonly resume: () => void;
  readonly close: () => void;
  /** Aborted when the connection is gone. */
  readonly gone: AbortSignal;
}

export interface LauncherSocketOptions {
  readonly path: string;
  /** Input that may wait for the tool, in bytes. */
  readonly maxQueuedBytes: number;
  readonly onLauncher: (launcher: Launcher) => void;
  /** SIGTERM came to the tool's container. Told on each connection from then on. */
  readonly onTerminating: () => void;
}

export interface LauncherSocket {
  readonly close: () => Promise<void>;
}

/** What the launcher takes before the tool reads (`stdinWindow` there), and what is sent of it at once. */
const STDIN_WINDOW = MAX_FRAME_BYTES;
const STDIN_PART = 64 * 1024;
const HELLO_TIMEOUT_MS = 5_000;

export async function listenForLauncher(options: LauncherSocketOptions): Promise<LauncherSocket> {
  // A restarted sidecar finds the socket of its predecessor, on which nobody listens.
  await rm(options.path, { force: true });
  const server = createServer();
  server.maxConnections = 4;
  let current: Socket | undefined;
  server.on('connection', (socket) => {
    socket.on('error', () => socket.destroy());
    // One at a time: while the launcher is here, whoever else dials is the tool.
    if (current !== undefined && !current.destroyed) {
      socket.destroy();
      return;
    }
    current = socket;
    serve(socket, options);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.path, resolve);
  });
  // The tool's user is another one; the folder, read-only to it, is what keeps the socket ours.
  await chmod(options.path, 0o666);
  return {
    async close() {
      current?.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

function serve(socket: Socket, options: LauncherSocketOptions): void {
  const gone = new AbortController();
  let events: LauncherEvents | undefined;
  let greeted = false;
  let exited = false;
  let queue: Buffer[] = [];
  let queued = 0;
  let window = STDIN_WINDOW;

  const exit = (told: ToolExit | undefined): void => {
    if (exited) return;
    exited = true;
    events?.exited(told);
  };
  const send = (type: Parameters<typeof encodeFrame>[0], payload?: Uint8Array): void => {
    if (!socket.destroyed) socket.write(encodeFrame(type, payload));
  };
  const feed = (): void => {
    while (window > 0 && queue.length > 0) {
      const [first = Buffer.alloc(0)] = queue;
      const part = first.subarray(0, Math.min(window, STDIN_PART));
      if (part.length === first.length) queue.shift();
      else queue[0] = first.subarray(part.length);
      queued -= part.length;
      window -= part.length;
      send('I', part);
    }
  };

  const launcher = (hello: LauncherHello): Launcher => ({
    hello,
    start(order, heard) {
      events = heard;
      // It may have gone between its greeting and this.
      if (exited) heard.exited(undefined);
      send('S', Buffer.from(JSON.stringify(order)));
    },
    stdin(bytes) {
      if (queued + bytes.length > options.maxQueuedBytes) return false;
      queue.push(bytes);
      queued += bytes.length;
      feed();
      return true;
    },
    stop: (graceMs) => send('K', Buffer.from(JSON.stringify({ graceMs }))),
    quit: () => send('Q'),
    pause: () => void socket.pause(),
    resume: () => void socket.resume(),
    close: () => void socket.destroy(),
    gone: gone.signal,
  });

  const decode = decodeFrames((type, payload) => {
    if (!greeted && type !== 'H') return void socket.destroy();
    switch (type) {
      case 'H': {
        const hello = greeted ? undefined : readHello(payload);
        if (hello === undefined) return void socket.destroy();
        greeted = true;
        clearTimeout(timer);
        options.onLauncher(launcher(hello));
        return;
      }
      case 'O':
        events?.stdout(payload);
        return;
      case 'E':
        events?.stderr(payload);
        return;
      case 'W':
        if (payload.length === 4) window += payload.readUInt32BE(0);
        feed();
        return;
      case 'X':
        exit(readExit(payload));
        return;
      case 'T':
        options.onTerminating();
        return;
      default:
        socket.destroy();
    }
  });
  const timer = setTimeout(() => socket.destroy(), HELLO_TIMEOUT_MS);
  socket.on('data', (chunk) => {
    if (!decode(chunk)) socket.destroy();
  });
  socket.once('close', () => {
    clearTimeout(timer);
    queue = [];
    queued = 0;
    gone.abort(new Error('the launcher has gone'));
    exit(undefined);
  });
}

function readHello(payload: Buffer): LauncherHello | undefined {
  const value = parse(payload);
  const { version, path, home, lang, terminating } = value ?? {};
  if (version !== 1 || typeof path !== 'string' || typeof home !== 'string' || typeof lang !== 'string')
    return undefined;
  return { path, home, lang, terminating: terminating === true };
}

function readExit(payload: Buffer): ToolExit {
  const { code, signal, problem } = parse(payload) ?? {};
  return {
    ...(typeof code === 'number' ? { code } : {}),
    ...(typeof signal === 'string' ? { signal } : {}),
    ...(typeof problem === 'string' ? { problem } : {}),
  };
}

function parse(payload: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(payload.toString('utf8'));
    return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined;
  }
}
