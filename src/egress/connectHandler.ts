/**
 * CONNECT: describes what is asked, decides (`domain/egress`), dials and carries bytes. One log line after the decision.
 * No byte of a tunnel is read, kept or logged.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { type ConnectRefusal, decideConnect, type EgressPolicy, parseTarget } from '../domain/egress/decideConnect.ts';
import type { Identity } from '../domain/identity/identity.ts';
import { createRateLimit } from '../net/rateLimit.ts';
import type { Log } from '../runtime/log.ts';
import { type TunnelBounds, tunnel } from './tunnel.ts';

export type EgressOutcome =
  | ConnectRefusal
  | 'signer'
  | 'connected'
  /** Not CONNECT, or a target that is none. */
  | 'bad-request'
  /** This source asks too often, or has too many open. */
  | 'too-many'
  | 'upstream-failed';

export interface ConnectHandlerOptions {
  readonly policy: EgressPolicy;
  /** Where the signer answers. */
  readonly signer: { readonly host: string; readonly port: number };
  readonly signerBounds?: TunnelBounds;
  readonly log: Log;
  readonly count: (outcome: EgressOutcome) => void;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

export interface ConnectHandler {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  readonly onConnect: (request: IncomingMessage, socket: Duplex, head: Buffer, peer: Identity | undefined) => void;
  /** Tunnels that are open. */
  readonly open: () => number;
}

const DIAL_TIMEOUT_MS = 5_000;
/** A request and its answer take some 4 KiB and well under a second. */
const SIGNER_BOUNDS: TunnelBounds = { maxMs: 15_000, maxBytes: 128 * 1024 };
const SIGNER_BURST = 20;
const SIGNER_PER_MINUTE = 20;
const SIGNER_AT_ONCE = 256;
const SIGNER_AT_ONCE_PER_SOURCE = 4;
const MAX_SOURCES = 20_000;

export function createConnectHandler(options: ConnectHandlerOptions): ConnectHandler {
  const { log } = options;
  const now = options.now ?? Date.now;
  const perSource = createRateLimit(SIGNER_BURST, SIGNER_PER_MINUTE, MAX_SOURCES, now);
  /** What one source may write into our log. */
  const perSourceLog = createRateLimit(10, 10, MAX_SOURCES, now);
  const openBySource = new Map<string, number>();
  let signerOpen = 0;
  let open = 0;

  async function serve(request: IncomingMessage, client: Duplex, head: Buffer, peer: Identity | undefined) {
    const source = request.socket.remoteAddress ?? '';
    const target = parseTarget(request.url ?? '');
    const { host } = request.headers;
    const said = { source, ...(peer === undefined ? {} : { peer }), target: request.url?.slice(0, 260) };
    // A Host that names another target than the request was written to be read in two ways.
    if (target === undefined || (host !== undefined && host !== request.url)) {
      return refuse(client, 400, 'bad-request', said);
    }
    const decision = decideConnect(peer, target, options.policy);
    switch (decision.kind) {
      case 'refuse':
        return refuse(client, 403, decision.reason, said);
      case 'host':
        // Addresses are judged before they are dialled, and nothing here does so yet.
        return refuse(client, 403, 'host-not-allowed', said);
      case 'signer':
        break;
    }
    const fromSource = openBySource.get(source) ?? 0;
    if (signerOpen >= SIGNER_AT_ONCE || fromSource >= SIGNER_AT_ONCE_PER_SOURCE || !perSource.take(source)) {
      return refuse(client, 429, 'too-many', said);
    }
    signerOpen++;
    openBySource.set(source, fromSource + 1);
    try {
      const upstream = await dial(options.signer, options.signal);
      if (upstream === undefined) return refuse(client, 502, 'upstream-failed', said);
      options.count('signer');
      if (perSourceLog.take(source)) log.info({ ...said, decision: 'signer' }, 'connect');
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      await tunnel(client, upstream, head, options.signerBounds ?? SIGNER_BOUNDS);
    } finally {
      signerOpen--;
      const left = (openBySource.get(source) ?? 1) - 1;
      if (left > 0) openBySource.set(source, left);
      else openBySource.delete(source);
    }
  }

  function refuse(client: Duplex, status: number, outcome: EgressOutcome, said: object): void {
    options.count(outcome);
    const source = 'source' in said && typeof said.source === 'string' ? said.source : '';
    if (perSourceLog.take(source)) log.warn({ ...said, decision: 'refuse', reason: outcome }, 'connect');
    const body = JSON.stringify({ error: { code: outcome, message: MESSAGES[outcome] } });
    client.end(
      `HTTP/1.1 ${status} ${STATUS_TEXT[status] ?? 'Refused'}\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
    );
    // Whatever else it sends is not read; it may not hold the connection open either.
    client.resume();
    const timer = setTimeout(() => client.destroy(), 1_000);
    client.once('close', () => clearTimeout(timer));
  }

  return {
    onRequest(request, response) {
      options.count('bad-request');
      const body = JSON.stringify({ error: { code: 'bad-request', message: MESSAGES['bad-request'] } });
      response.writeHead(405, {
        allow: 'CONNECT',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        connection: 'close',
      });
      response.end(body);
      request.resume();
    },
    onConnect(request, socket, head, peer) {
      open++;
      socket.on('error', () => socket.destroy());
      serve(request, socket, head, peer)
        .catch((error) => {
          log.error({ error }, 'bug: a tunnel failed');
          socket.destroy();
        })
        .finally(() => open--);
    },
    open: () => open,
  };
}

/** Undefined when nobody answers in time. */
function dial(address: { host: string; port: number }, signal: AbortSignal): Promise<Socket | undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(undefined);
    const socket = connect({ ...address, noDelay: true });
    const settle = (result: Socket | undefined) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', fail);
      socket.removeListener('error', fail);
      if (result === undefined) socket.on('error', () => {}).destroy();
      resolve(result);
    };
    const fail = () => settle(undefined);
    const timer = setTimeout(fail, DIAL_TIMEOUT_MS);
    signal.addEventListener('abort', fail, { once: true });
    socket.once('error', fail);
    socket.once('connect', () => settle(socket));
  });
}

const STATUS_TEXT: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  429: 'Too Many Requests',
  502: 'Bad Gateway',
};

const MESSAGES: Record<EgressOutcome, string> = {
  signer: '',
  connected: '',
  'no-identity': 'without a certificate only the signer of identities is open',
  'not-a-tool': 'egress is for tools',
  'host-not-allowed': 'this host is not on the list of hosts that the tool may reach',
  'bad-request': 'CONNECT <host>:<port> is all there is',
  'too-many': 'too many requests from this address',
  'upstream-failed': 'the other side did not answer',
};
