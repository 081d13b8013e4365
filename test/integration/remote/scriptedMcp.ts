/** An MCP server of either era for `serveRemote`, with a counter of side effects and faults by a function's name. */
import type { ServerResponse } from 'node:http';
import type { Listener, Seen } from './world.ts';

export interface Script {
  readonly listener: Listener;
  /** Functions that were run, in order. */
  readonly ran: string[];
  readonly sessions: Set<string>;
  functions: object[];
  /** What to do for `tools/call` of a function, after it ran; unset: answers its name. */
  readonly behave: Record<string, (seen: Seen, response: ServerResponse, reset: () => void) => void>;
  /** Before a request is looked at; true: it was dealt with, and nothing ran. */
  before: ((seen: Seen, response: ServerResponse, reset: () => void) => boolean) | undefined;
  /** How many of each method came. */
  readonly count: (method: string) => number;
  /** Tells all who listen that the listing changed. */
  readonly changed: () => void;
}

const LIST_CHANGED = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' });
export const functionNamed = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more });

export function json(response: ServerResponse, value: unknown, status = 200, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(value));
}
export const result = (seen: Seen, value: object) => ({ jsonrpc: '2.0', id: seen.body.id, result: value });
export const text = (value: string) => ({ content: [{ type: 'text', text: value }] });
export const error = (id: unknown, code: number, message: string, data?: object) => ({
  jsonrpc: '2.0',
  id,
  error: { code, message, ...(data === undefined ? {} : { data }) },
});
export function sse(response: ServerResponse, ...events: string[]) {
  if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of events) response.write(event);
}
export const event = (value: unknown) => `data: ${JSON.stringify(value)}\n\n`;

let lastSession = 0;

export function scriptMcp(era: 'modern' | 'legacy' | 'sessionless', functions: readonly string[]): Script {
  const counts = new Map<string, number>();
  const streams = new Set<ServerResponse>();
  const script: Script = {
    ran: [],
    sessions: new Set(),
    functions: functions.map((name) => functionNamed(name)),
    behave: {},
    before: undefined,
    count: (method) => counts.get(method) ?? 0,
    changed() {
      for (const stream of streams) stream.write(`data: ${LIST_CHANGED}\n\n`);
    },
    listener(seen, response, reset) {
      const method: string = seen.method === 'POST' ? (seen.body?.method ?? 'answer') : seen.method;
      counts.set(method, (counts.get(method) ?? 0) + 1);
      if (script.before?.(seen, response, reset)) return;
      if (era === 'modern') modern(seen, response, reset);
      else legacy(seen, response, reset);
    },
  };

  function call(seen: Seen, response: ServerResponse, reset: () => void) {
    const { name } = seen.body.params;
    script.ran.push(name);
    const behave = script.behave[name];
    if (behave === undefined) json(response, result(seen, text(name)));
    else behave(seen, response, reset);
  }

  function modern(seen: Seen, response: ServerResponse, reset: () => void) {
    if (seen.method !== 'POST') return void response.writeHead(405).end();
    const { method, id, params } = seen.body;
    const version = params?._meta?.['io.modelcontextprotocol/protocolVersion'];
    if (version === undefined) return json(response, error(id, -32602, 'no version'), 400);
    if (seen.headers['mcp-protocol-version'] !== version || seen.headers['mcp-method'] !== method) {
      return json(response, error(id, -32020, 'Header mismatch'), 400);
    }
    const complete = (value: object) => result(seen, { resultType: 'complete', ...value });
    switch (method) {
      case 'server/discover':
        return json(
          response,
          complete({
            supportedVersions: ['2026-07-28'],
            capabilities: { tools: { listChanged: true } },
            _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'scripted', version: '1' } },
          }),
        );
      case 'tools/list':
        return json(response, complete({ tools: script.functions, ttlMs: 0, cacheScope: 'private' }));
      case 'tools/call':
        return call(seen, response, reset);
      case 'subscriptions/listen':
        sse(response, event({ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged', params: {} }));
        streams.add(response);
        response.once('close', () => streams.delete(response));
        return;
      default:
        return json(response, error(id, -32601, 'Method not found'), 404);
    }
  }

  function legacy(seen: Seen, response: ServerResponse, reset: () => void) {
    const keeps = era === 'legacy';
    const session = String(seen.headers['mcp-session-id'] ?? '');
    const method = seen.method === 'POST' ? seen.body.method : seen.method;
    if (method === 'initialize') {
      const id = `session-${++lastSession}`;
      if (keeps) script.sessions.add(id);
      return json(
        response,
        result(seen, {
          protocolVersion: '2025-11-25',
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: 'scripted', version: '1' },
        }),
        200,
        keeps ? { 'mcp-session-id': id } : {},
      );
    }
    if (keeps && session === '') return json(response, error(null, -32000, 'Bad Request: no session'), 400);
    if (keeps && !script.sessions.has(session)) return json(response, error(null, -32001, 'Session not found'), 404);
    switch (method) {
      case 'GET':
        sse(response, ': open\n\n');
        streams.add(response);
        response.once('close', () => streams.delete(response));
        return;
      case 'DELETE':
        script.sessions.delete(session);
        return void response.writeHead(204).end();
      case 'tools/list':
        return json(response, result(seen, { tools: script.functions }));
      case 'tools/call':
        return call(seen, response, reset);
      default:
        if (seen.body.id === undefined || seen.body.method === undefined) return void response.writeHead(202).end();
        return json(response, error(seen.body.id, -32601, 'Method not found'));
    }
  }
  return script;
}
