/**
 * One connection of the tool to its proxy: describes what is asked, decides (`domain/credential`), does. A connection to a
 * bound host has one to the host beside it and no other, so what goes wrong on one is never another request's.
 */
import type { Duplex } from 'node:stream';
import type { SecureContext } from 'node:tls';
import type { SecretBinding } from '../../domain/config/sidecar.ts';
import { decideInjection, type Injection } from '../../domain/credential/decideInjection.ts';
import { authorityOf, decideRequest, type Site } from '../../domain/credential/decideRequest.ts';
import { decideTunnel, type TunnelDecision } from '../../domain/credential/decideTunnel.ts';
import { parseRequestHead, type RequestHead } from '../../domain/credential/requestHead.ts';
import type { OpenTunnel } from '../../net/egressTunnel.ts';
import { acceptTls } from './acceptTls.ts';
import { type ByteReader, createByteReader, writeAll } from './byteReader.ts';
import { endClient } from './endClient.ts';
import { type ExchangeEnd, runExchange } from './exchange.ts';
import { joinStreams } from './joinStreams.ts';
import type { ProxyLimits } from './limits.ts';
import type { PodAuthority } from './podAuthority.ts';
import { answerRefusal, type ProxyRefusal } from './refusal.ts';
import { openUpstream, openWay, type Upstream, UpstreamError } from './upstream.ts';

export interface ProxyContext {
  readonly bindings: readonly SecretBinding[];
  /** As it stands now: asked for each request. */
  readonly injection: () => Injection;
  readonly authority: PodAuthority;
  readonly openTunnel: OpenTunnel;
  /** By what the certificates of hosts are verified. */
  readonly trust: () => SecureContext;
  readonly limits: ProxyLimits;
  readonly note: (decision: ProxyNote) => void;
  readonly signal: AbortSignal;
}

/** What is said of a request: never its target, headers or body. */
export interface ProxyNote {
  readonly decision: 'tunnel' | 'send' | 'refuse';
  readonly host?: string;
  readonly port?: number;
  readonly reason?: ProxyRefusal;
  readonly injected?: readonly string[];
}

/** Resolves when the connection is done with; it may linger until its last answer is read. */
export async function serveClient(client: Duplex, context: ProxyContext): Promise<void> {
  const { limits, note } = context;
  const reader = createByteReader(client);
  const head = await readHead(reader, limits, limits.firstByteMs);
  if (head === undefined) {
    client.destroy();
    return;
  }
  const decision: TunnelDecision | { do: 'refuse'; reason: ProxyRefusal } =
    typeof head === 'string' ? { do: 'refuse', reason: head } : decideTunnel(head, context.bindings);
  switch (decision.do) {
    case 'refuse':
      note({ decision: 'refuse', reason: decision.reason });
      answerRefusal(client, decision.reason);
      return;
    case 'tunnel':
      return openTunnelFor(client, reader, decision, context);
    case 'open-up': {
      const { host, port } = decision;
      await writeAll(client, 'HTTP/1.1 200 Connection Established\r\n\r\n', limits.handshakeMs);
      reader.release();
      const tls = await acceptTls(client, host, context.authority.contextFor, limits.handshakeMs);
      if (tls === undefined) return;
      const websocket = context.bindings.some((each) => each.host === host && each.port === port && each.websocket);
      const site: Site = { host, port, scheme: 'https', websocket };
      await serveSite(tls, createByteReader(tls), site, context);
      return;
    }
    case 'send-plain': {
      const { host, port } = decision;
      const site: Site = { host, port, scheme: 'http', websocket: false };
      await serveSite(client, reader, site, context, decision.head);
    }
  }
}

