/** Requests of a conversation with one remote server: its headers filled anew for each, ids of our own, limits of the tool. */
import {
  type RemoteRequest,
  readEventStream,
  type StreamGate,
  type StreamReading,
  sendMessage,
  sendRequest,
} from '../../mcp/streamableHttp.ts';
import type { RemoteServer } from '../../mcp/streamableHttpExchange.ts';
import type { RemoteOutcome } from '../../mcp/streamableHttpOutcome.ts';
import type { JsonObject } from '../../mcp/wire/jsonrpc.ts';
import type { FilledHeaders } from './fillHeaders.ts';

export interface RemoteWireOptions {
  readonly server: RemoteServer;
  readonly headersNow: () => FilledHeaders;
  readonly maxMessageBytes: number;
  readonly gate: (pause: () => void, resume: () => void) => StreamGate;
}

type Headers = Readonly<Record<string, string>>;

export interface WireRequest {
  readonly method: string;
  /** Whole params, once the id is known: progress is told by it. */
  readonly params: (id: number) => JsonObject;
  readonly headers: Headers;
  readonly signal: AbortSignal;
  readonly timeoutMs?: number;
  /** Milliseconds since 1970; nothing is sent later. */
  readonly sendBy?: number;
  readonly onHeader?: RemoteRequest['onHeader'];
  readonly onNotification?: (method: string, params: JsonObject, id: number) => void;
  readonly onRequest?: StreamReading['onRequest'];
  /** The request has its id; called before anything is sent. */
  readonly onId?: (id: number) => void;
}

export interface RemoteWire {
  /** Never throws; sends at most once. */
  readonly request: (request: WireRequest) => Promise<RemoteOutcome>;
  /** Sends what wants no answer. The HTTP status, or undefined where none came. */
  readonly send: (
    method: 'POST' | 'DELETE',
    headers: Headers,
    body: string | undefined,
    timeoutMs: number,
  ) => Promise<number | undefined>;
  /** The older era's event stream of a session, until it ends. */
  readonly stream: (
    headers: Headers,
    signal: AbortSignal,
    reading: Pick<StreamReading, 'onNotification' | 'onRequest'> & { readonly onOpen: () => void },
  ) => Promise<number | undefined>;
  /** Cuts what is sent without a signal of its own. */
  readonly close: () => void;
}

const USER_AGENT = { 'user-agent': 'oz0' };

export function createRemoteWire(options: RemoteWireOptions): RemoteWire {
  const { server, gate } = options;
  const closing = new AbortController();
  let lastId = 0;
  const reading = { maxAnswerBytes: options.maxMessageBytes, gate };
  const prepare = () => {
    const filled = options.headersNow();
    if (!filled.ok) return filled;
    const { query } = filled;
    const path = query === '' ? server.path : `${server.path}${server.path.includes('?') ? '&' : '?'}${query}`;
    return { ...filled, server: { ...server, path } };
  };
  return {
    async request({ method, params, headers, signal, timeoutMs, sendBy, onHeader, onNotification, onRequest, onId }) {
      const prepared = prepare();
      if (!prepared.ok) return { kind: 'not-sent', cause: new Error(prepared.problem) };
      const id = ++lastId;
      onId?.(id);
      return sendRequest(prepared.server, {
        ...reading,
        id,
        method,
        params: params(id),
        headers: { ...USER_AGENT, ...prepared.headers, ...headers },
        redact: prepared.redact,
        signal,
        ...(timeoutMs === undefined ? {} : { timeoutMs }),
        ...(sendBy === undefined ? {} : { sendBy }),
        ...(onHeader === undefined ? {} : { onHeader }),
        ...(onNotification === undefined
          ? {}
          : { onNotification: (told: string, with_: JsonObject) => onNotification(told, with_, id) }),
        ...(onRequest === undefined ? {} : { onRequest }),
      });
    },
    async send(method, headers, body, timeoutMs) {
      const prepared = prepare();
      if (!prepared.ok) return undefined;
      return sendMessage(prepared.server, {
        method,
        headers: { ...USER_AGENT, ...prepared.headers, ...headers },
        ...(body === undefined ? {} : { body }),
        signal: closing.signal,
        timeoutMs,
      });
    },
    async stream(headers, signal, heard) {
      const prepared = prepare();
      if (!prepared.ok) return undefined;
      return readEventStream(prepared.server, {
        ...reading,
        ...heard,
        headers: { ...USER_AGENT, ...prepared.headers, ...headers },
        redact: prepared.redact,
        signal,
      });
    },
    close: () => closing.abort(new Error('the sidecar closes')),
  };
}
