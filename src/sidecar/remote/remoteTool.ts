/**
 * A tool that is a remote server: connected to once the walls hold, looked at from time to time, connected to anew with a
 * back-off when it is lost. Calls are sent once. It is served as a local tool's process is.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { SidecarConfig, SidecarStatus } from '../../domain/config/sidecar.ts';
import type { Snapshot } from '../../domain/snapshot/snapshotListing.ts';
import type { RemoteOutcome } from '../../mcp/streamableHttpOutcome.ts';
import { encodeHeaderValue } from '../../mcp/wire/header.ts';
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { scanParamHeaders } from '../../mcp/wire/paramHeader.ts';
import type { OpenTunnel } from '../../net/egressTunnel.ts';
import { originTrust } from '../../net/originTls.ts';
import { decideCall } from '../decideCall.ts';
import { listAll } from '../listAll.ts';
import type { Log } from '../log.ts';
import { createNoiseGate } from '../noiseGate.ts';
import { hasOtherDefinition, isExpired, type SidecarCall, toolMeta } from '../sidecarCall.ts';
import { escapeControls } from '../stderrTail.ts';
import type { CallOutcome } from '../toolProcess.ts';
import type { Opened } from '../toolSession.ts';
import type { FilledHeaders } from './fillHeaders.ts';
import { openSession, speaksModern } from './openSession.ts';
import { describeOutcome, type RemoteSession } from './remoteSession.ts';
import { createRemoteWire } from './remoteWire.ts';
import { serverConnect } from './serverConnect.ts';

export interface RemoteTiming {
  /** For finding out the era, and for the first listing. */
  readonly startMs: number;
  readonly listMs: number;
  readonly backoffFirstMs: number;
  readonly backoffLongestMs: number;
  /** Connected for so long, the next back-off is the first again. */
  readonly healthyMs: number;
  /** Between two looks at a server that says nothing. */
  readonly lookMs: number;
  /** Between two listings, however often the server says that it changed. */
  readonly relistMs: number;
  /** Before a look that failed is tried again, and how often it may fail. */
  readonly lookAgainMs: number;
  readonly looks: number;
  /** How long a server counts as one of the older era before it is asked again. */
  readonly verdictMs: number;
  readonly drainWindowMs: number;
  readonly graceMs: number;
}

export const REMOTE_TIMING: RemoteTiming = {
  startMs: 60_000,
  listMs: 60_000,
  backoffFirstMs: 1_000,
  backoffLongestMs: 60_000,
  healthyMs: 60_000,
  lookMs: 300_000,
  relistMs: 2_000,
  lookAgainMs: 1_000,
  looks: 3,
  verdictMs: 3_600_000,
  drainWindowMs: 3_000,
  graceMs: 5_000,
};

/** What comes of a call beside what comes of a process' one. */
export type RemoteCallOutcome =
  | CallOutcome
  /** The server was not reached. */
  | { readonly kind: 'unreachable'; readonly problem: string }
  /** The server refused before it looked at the call: it was not made. */
  | { readonly kind: 'refused-by-server'; readonly problem: string }
  /** It left, and no answer came that can be read. */
  | { readonly kind: 'lost'; readonly problem: string };

export interface RemoteOptions {
  readonly url: URL;
  readonly headersNow: () => FilledHeaders;
  readonly openTunnel: OpenTunnel;
  /** Trusted beside the public authorities, PEM. */
  readonly upstreamCa?: string;
  readonly config: Pick<SidecarConfig, 'timeoutMs' | 'concurrency' | 'maxMessageBytes'>;
  readonly log: Log;
  readonly timing?: Partial<RemoteTiming>;
}

export interface RemoteTool {
  /** Why a call would be refused now, before anything of it is done. */
  readonly refusal: (call: SidecarCall) => RemoteCallOutcome | undefined;
  readonly call: (call: SidecarCall) => Promise<RemoteCallOutcome>;
  readonly listing: () => Snapshot | undefined;
  /** Calls back when the listing's hash changed, or the listing came or went. */
  readonly onListing: (listener: () => void) => () => void;
  readonly status: () => Pick<SidecarStatus, 'phase' | 'problem' | 'process' | 'server' | 'listing'>;
  /** Whether the walls hold; nothing is sent while they do not. */
  readonly setSandbox: (holds: boolean, problem: string | undefined) => void;
  /** The headers may be others now: a wait for the next try is over. */
  readonly wake: () => void;
  /** The pod ends: resolves when no call runs any more, or has run for as long as it may. */
  readonly drain: () => Promise<void>;
  readonly close: () => Promise<void>;
}

