/**
 * A tool pod as a gateway sees one, scriptable: speaks 2026-07-28 over plain HTTP, written without the code under test.
 * Counts what it does: a test of "how often did it run" asks `runs`, never the answer.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export interface FakeCall {
  readonly id: unknown;
  readonly name: string;
  readonly args: Record<string, unknown>;
  readonly meta: Record<string, unknown>;
  readonly headers: IncomingMessage['headers'];
  readonly rawHeaders: readonly string[];
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Closed by the other side before an answer was written. */
  readonly closed: Promise<void>;
  /** Writes one message of an event stream. */
  readonly event: (message: object) => void;
  readonly progress: (progress: number, message?: string) => void;
}

export interface JournalEntry {
  state: 'fenced' | 'running' | 'done';
  outcome?: unknown;
  readonly ended: PromiseWithResolvers<void>;
}

export interface JournalQuestion {
  readonly id: string;
  readonly attempt: number;
  readonly fence?: boolean;
  readonly stop?: boolean;
  readonly cancel?: boolean;
  readonly waitMs?: number;
}

/** Returns a result to be sent, or writes to `res` itself and returns undefined. */
export type FakeFunction = (call: FakeCall) => unknown;

export interface FakeTool {
  readonly port: number;
  functions: Record<string, FakeFunction>;
  /** Definitions listed beside (or instead of) those made from `functions`. */
  listed: object[] | undefined;
  /** Answers `tools/list` itself where set. */
  onList: ((req: IncomingMessage, res: ServerResponse, id: unknown) => boolean) | undefined;
  /** Looks at every request before anything; true: it dealt with it. */
  intercept: ((req: IncomingMessage, res: ServerResponse) => boolean) | undefined;
  /** Calls that began, by function name. */
  readonly runs: Record<string, number>;
  readonly calls: FakeCall[];
  lists: number;
  listeners: number;
  connections: number;
  openSockets: () => number;
  /** What is kept of recorded calls, by `<id>/<attempt>`; read and written by tests. */
  readonly journal: Map<string, JournalEntry>;
  /** Questions to the journal. */
  readonly asked: JournalQuestion[];
  /** Answers a question about a call itself where set: true. */
  onAsk: ((question: JournalQuestion, res: ServerResponse) => boolean) | undefined;
  /** Milliseconds since the epoch, for grants. */
  now: () => number;
  /** Tells every listener that the listing changed. */
  changed: () => void;
  /** Cuts every connection. */
  cut: () => void;
  close: () => Promise<void>;
  /** Stops listening (new connections are refused) and cuts; `reopen` listens on the same port again. */
  refuse: () => Promise<void>;
  reopen: () => Promise<void>;
}

