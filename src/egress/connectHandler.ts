/**
 * CONNECT: describes what is asked, decides (`domain/egress`), dials and carries bytes. One log line after the decision, and one
 * where a tunnel did not simply end. Of a tunnel only the first bytes are looked at, and none are kept or logged.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { decideHello, readClientHello } from '../domain/egress/clientHello.ts';
import { decideConnect, type EgressPolicy, type ToolIdentity } from '../domain/egress/decideConnect.ts';
import { type ConnectTarget, formatTarget, type HostPattern, parseTarget } from '../domain/egress/host.ts';
import type { AddressVerdict, Destination, NetworkClass } from '../domain/egress/judgeAddress.ts';
import type { Identity } from '../domain/identity/identity.ts';
import { dialHost } from '../net/dialHost.ts';
import { dialNamed } from '../net/dialNamed.ts';
import { createRateLimit } from '../net/rateLimit.ts';
import type { Resolve } from '../net/resolve.ts';
import type { Log } from '../runtime/log.ts';
import type { ModelRoute } from './modelRoute.ts';
import { answerOf, type EgressOutcome, type Refused, writeAnswer } from './refusal.ts';
import { createToolLimits, TOOL_LIMITS, type ToolLimitOptions } from './toolLimits.ts';
import { type TunnelBounds, type TunnelResult, tunnel } from './tunnel.ts';

export interface ConnectHandlerOptions {
  readonly policy: EgressPolicy;
  /** Entries of a tool's list that cannot be read, in words. */
  readonly problems?: (tool: ToolIdentity) => readonly string[];
  readonly judge: (address: string, destination: Destination) => AddressVerdict;
  readonly resolve: Resolve;
  /** Where the signer answers. */
  readonly signer: { readonly host: string; readonly port: number };
  readonly signerBounds?: TunnelBounds;
  /** Unset: the cluster has no model gateway. */
  readonly model?: ModelRoute;
  readonly toolBounds?: TunnelBounds;
  readonly toolLimits?: Partial<ToolLimitOptions>;
  readonly dialTimeoutMs?: number;
  readonly log: Log;
  readonly count: (outcome: EgressOutcome) => void;
  readonly countRefusedAddress?: (what: NetworkClass) => void;
  /** A tunnel of a tool ended. */
  readonly countEnd?: (result: TunnelResult) => void;
  readonly signal: AbortSignal;
  readonly now?: () => number;
}

export interface ConnectHandler {
  readonly onRequest: (request: IncomingMessage, response: ServerResponse) => void;
  readonly onConnect: (request: IncomingMessage, socket: Duplex, head: Buffer, peer: Identity | undefined) => void;
  /** Ends tunnels that what is known now would not open. */
  readonly recheck: () => void;
  /**
   * The process ends: tunnels into networks that an admin opened end now, since what replaces this process may have been told otherwise
   * [N09], those to the model gateway after their next answer.
   */
  readonly wane: () => void;
  /** Tunnels that are open. */
  readonly open: () => number;
}

interface LiveTunnel {
  /** Whether it would be opened now. */
  readonly allowed: () => boolean;
  /** It leads into a network that an admin opened. */
  readonly opened: boolean;
  readonly end: () => void;
}

const DIAL_TIMEOUT_MS = 5_000;
/** A request and its answer take some 4 KiB and well under a second. */
const SIGNER_BOUNDS: TunnelBounds = { maxMs: 15_000, maxBytes: 128 * 1024 };
/** An hour is as long as the certificate lives that opened it; half an hour is a tool's longest call, which may be silent. */
export const TOOL_BOUNDS: TunnelBounds = { maxMs: 3_600_000, maxBytes: 4 * 2 ** 30, idleMs: 31 * 60_000 };
const HELLO_WITHIN_MS = 10_000;
const SIGNER_BURST = 20;
const SIGNER_PER_MINUTE = 20;
const SIGNER_AT_ONCE = 256;
const SIGNER_AT_ONCE_PER_SOURCE = 4;
const MAX_SOURCES = 20_000;
/** Lines that one tool may write into our log in a minute, and one source that is no tool; all of them are counted. */
const TOOL_LINES = 1_000;
const SOURCE_LINES = 20;