interface Life {
  session: RemoteSession;
  snapshot: Snapshot;
  /** Cuts calls. */
  readonly cut: AbortController;
  running: number;
}

type LifeEnd = { readonly kind: 'lost'; readonly problem: string } | { readonly kind: 'walls' | 'closing' | 'renew' };

const INSECURE: FilledHeaders = {
  ok: false,
  problem: 'a remote server is reached by https://, and without a user name in its URL',
};
const LONGEST_PROBLEM = 1_000;
/** A server that asks for more patience than this is asked all the same. */
const LONGEST_PATIENCE_MS = 300_000;

export function startRemote(options: RemoteOptions): RemoteTool {
  const { config, log, url } = options;
  const timing = { ...REMOTE_TIMING, ...options.timing };
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const wire = createRemoteWire({
    server: {
      connect: serverConnect({
        openTunnel: options.openTunnel,
        host,
        port: url.port === '' ? 443 : Number(url.port),
        trust: originTrust(options.upstreamCa),
      }),
      authority: url.host,
      path: `${url.pathname}${url.search}`,
    },
    // What is read by all on the way is never sent, whatever admitted such a URL.
    headersNow: url.protocol === 'https:' && url.username === '' ? options.headersNow : () => INSECURE,
    maxMessageBytes: config.maxMessageBytes,
    gate: createNoiseGate,
  });
  const closing = new AbortController();
  const listeners = new Set<() => void>();
  const wakers = new Set<() => void>();
  let walls: { holds: boolean; problem: string | undefined } = {
    holds: false,
    problem: 'the sandbox is not proved yet',
  };
  let life: Life | undefined;
  let problem: string | undefined;
  let waitingBackoff = false;
  let starts = 0;
  let legacySeenMs: number | undefined;
  let running = 0;
  let draining = false;
  let refusing = false;
  /** A look at the server is wanted: its listing may have changed, or it may be gone. */
  let lookWanted = false;

  const changed = (): void => {
    for (const wake of [...wakers]) wake();
  };
  const told = (): void => {
    for (const listener of [...listeners]) listener();
  };
  /** Resolves when the condition is true, the time is over or all closes. */
  const until = async (condition: () => boolean, withinMs?: number): Promise<void> => {
    const over = withinMs === undefined ? undefined : Date.now() + withinMs;
    while (!condition() && !closing.signal.aborted && (over === undefined || Date.now() < over)) {
      await new Promise<void>((resolve) => {
        const timer = over === undefined ? undefined : setTimeout(() => wake(), Math.max(1, over - Date.now()));
        const wake = (): void => {
          clearTimeout(timer);
          wakers.delete(wake);
          resolve();
        };
        wakers.add(wake);
      });
    }
  };
  const want = (): void => {
    lookWanted = true;
    changed();
  };
  const fresh = (): boolean => legacySeenMs !== undefined && Date.now() - legacySeenMs < timing.verdictMs;

  async function list(session: RemoteSession, timeoutMs: number, signal: AbortSignal): Promise<Opened<Snapshot>> {
    return listAll(session.instructions, timeoutMs, async (params, leftMs) => {
      const outcome = await session.request({ method: 'tools/list', params, timeoutMs: leftMs, signal });
      if (outcome.kind !== 'result') return { ok: false, problem: describeOutcome('tools/list', outcome) };
      return { ok: true, value: outcome.result };
    });
  }

  async function open(): Promise<Opened<{ session: RemoteSession; snapshot: Snapshot }> & { retryAfterMs?: number }> {
    const cut = new AbortController();
    const stop = (): void => {
      if (!walls.holds) cut.abort(new Error('the walls do not hold'));
    };
    wakers.add(stop);
    const signal = AbortSignal.any([closing.signal, cut.signal]);
    try {
      const { startMs: timeoutMs } = timing;
      const opened = await openSession(wire, { legacyFirst: fresh(), timeoutMs, signal, onListChanged: want });
      if (!opened.ok) return opened;
      const { session } = opened;
      if (session.era === 'legacy' && !fresh()) legacySeenMs = Date.now();
      if (session.era === 'modern') legacySeenMs = undefined;
      const listed = await list(session, timing.listMs, signal);
      if (listed.ok) return { ok: true, value: { session, snapshot: listed.value } };
      await session.close();
      return listed;
    } finally {
      wakers.delete(stop);
    }
  }

  async function run(): Promise<void> {
    let backoffMs = timing.backoffFirstMs;
    while (!closing.signal.aborted) {
      await until(() => walls.holds);
      if (closing.signal.aborted) return;
      lookWanted = false;
      const opened = await open();
      if (closing.signal.aborted) {
        if (opened.ok) await opened.value.session.close();
        return;
      }
      const begun = Date.now();
      let patienceMs = 0;
      if (opened.ok) {
        const end = await live(opened.value);
        if (end.kind === 'renew') continue;
        lose();
        if (end.kind !== 'lost') continue;
        problem = end.problem;
      } else {
        lose();
        if (!walls.holds) continue;
        patienceMs = Math.min(opened.retryAfterMs ?? 0, LONGEST_PATIENCE_MS);
        problem = opened.problem;
      }
      problem = escapeControls(problem).slice(0, LONGEST_PROBLEM);
      if (Date.now() - begun >= timing.healthyMs) backoffMs = timing.backoffFirstMs;
      const waitMs = Math.max(patienceMs, Math.round(backoffMs * (0.75 + Math.random() / 2)));
      log('warn', 'the remote server cannot be used now', { problem, afterMs: waitMs });
      waitingBackoff = true;
      lookWanted = false;
      let woken = false;
      const wake = (): void => {
        woken ||= lookWanted || !walls.holds;
      };
      wakers.add(wake);
      await until(() => woken, waitMs);
      wakers.delete(wake);
      waitingBackoff = false;
      backoffMs = Math.min(backoffMs * 2, timing.backoffLongestMs);
    }
  }

  /** From a listing that was read to the loss of the server. */
  async function live(opened: { session: RemoteSession; snapshot: Snapshot }): Promise<LifeEnd> {
    const current: Life = { ...opened, cut: new AbortController(), running: 0 };
    const { session } = current;
    const before = life;
    life = current;
    starts++;
    problem = undefined;
    publish(current, opened.snapshot, before?.snapshot);
    if (before !== undefined) void retire(before);
    log('info', 'the remote server is ready', { ...session.server, functions: opened.snapshot.functions.length });
    const stop = new AbortController();
    const signal = AbortSignal.any([closing.signal, stop.signal]);
    if (session.tellsChanges) void listen(session, signal);
    try {
      for (let lookedMs = Date.now(); ; lookedMs = Date.now()) {
        // Not all pods of a tool at the same time.
        const pauseMs = timing.lookMs * (0.9 + Math.random() / 5);
        await until(() => lookWanted || !walls.holds, pauseMs);
        if (closing.signal.aborted) return { kind: 'closing' };
        if (!walls.holds) return { kind: 'walls' };
        if (lookWanted) await until(() => !walls.holds, Math.max(0, lookedMs + timing.relistMs - Date.now()));
        lookWanted = false;
        // A verdict of the older era that is never looked at again would stay for ever.
        if (session.era === 'legacy' && !fresh()) {
          legacySeenMs = Date.now();
          if (await speaksModern(wire, timing.listMs, signal)) {
            legacySeenMs = undefined;
            return { kind: 'renew' };
          }
        }
        const looked = await look(session, signal);
        if (closing.signal.aborted || !walls.holds) continue;
        if (!looked.ok) return { kind: 'lost', problem: looked.problem };
        publish(current, looked.value, current.snapshot);
      }
    } finally {
      stop.abort(new Error('the server was lost'));
    }
  }

  /** Reads the listing; one failure is none. */
  async function look(session: RemoteSession, signal: AbortSignal): Promise<Opened<Snapshot>> {
    for (let tries = 1; ; tries++) {
      const listed = await list(session, timing.listMs, signal);
      if (listed.ok || tries >= timing.looks || signal.aborted || !walls.holds) return listed;
      await sleep(timing.lookAgainMs * tries, undefined, { signal }).catch(() => {});
    }
  }

  function publish(current: Life, snapshot: Snapshot, before: Snapshot | undefined): void {
    current.snapshot = snapshot;
    if (before?.hash !== snapshot.hash) {
      for (const held of snapshot.heldBack) log('warn', 'a function is held back', held);
      told();
    }
    changed();
  }

  /** Keeps one stream for changes open, where the server has one: a stream that ends is opened again, ever more slowly. */
  async function listen(session: RemoteSession, signal: AbortSignal): Promise<void> {
    let pauseMs = timing.backoffFirstMs;
    while (!signal.aborted) {
      const begun = Date.now();
      let opened = false;
      const end = await session.listen(signal, () => {
        opened = true;
        // What changed while nobody listened was not told.
        want();
      });
      if (end === 'unsupported' || signal.aborted) return;
      if (opened && Date.now() - begun >= timing.healthyMs) pauseMs = timing.backoffFirstMs;
      await sleep(pauseMs * (1 + Math.random() / 2), undefined, { signal }).catch(() => {});
      pauseMs = Math.min(pauseMs * 2, timing.backoffLongestMs);
    }
  }

  function lose(): void {
    const last = life;
    life = undefined;
    if (last === undefined) return;
    if (!walls.holds || closing.signal.aborted) last.cut.abort(new Error('cut'));
    void retire(last);
    told();
    changed();
  }

  /** Ends a session once nobody waits for an answer in it. */
  async function retire(last: Life): Promise<void> {
    await until(() => last.running === 0, config.timeoutMs);
    if (walls.holds) await last.session.close();
  }

  function prepare(
    asked: SidecarCall,
  ): { current: Life; definition: JsonObject; params: JsonObject; meta: JsonObject } | RemoteCallOutcome {
    const current = life;
    const decision = decideCall({
      refusing,
      expired: isExpired(asked, Date.now()),
      process: !walls.holds ? 'down' : current !== undefined ? 'ready' : waitingBackoff ? 'down' : 'starting',
      condemned: false,
      otherDefinition: hasOtherDefinition(asked, current?.snapshot),
      running,
      concurrency: config.concurrency,
    });
    if (decision.kind === 'refuse') {
      const why = decision.reason === 'down' ? (walls.holds ? problem : walls.problem) : undefined;
      return why === undefined ? { kind: 'refused', reason: decision.reason } : { kind: 'unreachable', problem: why };
    }
    if (current === undefined) return { kind: 'refused', reason: 'down' };
    const definition = current.snapshot.tools.find((each) => each['name'] === asked.name);
    if (definition === undefined) return { kind: 'no-such-function' };
    const params = { name: asked.name, arguments: asked.arguments };
    const meta = toolMeta(asked);
    if (Buffer.byteLength(JSON.stringify([params, meta])) > config.maxMessageBytes) return { kind: 'call-too-large' };
    return { current, definition, params, meta };
  }

  async function call(asked: SidecarCall): Promise<RemoteCallOutcome> {
    const prepared = prepare(asked);
    if ('kind' in prepared) return prepared;
    const { current, definition, params, meta } = prepared;
    running++;
    current.running++;
    try {
      const outcome = await current.session.request({
        method: 'tools/call',
        params,
        ...(Object.keys(meta).length === 0 ? {} : { meta }),
        headers: current.session.era === 'modern' ? paramHeaders(definition, asked.arguments) : {},
        signal: AbortSignal.any([asked.signal, current.cut.signal]),
        timeoutMs: config.timeoutMs,
        ...(asked.startBy === undefined ? {} : { sendBy: asked.startBy }),
        ...(asked.progress === undefined ? {} : { onProgress: asked.progress }),
      });
      if (outcome.kind === 'not-sent' && isExpired(asked, Date.now())) {
        return { kind: 'refused', reason: 'grant-expired' };
      }
      if (outcome.kind === 'not-sent' || outcome.kind === 'refused') want();
      return outcomeOfCall(outcome, asked.signal.aborted);
    } finally {
      running--;
      current.running--;
      changed();
    }
  }

  async function drain(): Promise<void> {
    if (draining) return;
    draining = true;
    log('info', 'draining');
    told();
    if (running > 0 || life !== undefined) await until(() => false, timing.drainWindowMs);
    refusing = true;
    await until(() => running === 0, config.timeoutMs + timing.graceMs);
  }

  const ran = run().catch((error) => {
    log('error', 'bug: the remote tool failed', { reason: String(error) });
    problem = 'a bug of ours; see the log';
    life = undefined;
    waitingBackoff = true;
  });

  return {
    refusal(asked) {
      const prepared = prepare(asked);
      return 'kind' in prepared ? prepared : undefined;
    },
    call,
    listing: () => life?.snapshot,
    onListing(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    status() {
      const phase = draining
        ? 'Draining'
        : !walls.holds
          ? 'Down'
          : life !== undefined
            ? 'Ready'
            : waitingBackoff || problem !== undefined
              ? 'Down'
              : 'Starting';
      const said = walls.holds ? problem : walls.problem;
      return {
        phase,
        ...(said === undefined || phase === 'Ready' ? {} : { problem: said }),
        process: { starts },
        ...(life === undefined
          ? {}
          : {
              server: life.session.server,
              listing: { hash: life.snapshot.hash, functions: life.snapshot.functions },
            }),
      };
    },
    setSandbox(holds, why) {
      walls = { holds, problem: why };
      if (!holds) life?.cut.abort(new Error('the walls do not hold'));
      changed();
    },
    wake: want,
    drain,
    async close() {
      const last = life;
      last?.cut.abort(new Error('the sidecar closes'));
      closing.abort(new Error('the sidecar closes'));
      changed();
      await last?.session.close();
      life = undefined;
      wire.close();
      await ran;
    },
  };
}

/** Arguments that the function's schema wants in headers, too (2026-07-28). */
function paramHeaders(definition: JsonObject, args: JsonObject): Readonly<Record<string, string>> {
  const { inputSchema } = definition;
  const scanned = isObject(inputSchema) ? scanParamHeaders(inputSchema) : undefined;
  const headers: Record<string, string> = {};
  for (const { header, path } of scanned?.ok ? scanned.headers : []) {
    const value = path.reduce<unknown>((node, key) => (isObject(node) ? node[key] : undefined), args);
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
      headers[header] = encodeHeaderValue(String(value));
    }
  }
  return headers;
}