async function openTunnelFor(
  client: Duplex,
  reader: ByteReader,
  target: { host: string; port: number },
  context: ProxyContext,
): Promise<void> {
  const { limits, note } = context;
  try {
    const upstream = await openWay(target, { ...context, connectMs: limits.connectMs });
    note({ decision: 'tunnel', host: target.host, port: target.port });
    await writeAll(client, 'HTTP/1.1 200 Connection Established\r\n\r\n', limits.connectMs);
    reader.release();
    await joinStreams(client, upstream, limits.tunnelIdleMs);
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    note({ decision: 'refuse', host: target.host, port: target.port, reason: error.problem });
    answerRefusal(client, error.problem, error.reason());
  }
}

/** Requests to one host, one after the other. @param first a request that was read already; then it is the only one */
async function serveSite(
  client: Duplex,
  reader: ByteReader,
  site: Site,
  context: ProxyContext,
  first?: RequestHead,
): Promise<void> {
  const { limits, note } = context;
  const { host, port } = site;
  let upstream: Upstream | undefined;
  let unwatch = (): void => {};
  const refuse = (reason: ProxyRefusal, detail?: string): void => {
    note({ decision: 'refuse', host, port, reason });
    answerRefusal(client, reason, detail);
  };
  try {
    for (let reused = false; ; reused = true) {
      const head = first ?? (await readHead(reader, limits, limits.keepAliveMs));
      if (head === undefined) {
        client.destroy();
        return;
      }
      if (typeof head === 'string') return refuse(head);
      const request = decideRequest(head, site);
      if (request.do === 'refuse') return refuse(request.reason);
      const injection = context.injection();
      const put = decideInjection({ target: head.target, fields: request.fields, site }, injection);
      if (put.do === 'refuse') return refuse(put.reason);
      upstream ??= await openUpstream(site, { ...context, connectMs: limits.connectMs });
      // A host that spoke or hung up in between has ended this connection.
      if (reused && (upstream.reader.ahead() || upstream.stream.destroyed)) {
        client.destroy();
        return;
      }
      unwatch();
      note({ decision: 'send', host, port, injected: put.injected });
      const end: ExchangeEnd = await runExchange(
        {
          client,
          clientReader: reader,
          upstream,
          method: head.method,
          target: put.target,
          fields: put.fields,
          authority: authorityOf(site),
          request: first === undefined ? request : { ...request, keepAlive: false },
          injection,
          limits,
        },
        reused,
      );
      switch (end.kind) {
        case 'again':
          unwatch = watch(upstream, client);
          continue;
        case 'done':
          endClient(client, LAST_BYTES_MS);
          return;
        case 'stale':
          client.destroy();
          return;
        case 'refused':
          note({ decision: 'refuse', host, port, reason: end.refusal });
          return;
      }
    }
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error;
    refuse(error.problem, error.reason());
  } finally {
    upstream?.stream.destroy();
  }
}

/** A slow reader may take this long for the end of its answer. */
const LAST_BYTES_MS = 30_000;

/**
 * Between two requests nothing comes from the host; if something does, even its end, the tool's connection ends as well.
 * @returns ends the watch
 */
function watch(upstream: Upstream, client: Duplex): () => void {
  const spoke = (): void => {
    upstream.stream.destroy();
    endClient(client, LAST_BYTES_MS);
  };
  upstream.stream.on('readable', spoke);
  upstream.stream.once('close', spoke);
  return () => {
    upstream.stream.removeListener('readable', spoke);
    upstream.stream.removeListener('close', spoke);
  };
}

/** Undefined: there is no further request. */
async function readHead(
  reader: ByteReader,
  limits: ProxyLimits,
  idleMs: number,
): Promise<RequestHead | ProxyRefusal | undefined> {
  const outcome = await reader.readHead({ maxBytes: limits.maxRequestHeadBytes, idleMs, headMs: limits.headMs });
  switch (outcome.kind) {
    case 'end':
    case 'cut-off':
      return undefined;
    case 'too-large':
      return 'head-too-large';
    case 'too-slow':
      return 'head-too-slow';
    case 'head': {
      const reading = parseRequestHead(outcome.bytes);
      return reading.ok ? reading.head : reading.problem;
    }
  }
}
