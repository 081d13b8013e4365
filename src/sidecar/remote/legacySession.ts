/**
 * A remote server of the older era: `initialize`, and a session where the server wants one. A session that has ended is
 * begun anew, by one for all who find out at once; who was told so before anything was done asks once more.
 */
import type { RemoteOutcome } from '../../mcp/streamableHttpOutcome.ts';
import { METHOD_NOT_FOUND } from '../../mcp/wire/errorCode.ts';
import { encodeError, encodeNotification, encodeResult, type RpcRequest } from '../../mcp/wire/jsonrpc.ts';
import { LATEST_LEGACY_VERSION, MODERN_VERSION } from '../../mcp/wire/version.ts';
import { CLIENT_INFO, nameOf } from '../toolSession.ts';
import {
  describeOutcome,
  metaWithToken,
  type RemoteSession,
  type SessionRequest,
  tellsToolChanges,
  toldProgress,
} from './remoteSession.ts';
import type { RemoteWire } from './remoteWire.ts';

interface Initialized {
  /** Undefined: the server keeps no session. */
  readonly sessionId: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly server: RemoteSession['server'];
  readonly instructions: string | undefined;
  readonly tellsChanges: boolean;
}

type Initialization =
  | { readonly ok: true; readonly value: Initialized }
  | { readonly ok: false; readonly outcome: RemoteOutcome | undefined; readonly problem: string };

export type LegacyOpened =
  | { readonly ok: true; readonly session: RemoteSession }
  | { readonly ok: false; readonly outcome: RemoteOutcome | undefined; readonly problem: string };

const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;
const DATE = /^\d{4}-\d{2}-\d{2}$/;
const NOTICE_MS = 5_000;
const END_MS = 2_000;
/** Questions of the server that are answered at once; more are dropped. */
const MAX_ANSWERS = 8;

export async function openLegacySession(
  wire: RemoteWire,
  timeoutMs: number,
  signal: AbortSignal,
  onListChanged: () => void,
): Promise<LegacyOpened> {
  const first = await initialize(wire, timeoutMs, signal);
  if (!first.ok) return first;
  let current = first.value;
  let renewing: Promise<Initialization> | undefined;
  let answering = 0;
  let ending: Promise<void> | undefined;

  /** One `initialize` for all whose session ended; who comes late finds it done. */
  const renew = async (used: Initialized): Promise<Initialization> => {
    if (current !== used) return { ok: true, value: current };
    renewing ??= initialize(wire, timeoutMs, signal).then((opened) => {
      renewing = undefined;
      if (opened.ok) {
        current = opened.value;
        // Another server may answer now, with another listing.
        onListChanged();
      }
      return opened;
    });
    return renewing;
  };

  const serve = (question: RpcRequest): void => {
    if (answering >= MAX_ANSWERS) return;
    answering++;
    // Sampling, elicitation and roots were not declared.
    const refusal = { code: METHOD_NOT_FOUND, message: 'Method not found' };
    const body = question.method === 'ping' ? encodeResult(question.id, {}) : encodeError(question.id, refusal);
    void wire.send('POST', current.headers, body, NOTICE_MS).finally(() => answering--);
  };

  const post = async (asked: SessionRequest, using: Initialized, timeLeftMs: number): Promise<RemoteOutcome> => {
    let sentId: number | undefined;
    const outcome = await wire.request({
      method: asked.method,
      params(id) {
        const meta = metaWithToken(asked.meta, id, asked.onProgress !== undefined);
        return meta === undefined ? asked.params : { ...asked.params, _meta: meta };
      },
      headers: { ...asked.headers, ...using.headers },
      signal: asked.signal,
      timeoutMs: timeLeftMs,
      ...(asked.sendBy === undefined ? {} : { sendBy: asked.sendBy }),
      onId(id) {
        sentId = id;
      },
      onNotification: toldProgress(asked.onProgress, onListChanged),
      onRequest: serve,
    });
    const givenUp =
      (outcome.kind === 'cancelled' && outcome.sent) || (outcome.kind === 'unknown' && outcome.reason === 'timeout');
    if (givenUp && asked.method === 'tools/call') {
      // Here a closed response is no cancellation.
      const params = {
        requestId: sentId,
        reason: outcome.kind === 'unknown' ? 'timed out' : 'cancelled by the client',
      };
      void wire.send('POST', using.headers, encodeNotification('notifications/cancelled', params), NOTICE_MS);
    }
    return outcome;
  };

  return {
    ok: true,
    session: {
      era: 'legacy',
      server: current.server,
      ...(current.instructions === undefined ? {} : { instructions: current.instructions }),
      tellsChanges: current.tellsChanges,
      async request(asked) {
        const until = Date.now() + asked.timeoutMs;
        const used = current;
        const outcome = await post(asked, used, asked.timeoutMs);
        if (used.sessionId === undefined || !saysEnded(outcome)) return outcome;
        const renewed = await renew(used);
        if (!renewed.ok) {
          const problem = `the server ended the session, and gives no other: ${renewed.problem}`;
          return { kind: 'refused', status: 404, problem };
        }
        const leftMs = until - Date.now();
        // It was not made; whoever waited has no time left for it.
        if (leftMs <= 0 || asked.signal.aborted) return { kind: 'not-sent', cause: new Error('no time is left') };
        return post(asked, renewed.value, leftMs);
      },
      async listen(streamSignal, onReady) {
        const used = current;
        const status = await wire.stream(used.headers, streamSignal, {
          onOpen: onReady,
          onNotification: (method, params) => toldProgress(undefined, onListChanged)(method, params, 0),
          onRequest: serve,
        });
        if (status === 200) return 'ended';
        if (status === 404 && used.sessionId !== undefined) {
          await renew(used);
          return 'failed';
        }
        // A server that has no such stream answers 405; some say it otherwise.
        return status !== undefined && [400, 404, 405, 406, 415, 501].includes(status) ? 'unsupported' : 'failed';
      },
      close() {
        const { sessionId, headers } = current;
        if (sessionId === undefined) return Promise.resolve();
        ending ??= wire.send('DELETE', headers, undefined, END_MS).then(() => {});
        return ending;
      },
    },
  };
}