/** @param cancelled the caller went away, as opposed to us cutting the call */
function outcomeOfCall(outcome: RemoteOutcome, cancelled: boolean): RemoteCallOutcome {
  switch (outcome.kind) {
    case 'result':
      return isReadable(outcome.result)
        ? outcome
        : { kind: 'lost', problem: 'the server answered with no tool result' };
    case 'error':
      return { kind: 'error', error: outcome.error };
    case 'not-sent':
      return { kind: 'unreachable', problem: describeOutcome('tools/call', outcome) };
    case 'refused':
      return { kind: 'refused-by-server', problem: outcome.problem };
    case 'unknown': {
      if (outcome.reason === 'timeout') return { kind: 'unknown', reason: 'timeout' };
      const { problem, retryAfterMs } = outcome;
      const later = retryAfterMs === undefined ? '' : `; it asks to be left alone for ${retryAfterMs / 1_000} s`;
      return { kind: 'lost', problem: `${problem}${later}` };
    }
    case 'cancelled':
      if (cancelled) return { kind: 'cancelled' };
      return outcome.sent
        ? { kind: 'lost', problem: 'the pod cut the call off' }
        : { kind: 'unreachable', problem: 'the pod cut the call off before it was sent' };
  }
}

/** What is no tool result is no answer: nobody can say what it means. A result of another type is judged by who answers. */
function isReadable(result: JsonObject): boolean {
  const { resultType, content, structuredContent, isError } = result;
  if (resultType !== undefined && resultType !== 'complete') return true;
  if (isError !== undefined && typeof isError !== 'boolean') return false;
  return content === undefined ? structuredContent !== undefined : Array.isArray(content) && content.every(isObject);
}
