/**
 * The start of a conversation with a tool's server over stdio, in its own era: first `initialize`, which all servers up
 * to 2025-11-25 know; one that refuses it is asked by `server/discover`. Then its listing, page by page, bounded.
 */
import { type Snapshot, snapshotListing } from '../domain/snapshot/snapshotListing.ts';
import type { StdioClient, StdioOutcome } from '../mcp/stdio.ts';
import { isObject, type JsonObject } from '../mcp/wire/jsonrpc.ts';
import { META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_VERSION } from '../mcp/wire/meta.ts';
import { LATEST_LEGACY_VERSION, MODERN_VERSION } from '../mcp/wire/version.ts';

export interface ToolSession {
  readonly server: { readonly name: string; readonly version: string; readonly protocolVersion: string };
  readonly instructions?: string;
  /** Params of a request as this server's era wants them. */
  readonly params: (params: JsonObject, meta?: JsonObject) => JsonObject;
}

export type Opened<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

const CLIENT_INFO = { name: 'oz0-sidecar', version: '1' };
const MAX_PAGES = 100;
const MAX_FUNCTIONS = 2_000;
const MAX_LISTING_CHARS = 16 * 1024 * 1024;

/** @param timeoutMs for the whole handshake; nothing that the server says extends it */
export async function openToolSession(client: StdioClient, timeoutMs: number): Promise<Opened<ToolSession>> {
  const until = Date.now() + timeoutMs;
  const initialized = await client.request({
    method: 'initialize',
    params: { protocolVersion: LATEST_LEGACY_VERSION, capabilities: {}, clientInfo: CLIENT_INFO },
    timeoutMs,
  });
  if (initialized.kind === 'result') {
    const session = legacySession(initialized.result);
    if (session.ok) client.notify('notifications/initialized');
    return session;
  }
  if (initialized.kind !== 'error') return failed('initialize', initialized);
  const discovered = await client.request({
    method: 'server/discover',
    params: modernParams({}),
    timeoutMs: Math.max(1, until - Date.now()),
  });
  if (discovered.kind === 'result') return modernSession(client, discovered.result);
  return failed('initialize', initialized);
}

function legacySession(result: JsonObject): Opened<ToolSession> {
  const { protocolVersion, serverInfo, instructions } = result;
  if (typeof protocolVersion !== 'string' || !/^\d{4}-\d{2}-\d{2}$/.test(protocolVersion)) {
    return { ok: false, problem: 'the server answered initialize without a protocol version' };
  }
  return {
    ok: true,
    value: {
      server: { ...nameOf(serverInfo), protocolVersion },
      ...(typeof instructions === 'string' ? { instructions } : {}),
      params: (params, meta) => (meta === undefined ? params : { ...params, _meta: meta }),
    },
  };
}

function modernSession(client: StdioClient, result: JsonObject): Opened<ToolSession> {
  const { supportedVersions, serverInfo, instructions } = result;
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(MODERN_VERSION)) {
    return { ok: false, problem: `the server speaks neither initialize nor ${MODERN_VERSION}` };
  }
  // Lasts as long as the process; what it says comes as notifications.
  void client.request({
    method: 'subscriptions/listen',
    params: modernParams({ notifications: { toolsListChanged: true } }),
  });
  return {
    ok: true,
    value: {
      server: { ...nameOf(serverInfo), protocolVersion: MODERN_VERSION },
      ...(typeof instructions === 'string' ? { instructions } : {}),
      params: modernParams,
    },
  };
}

function modernParams(params: JsonObject, meta: JsonObject = {}): JsonObject {
  return {
    ...params,
    _meta: {
      ...meta,
      [META_VERSION]: MODERN_VERSION,
      [META_CLIENT_INFO]: CLIENT_INFO,
      [META_CLIENT_CAPABILITIES]: {},
    },
  };
}

/** All pages of `tools/list`; a listing that is cut off anywhere is none. */
export async function listFunctions(
  client: StdioClient,
  session: ToolSession,
  timeoutMs: number,
): Promise<Opened<Snapshot>> {
  const until = Date.now() + timeoutMs;
  const listed: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  let chars = 0;
  for (let page = 0; page < MAX_PAGES; page++) {
    const outcome = await client.request({
      method: 'tools/list',
      params: session.params(cursor === undefined ? {} : { cursor }),
      timeoutMs: Math.max(1, until - Date.now()),
    });
    if (outcome.kind !== 'result') return failed('tools/list', outcome);
    const { tools, nextCursor } = outcome.result;
    if (!Array.isArray(tools)) return { ok: false, problem: 'the server answered tools/list without tools' };
    listed.push(...tools);
    chars += JSON.stringify(tools).length;
    if (listed.length > MAX_FUNCTIONS)
      return { ok: false, problem: `the server lists more than ${MAX_FUNCTIONS} functions` };
    if (chars > MAX_LISTING_CHARS) return { ok: false, problem: 'the listing is too large' };
    // An empty cursor is one, says the protocol; servers that send it mean the end.
    if (typeof nextCursor !== 'string' || nextCursor === '') {
      return { ok: true, value: snapshotListing(listed, session.instructions) };
    }
    if (seen.has(nextCursor)) return { ok: false, problem: 'the server repeats a cursor of its listing' };
    seen.add(nextCursor);
    cursor = nextCursor;
  }
  return { ok: false, problem: `the listing has more than ${MAX_PAGES} pages` };
}

function failed(method: string, outcome: Exclude<StdioOutcome, { kind: 'result' }>): { ok: false; problem: string } {
  const why =
    outcome.kind === 'error'
      ? `was refused: ${outcome.error.message.slice(0, 200)}`
      : outcome.kind === 'unknown' && outcome.reason === 'timeout'
        ? 'was not answered in time'
        : outcome.kind === 'too-large'
          ? 'was answered with a message over the limit'
          : 'was not answered: the process ended';
  return { ok: false, problem: `${method} ${why}` };
}

function nameOf(info: unknown): { name: string; version: string } {
  const { name, version } = isObject(info) ? info : {};
  return {
    name: typeof name === 'string' ? name.slice(0, 200) : '',
    version: typeof version === 'string' ? version.slice(0, 100) : '',
  };
}