/** The protocol's word for a session that is no more: nothing was looked at. */
function saysEnded(outcome: RemoteOutcome): boolean {
  if (outcome.kind === 'refused') return outcome.status === 404;
  return (
    outcome.kind === 'error' &&
    outcome.status === 404 &&
    outcome.error.code !== METHOD_NOT_FOUND &&
    /session/i.test(outcome.error.message)
  );
}

async function initialize(wire: RemoteWire, timeoutMs: number, signal: AbortSignal): Promise<Initialization> {
  const until = Date.now() + timeoutMs;
  let sessionId: string | undefined;
  const outcome = await wire.request({
    method: 'initialize',
    params: () => ({ protocolVersion: LATEST_LEGACY_VERSION, capabilities: {}, clientInfo: CLIENT_INFO }),
    headers: {},
    signal,
    timeoutMs,
    onHeader(header) {
      sessionId = header('mcp-session-id');
    },
  });
  if (outcome.kind !== 'result') return { ok: false, outcome, problem: describeOutcome('initialize', outcome) };
  const { protocolVersion, serverInfo, instructions, capabilities } = outcome.result;
  const no = (problem: string): Initialization => ({ ok: false, outcome: undefined, problem });
  if (typeof protocolVersion !== 'string' || !DATE.test(protocolVersion) || protocolVersion >= MODERN_VERSION) {
    return no('the server answered initialize without a version that it could speak there');
  }
  if (sessionId !== undefined && !SESSION_ID.test(sessionId)) return no('the server gave a session id that is none');
  const headers = {
    'mcp-protocol-version': protocolVersion,
    ...(sessionId === undefined ? {} : { 'mcp-session-id': sessionId }),
  };
  const body = encodeNotification('notifications/initialized');
  const status = await wire.send('POST', headers, body, Math.max(1, until - Date.now()));
  if (status === undefined || status < 200 || status > 299) {
    return no(`the server did not take notifications/initialized (HTTP status ${status ?? 'none'})`);
  }
  return {
    ok: true,
    value: {
      sessionId,
      headers,
      server: { ...nameOf(serverInfo), protocolVersion },
      instructions: typeof instructions === 'string' ? instructions : undefined,
      tellsChanges: tellsToolChanges(capabilities),
    },
  };
}
