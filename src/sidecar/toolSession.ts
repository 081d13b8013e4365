/**
 * The start of a conversation with a tool's server over stdio, in its own era: first `initialize`, which all servers up
 * to 2025-11-25 know; one that refuses it is asked by `server/discover`. Then its listing, page by page, bounded.
 */
import type { Snapshot } from '../domain/snapshot/snapshotListing.ts';
import type { StdioClient, StdioOutcome } from '../mcp/stdio.ts';
import { isObject, type JsonObject } from '../mcp/wire/jsonrpc.ts';
import { META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_VERSION } from '../mcp/wire/meta.ts';
import { LATEST_LEGACY_VERSION, MODERN_VERSION } from '../mcp/wire/version.ts';
import { listAll } from './listAll.ts';

export interface ToolSession {
  readonly server: { readonly name: string; readonly version: string; readonly protocolVersion: string };
  readonly instructions?: string;
  /** Params of a request as this server's era wants them. */
  readonly params: (params: JsonObject, meta?: JsonObject) => JsonObject;
}

export type Opened<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

export const CLIENT_INFO = { name: 'oz0-sidecar', version: '1' };

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

/** Params as 2026-07-28 wants them: with version, client and its capabilities, of which there are none. */
export function modernParams(params: JsonObject, meta: JsonObject = {}): JsonObject {
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
export function listFunctions(client: StdioClient, session: ToolSession, timeoutMs: number): Promise<Opened<Snapshot>> {
  return listAll(session.instructions, timeoutMs, async (params, leftMs) => {
    const outcome = await client.request({ method: 'tools/list', params: session.params(params), timeoutMs: leftMs });
    return outcome.kind === 'result' ? { ok: true, value: outcome.result } : failed('tools/list', outcome);
  });
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

/** What a server says of itself, cut to what is shown. */
export function nameOf(info: unknown): { name: string; version: string } {
  const { name, version } = isObject(info) ? info : {};
  return {
    name: typeof name === 'string' ? name.slice(0, 200) : '',
    version: typeof version === 'string' ? version.slice(0, 100) : '',
  };
}
