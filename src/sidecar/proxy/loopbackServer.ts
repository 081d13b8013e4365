/** A server for the tool's process, on this pod's loopback: so many connections at once, and closing ends them all. */
import { createServer, type Socket } from 'node:net';

export interface LoopbackServerOptions {
  readonly port: number;
  readonly maxConnections: number;
  /** Owns the connection; one too many is told so and counts no more. */
  readonly onConnection: (socket: Socket) => void;
  readonly onTooMany: (socket: Socket) => void;
}

export interface LoopbackServer {
  readonly port: number;
  /** Connections that are served. */
  readonly connections: () => number;
  readonly close: () => Promise<void>;
}

/** @throws Error for a port that is taken */
export async function listenOnLoopback(options: LoopbackServerOptions): Promise<LoopbackServer> {
  const sockets = new Set<Socket>();
  let served = 0;
  let closed: Promise<void> | undefined;
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    if (!isLoopback(socket.remoteAddress) || closed !== undefined) {
      socket.destroy();
      return;
    }
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    if (served >= options.maxConnections) {
      options.onTooMany(socket);
      return;
    }
    served++;
    socket.once('close', () => served--);
    options.onConnection(socket);
  });
  // A few above the limit, so that one too many is told so.
  server.maxConnections = options.maxConnections + 16;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host: '127.0.0.1', port: options.port }, () => {
      server.removeListener('error', reject);
      resolve();
    });
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    connections: () => served,
    close() {
      closed ??= new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      });
      return closed;
    },
  };
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && (address.startsWith('127.') || address === '::1');
}
