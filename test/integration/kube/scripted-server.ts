/** An HTTP server on loopback that plays the API server as badly as a test wants, for one kind of object. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { KubeObject } from '../../../src/engine/contract.ts';
import { fixedConnection } from '../../../src/kube/connection.ts';

export type Answer = (response: ServerResponse, url: URL, request: IncomingMessage) => void | Promise<void>;

export interface ScriptedServer {
  readonly origin: string;
  readonly connection: ReturnType<typeof fixedConnection>;
  /** Answers in order; the last of each stays for whatever comes after. */
  readonly onList: (...answers: readonly Answer[]) => void;
  readonly onWatch: (...answers: readonly Answer[]) => void;
  /** What was asked, in order. */
  readonly requests: readonly { readonly watch: boolean; readonly url: URL; readonly atMs: number }[];
  readonly lists: () => number;
  readonly watches: () => readonly URL[];
  readonly openConnections: () => number;
  readonly close: () => Promise<void>;
}

export async function startScriptedServer(): Promise<ScriptedServer> {
  const requests: { watch: boolean; url: URL; atMs: number }[] = [];
  let listAnswers: readonly Answer[] = [];
  let watchAnswers: readonly Answer[] = [];
  let connections = 0;
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost');
    const watch = url.searchParams.get('watch') === 'true';
    requests.push({ watch, url, atMs: performance.now() });
    const answers = watch ? watchAnswers : listAnswers;
    const [first, ...rest] = answers;
    if (rest.length > 0) {
      if (watch) watchAnswers = rest;
      else listAnswers = rest;
    }
    void (first ?? status(500, 'InternalError'))(response, url, request);
  });
  server.on('connection', (socket) => {
    connections += 1;
    socket.on('close', () => {
      connections -= 1;
    });
    socket.on('error', () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  return {
    origin,
    connection: fixedConnection({ server: origin, tls: { verify: true } }),
    onList: (...answers) => {
      listAnswers = answers;
    },
    onWatch: (...answers) => {
      watchAnswers = answers;
    },
    requests,
    lists: () => requests.filter((request) => !request.watch).length,
    watches: () => requests.filter((request) => request.watch).map((request) => request.url),
    openConnections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export function configMap(name: string, uid: string, resourceVersion: string | number, data?: object): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      namespace: 'ns',
      uid,
      resourceVersion: String(resourceVersion),
      managedFields: [{ manager: 'x' }],
    },
    ...(data === undefined ? {} : { data }),
  };
}

/** A whole list in one page, its items bare as the API server sends them. */
export function list(resourceVersion: number, ...items: readonly KubeObject[]): Answer {
  return (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(listBody(resourceVersion, items));
  };
}

export function listBody(resourceVersion: number, items: readonly KubeObject[], next = ''): string {
  const bare = items.map(({ apiVersion: _, kind: __, ...rest }) => rest);
  return JSON.stringify({
    kind: 'List',
    metadata: { resourceVersion: String(resourceVersion), continue: next },
    items: bare,
  });
}

export function status(code: number, reason: string, headers: Record<string, string> = {}): Answer {
  return (response) => {
    response.writeHead(code, headers);
    response.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', code, reason, message: `${reason} it is` }));
  };
}

export function event(type: string, object: unknown): string {
  return `${JSON.stringify({ type, object })}\n`;
}

export function bookmark(resourceVersion: number): string {
  return event('BOOKMARK', { kind: 'ConfigMap', metadata: { resourceVersion: String(resourceVersion) } });
}

export const expired = event('ERROR', { kind: 'Status', code: 410, reason: 'Expired', message: 'too old' });

/** A watch that writes these and then: stays open, ends in good order, or is reset. */
export function watch(parts: readonly (string | Uint8Array)[], then: 'stay' | 'end' | 'reset' = 'stay'): Answer {
  return async (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    for (const part of parts) {
      response.write(part);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    if (then === 'end') response.end();
    if (then === 'reset') response.socket?.resetAndDestroy();
  };
}
