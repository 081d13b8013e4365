/**
 * Finds out which era a remote server speaks. The stateless one is tried first; an error that only it knows means that it
 * is spoken, whatever else the error says. Otherwise `initialize` is tried.
 */
import type { RemoteOutcome } from '../../mcp/streamableHttpOutcome.ts';
import { HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION } from '../../mcp/wire/errorCode.ts';
import { isObject, type RpcError } from '../../mcp/wire/jsonrpc.ts';
import { isLegacyVersion, MODERN_VERSION } from '../../mcp/wire/version.ts';
import { modernParams } from '../toolSession.ts';
import { openLegacySession } from './legacySession.ts';
import { modernHeaders, modernSession } from './modernSession.ts';
import { describeOutcome, type RemoteSession } from './remoteSession.ts';
import type { RemoteWire } from './remoteWire.ts';

export type SessionOpened =
  | { readonly ok: true; readonly session: RemoteSession }
  | { readonly ok: false; readonly problem: string; readonly retryAfterMs?: number };

export interface OpenOptions {
  /** The server was seen to speak the older era not long ago: that is tried first. */
  readonly legacyFirst: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly onListChanged: () => void;
}

/** A server that does not answer what it does not know is asked otherwise after this. */
const DISCOVER_MS = 15_000;
const DISCOVER = 'server/discover';

export async function openSession(wire: RemoteWire, options: OpenOptions): Promise<SessionOpened> {
  const until = Date.now() + options.timeoutMs;
  const leftMs = () => Math.max(1, until - Date.now());
  if (options.legacyFirst) {
    const opened = await openLegacySession(wire, leftMs(), options.signal, options.onListChanged);
    if (opened.ok) return opened;
    if (opened.outcome === undefined || !maySpeakOther(opened.outcome)) return failed(opened);
  }
  const discovered = await discover(wire, Math.min(DISCOVER_MS, leftMs() / 2), options.signal);
  const verdict = judgeDiscovery(discovered);
  if (verdict.era === 'modern') {
    // An error that names our version among those that are spoken is no description of the server; it works all the same.
    const description = discovered.kind === 'result' ? discovered.result : {};
    return { ok: true, session: modernSession(wire, description, options.onListChanged) };
  }
  if (verdict.era === 'none') return failed({ outcome: discovered, problem: verdict.problem });
  const opened = await openLegacySession(wire, leftMs(), options.signal, options.onListChanged);
  return opened.ok ? opened : failed(opened);
}

/** Whether the server speaks the stateless era now. */
export async function speaksModern(wire: RemoteWire, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
  return judgeDiscovery(await discover(wire, timeoutMs, signal)).era === 'modern';
}

function discover(wire: RemoteWire, timeoutMs: number, signal: AbortSignal): Promise<RemoteOutcome> {
  return wire.request({
    method: DISCOVER,
    params: () => modernParams({}),
    headers: modernHeaders(DISCOVER, {}),
    signal,
    timeoutMs,
  });
}

type Verdict =
  | { readonly era: 'modern' }
  | { readonly era: 'legacy' }
  /** Neither is to be tried: it would fail in the same way, or nothing is spoken that we know. */
  | { readonly era: 'none'; readonly problem: string };

const MODERN_ERRORS: ReadonlySet<number> = new Set([HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_VERSION]);

/** What an answer to `server/discover` says of the server's era. Pure. */
export function judgeDiscovery(outcome: RemoteOutcome): Verdict {
  if (outcome.kind === 'result') return judgeVersions(outcome.result['supportedVersions']);
  const problem = describeOutcome(DISCOVER, outcome);
  const error = modernError(outcome);
  if (error !== undefined) {
    if (error.code !== UNSUPPORTED_VERSION) return { era: 'none', problem };
    return judgeVersions(isObject(error.data) ? error.data['supported'] : undefined);
  }
  return maySpeakOther(outcome) ? { era: 'legacy' } : { era: 'none', problem };
}

function judgeVersions(supported: unknown): Verdict {
  const versions = Array.isArray(supported) ? supported.filter((each) => typeof each === 'string') : [];
  if (versions.includes(MODERN_VERSION)) return { era: 'modern' };
  if (versions.some(isLegacyVersion)) return { era: 'legacy' };
  const said = versions.slice(0, 5).join(', ').slice(0, 100);
  return { era: 'none', problem: `the server does not speak ${MODERN_VERSION}${said === '' ? '' : `, but ${said}`}` };
}

function modernError(outcome: RemoteOutcome): RpcError | undefined {
  if (outcome.kind !== 'error' && outcome.kind !== 'refused') return undefined;
  const { error, status } = outcome;
  return status === 400 && error !== undefined && MODERN_ERRORS.has(error.code) ? error : undefined;
}

/** Statuses of servers that choke on a message of another era. */
const OTHER_ERA: ReadonlySet<number> = new Set([200, 202, 204, 400, 404, 405, 406, 415, 422, 500, 501]);

/** Whether the other era may be answered where this one was not: not where it is about who asks, or nobody is there. */
function maySpeakOther(outcome: RemoteOutcome): boolean {
  switch (outcome.kind) {
    case 'error':
      return true;
    case 'refused':
      return OTHER_ERA.has(outcome.status);
    case 'unknown':
      return outcome.status === undefined ? outcome.reason === 'timeout' : OTHER_ERA.has(outcome.status);
    default:
      return false;
  }
}

function failed(of: { readonly outcome: RemoteOutcome | undefined; readonly problem: string }): SessionOpened {
  const { outcome, problem } = of;
  const retryAfterMs = outcome?.kind === 'unknown' ? outcome.retryAfterMs : undefined;
  return { ok: false, problem, ...(retryAfterMs === undefined ? {} : { retryAfterMs }) };
}