export function createConnectHandler(options: ConnectHandlerOptions): ConnectHandler {
  const { log, policy, signal } = options;
  const now = options.now ?? Date.now;
  const perSource = createRateLimit(SIGNER_BURST, SIGNER_PER_MINUTE, MAX_SOURCES, now);
  const toolLines = createRateLimit(TOOL_LINES, TOOL_LINES, MAX_SOURCES, now);
  const sourceLines = createRateLimit(SOURCE_LINES, SOURCE_LINES, MAX_SOURCES, now);
  const limits = createToolLimits({ ...TOOL_LIMITS, ...options.toolLimits }, now);
  const openBySource = new Map<string, number>();
  const live = new Set<LiveTunnel>();
  let signerOpen = 0;
  let open = 0;

  interface Asked {
    readonly client: Duplex;
    readonly head: Buffer;
    readonly source: string;
    readonly peer: Identity | undefined;
    readonly target: ConnectTarget;
  }

  async function serve(request: IncomingMessage, client: Duplex, head: Buffer, peer: Identity | undefined) {
    const source = request.socket.remoteAddress ?? '';
    const target = parseTarget(request.url ?? '');
    // A Host that names another target than the request, or a second one, was written to be read in two ways.
    const hosts = request.rawHeaders.filter((_, i, raw) => i % 2 === 1 && raw[i - 1]?.toLowerCase() === 'host');
    if (target === undefined || hosts.length > 1 || (hosts.length === 1 && hosts[0] !== request.url)) {
      return refuse(client, source, { reason: 'bad-request', peer });
    }
    const asked: Asked = { client, head, source, peer, target };
    const decision = decideConnect(peer, target, policy);
    switch (decision.kind) {
      case 'refuse': {
        const problems = peer?.kind === 'tool' ? (options.problems?.(peer) ?? []) : [];
        return refuse(client, source, { reason: decision.reason, peer, target, problems });
      }
      case 'signer':
        return serveSigner(asked);
      case 'host':
        // `decideConnect` gives hosts to tools only.
        if (peer?.kind !== 'tool') return refuse(client, source, { reason: 'not-a-tool', peer, target });
        return serveHost(asked, peer, decision.pattern);
      case 'model':
        if (peer?.kind !== 'tool') return refuse(client, source, { reason: 'not-a-tool', peer, target });
        return serveModel(asked, peer);
    }
  }

  async function serveSigner({ client, head, source, peer, target }: Asked) {
    const fromSource = openBySource.get(source) ?? 0;
    if (signerOpen >= SIGNER_AT_ONCE || fromSource >= SIGNER_AT_ONCE_PER_SOURCE || !perSource.take(source)) {
      return refuse(client, source, { reason: 'too-many', peer, target });
    }
    signerOpen++;
    openBySource.set(source, fromSource + 1);
    try {
      const upstream = await dialNamed({ ...options.signer, timeoutMs: DIAL_TIMEOUT_MS, signal });
      if (upstream === undefined) return refuse(client, source, { reason: 'upstream-failed', peer, target });
      options.count('signer');
      say('info', source, peer, { target: formatTarget(target), decision: 'signer' });
      accept(client);
      await tunnel({ client, upstream, head, bounds: options.signerBounds ?? SIGNER_BOUNDS }).ended;
    } finally {
      signerOpen--;
      const left = (openBySource.get(source) ?? 1) - 1;
      if (left > 0) openBySource.set(source, left);
      else openBySource.delete(source);
    }
  }

  async function serveHost({ client, head, source, peer, target }: Asked, tool: ToolIdentity, pattern: HostPattern) {
    const key = keyOf(tool);
    const refusal = { peer, target };
    const release = limits.take(key);
    if (release === undefined) return refuse(client, source, { reason: 'too-many', ...refusal });
    try {
      if (pattern.wildcard && !limits.takeName(key, target.host)) {
        return refuse(client, source, { reason: 'too-many-names', ...refusal });
      }
      const gone = new AbortController();
      const leave = () => gone.abort();
      client.once('close', leave);
      const dialled = await dialHost({
        target,
        judge: (address) => options.judge(address, { namespace: tool.namespace, port: target.port }),
        resolve: options.resolve,
        signal: AbortSignal.any([signal, gone.signal]),
        timeoutMs: options.dialTimeoutMs ?? DIAL_TIMEOUT_MS,
      });
      client.off('close', leave);
      if (dialled.kind !== 'connected') {
        const found = {
          ...('class' in dialled ? { class: dialled.class } : {}),
          ...('code' in dialled ? { code: dialled.code } : {}),
        };
        const address = 'address' in dialled ? { address: dialled.address } : {};
        return refuse(
          client,
          source,
          { reason: dialled.kind, ...refusal, ...found },
          { ...address, pattern: pattern.text },
        );
      }
      await carry(dialled, { client, head, source, peer, target }, tool, pattern);
    } finally {
      release();
    }
  }

  async function serveModel({ client, head, source, peer, target }: Asked, tool: ToolIdentity) {
    const { model } = options;
    if (model === undefined) return refuse(client, source, { reason: 'no-model-gateway', peer, target });
    const release = limits.take(keyOf(tool));
    if (release === undefined) return refuse(client, source, { reason: 'too-many', peer, target });
    try {
      options.count('model');
      say('info', source, tool, { target: formatTarget(target), decision: 'model' });
      accept(client);
      if (head.length > 0) client.unshift(head);
      const { ended, end } = model.serve(client, tool);
      const allowed = () => decideConnect(tool, target, policy).kind === 'model';
      const entry: LiveTunnel = { allowed, opened: false, end };
      live.add(entry);
      await ended;
      live.delete(entry);
    } finally {
      release();
    }
  }

  async function carry(
    dialled: {
      readonly socket: Socket;
      readonly address: string;
      readonly class: NetworkClass;
      readonly opened: boolean;
    },
    { client, head, source, target }: Asked,
    tool: ToolIdentity,
    pattern: HostPattern,
  ) {
    const { address, opened, socket } = dialled;
    const said = {
      target: formatTarget(target),
      pattern: pattern.text,
      address,
      class: dialled.class,
    };
    options.count('connected');
    say('info', source, tool, { ...said, decision: 'connect' });
    accept(client);
    const started = now();
    const running = tunnel({
      client,
      upstream: socket,
      head,
      bounds: options.toolBounds ?? TOOL_BOUNDS,
      first: {
        judge: (bytes) => decideHello(readClientHello(bytes), target),
        ...(target.port === 443 ? { withinMs: HELLO_WITHIN_MS } : {}),
      },
    });
    const allowed = () =>
      decideConnect(tool, target, policy).kind === 'host' &&
      options.judge(address, { namespace: tool.namespace, port: target.port }).kind === 'dial';
    const entry: LiveTunnel = { allowed, opened, end: () => running.end('no-longer-allowed') };
    live.add(entry);
    // The configuration may have changed while the host was dialled.
    if (!allowed()) entry.end();
    const result = await running.ended;
    live.delete(entry);
    options.countEnd?.(result);
    if (result.end !== 'ended') {
      const { end, bytesUp, bytesDown } = result;
      say('warn', source, tool, { ...said, decision: 'cut', reason: end, bytesUp, bytesDown, ms: now() - started });
    }
  }

  function say(level: 'info' | 'warn', source: string, peer: Identity | undefined, fields: object): void {
    const room = peer?.kind === 'tool' ? toolLines.take(keyOf(peer)) : sourceLines.take(source);
    if (room) log[level]({ source, ...(peer === undefined ? {} : { peer }), ...fields }, 'connect');
  }

  function refuse(client: Duplex, source: string, refused: Refused, more: object = {}): void {
    const { reason, peer, target, class: what, code } = refused;
    options.count(reason);
    if (what !== undefined) options.countRefusedAddress?.(what);
    say('warn', source, peer, {
      target: shown(target),
      decision: 'refuse',
      reason,
      ...(what === undefined ? {} : { class: what }),
      ...(code === undefined ? {} : { code }),
      ...more,
    });
    client.end(writeAnswer(answerOf(refused)));
    // Whatever else it sends is not read; it may not hold the connection open either.
    client.resume();
    const timer = setTimeout(() => client.destroy(), 1_000);
    client.once('close', () => clearTimeout(timer));
  }

  return {
    onRequest(request, response) {
      options.count('bad-request');
      const { status, headers, body } = answerOf({ reason: 'bad-request', peer: undefined }, 405);
      response.writeHead(status, { ...headers }).end(body);
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
    recheck() {
      for (const { allowed, end } of [...live]) if (!allowed()) end();
    },
    wane() {
      options.model?.wane();
      for (const { opened, end } of [...live]) if (opened) end();
    },
    open: () => open,
  };
}

function accept(client: Duplex): void {
  client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
}

function keyOf({ namespace, tool }: ToolIdentity): string {
  return `${namespace}/${tool}`;
}

/** A target as the log shows it. One that could not be read, or looks as if it carried data, is withheld: it may be a secret. */
function shown(target: ConnectTarget | undefined): string {
  if (target === undefined) return 'withheld: not a host and port';
  const labels = target.host.split('.');
  const odd = target.kind === 'name' && (target.host.length > 100 || labels.some((label) => label.length > 40));
  return odd ? `withheld: ${target.host.length} characters` : formatTarget(target);
}