export async function startFakeTool(functions: Record<string, FakeFunction> = {}): Promise<FakeTool> {
  const sockets = new Set<Socket>();
  const streams = new Map<ServerResponse, unknown>();
  const server = createServer((req, res) => {
    if (tool.intercept?.(req, res)) return;
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const body = JSON.parse(Buffer.concat(chunks).toString('utf8'));
      if (req.url === '/calls') void tell(res, body);
      else serve(req, res, body);
    });
    req.on('error', () => {});
  });
  server.keepAliveTimeout = 60_000;
  server.on('connection', (socket) => {
    tool.connections += 1;
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => {});
  });

  const entryOf = (key: string, state: JournalEntry['state']): JournalEntry => {
    const entry: JournalEntry = { state, ended: Promise.withResolvers<void>() };
    tool.journal.set(key, entry);
    return entry;
  };
  const finish = (entry: JournalEntry | undefined, outcome: unknown): void => {
    if (entry?.state !== 'running') return;
    entry.state = 'done';
    entry.outcome = outcome;
    entry.ended.resolve();
  };

  /** As the sidecar's journal does; a call that is ended on a word ends at once. */
  async function tell(res: ServerResponse, question: JournalQuestion): Promise<void> {
    tool.asked.push(question);
    if (tool.onAsk?.(question, res)) return;
    const key = `${question.id}/${question.attempt}`;
    let entry = tool.journal.get(key);
    if (question.stop === true) finish(entry, { kind: 'stopped' });
    if (question.cancel === true) finish(entry, { kind: 'unknown', reason: 'cancelled' });
    if (entry?.state === 'running') {
      const over = new Promise((resolve) => setTimeout(resolve, question.waitMs ?? 0).unref());
      await Promise.race([entry.ended.promise, over]);
    }
    if (entry === undefined && (question.fence || question.stop || question.cancel)) entry = entryOf(key, 'fenced');
    const answer = entry === undefined ? { state: 'never-seen' } : { state: entry.state, outcome: entry.outcome };
    if (!res.destroyed) res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
  }

  const json = (res: ServerResponse, id: unknown, body: object): void => {
    res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
  };

  function serve(
    req: IncomingMessage,
    res: ServerResponse,
    message: { id: unknown; method: string; params: Record<string, unknown> },
  ): void {
    const { id, method, params } = message;
    const meta = (params['_meta'] ?? {}) as Record<string, unknown>;
    switch (method) {
      case 'tools/list': {
        tool.lists += 1;
        if (tool.onList?.(req, res, id)) return;
        const tools =
          tool.listed ??
          Object.keys(tool.functions).map((name) => ({ name, description: name, inputSchema: { type: 'object' } }));
        json(res, id, { result: { resultType: 'complete', ttlMs: 0, cacheScope: 'private', tools } });
        return;
      }
      case 'subscriptions/listen': {
        tool.listeners += 1;
        streams.set(res, id);
        res.on('close', () => {
          streams.delete(res);
          tool.listeners -= 1;
        });
        res.writeHead(200, { 'content-type': 'text/event-stream' });
        write(res, {
          method: 'notifications/subscriptions/acknowledged',
          params: {
            notifications: { toolsListChanged: true },
            _meta: { 'io.modelcontextprotocol/subscriptionId': id },
          },
        });
        return;
      }
      case 'tools/call': {
        const name = String(params['name']);
        const grant = meta['ai.oz0/call'] as
          | { id: string; attempt: number; notAfter: number; recorded: boolean }
          | undefined;
        let entry: JournalEntry | undefined;
        if (grant?.recorded === true) {
          const key = `${grant.id}/${grant.attempt}`;
          const known = tool.journal.get(key);
          const refused =
            known?.state === 'fenced' ? 'fenced' : tool.now() > grant.notAfter ? 'grant-expired' : undefined;
          if (refused !== undefined) {
            const data = { 'ai.oz0/outcome': 'not-started', reason: refused };
            json(res, id, { error: { code: -32603, message: refused, data } });
            return;
          }
          if (known !== undefined) {
            void known.ended.promise.then(() => {
              const { result } = known.outcome as { result?: object };
              json(res, id, { result: { resultType: 'complete', ...result } });
            });
            return;
          }
          entry = entryOf(key, 'running');
          // What is refused is not begun.
          const end = res.end.bind(res);
          res.end = ((chunk: unknown, ...rest: never[]) => {
            if (typeof chunk === 'string' && chunk.includes('"not-started"')) tool.journal.delete(key);
            return end(chunk as string, ...rest);
          }) as typeof res.end;
        }
        tool.runs[name] = (tool.runs[name] ?? 0) + 1;
        const closed = new Promise<void>((resolve) => res.on('close', () => !res.writableFinished && resolve()));
        const open = (): void => {
          if (!res.headersSent) res.writeHead(200, { 'content-type': 'text/event-stream' });
        };
        const call: FakeCall = {
          id,
          name,
          args: (params['arguments'] ?? {}) as Record<string, unknown>,
          meta,
          headers: req.headers,
          rawHeaders: req.rawHeaders,
          req,
          res,
          closed,
          event: (sent) => {
            open();
            write(res, sent);
          },
          progress: (progress, text) => {
            open();
            const token = meta['progressToken'];
            write(res, {
              method: 'notifications/progress',
              params: { progressToken: token, progress, ...(text === undefined ? {} : { message: text }) },
            });
          },
        };
        tool.calls.push(call);
        const run = tool.functions[name];
        if (run === undefined) {
          json(res, id, { error: { code: -32602, message: `no function ${name}` } });
          return;
        }
        void (async () => {
          const result = await run(call);
          if (result === undefined) {
            // It wrote for itself, or nothing: what of that was an answer is not for the journal to know.
            const over = (): void => finish(entry, { kind: 'unknown', reason: 'process-ended' });
            // A broken connection ends no call of the tool: whoever broke it may still end it in its own way.
            const soon = (): void => void setTimeout(over, res.writableEnded ? 0 : 150);
            if (res.closed) soon();
            else res.once('close', soon);
            return;
          }
          finish(entry, { kind: 'result', result });
          if (res.destroyed) return;
          const body = { result: { resultType: 'complete', ...(result as object) } };
          if (res.headersSent) {
            write(res, { id, ...body });
            res.end();
          } else json(res, id, body);
        })();
        return;
      }
      default:
        json(res, id, { error: { code: -32601, message: 'Method not found' } });
    }
  }

  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve()));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  const stop = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    cut();
    await closed;
  };

  const tool: FakeTool = {
    port: 0,
    functions,
    listed: undefined,
    onList: undefined,
    intercept: undefined,
    runs: {},
    calls: [],
    journal: new Map(),
    asked: [],
    onAsk: undefined,
    now: Date.now,
    lists: 0,
    listeners: 0,
    connections: 0,
    openSockets: () => sockets.size,
    changed: () => {
      for (const [res, id] of streams) {
        write(res, {
          method: 'notifications/tools/list_changed',
          params: { _meta: { 'io.modelcontextprotocol/subscriptionId': id } },
        });
      }
    },
    cut,
    close: stop,
    refuse: stop,
    reopen: () => listen(tool.port),
  };
  await listen(0);
  (tool as { port: number }).port = (server.address() as AddressInfo).port;
  return tool;
}

function write(res: ServerResponse, message: object): void {
  res.write(`event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
}

export function text(value: string): object {
  return { content: [{ type: 'text', text: value }] };
}
