/** A remote server of 2026-07-28: no session; each request says who asks and what for, and closing it is its end. */
import { encodeHeaderValue, mirroredName } from '../../mcp/wire/header.ts';
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { META_SERVER_INFO } from '../../mcp/wire/meta.ts';
import { MODERN_VERSION } from '../../mcp/wire/version.ts';
import { modernParams, nameOf } from '../toolSession.ts';
import { metaWithToken, type RemoteSession, tellsToolChanges, toldProgress } from './remoteSession.ts';
import type { RemoteWire } from './remoteWire.ts';

export function modernHeaders(method: string, params: JsonObject): Readonly<Record<string, string>> {
  const name = mirroredName(method, params);
  return {
    'mcp-protocol-version': MODERN_VERSION,
    'mcp-method': method,
    ...(name === undefined ? {} : { 'mcp-name': encodeHeaderValue(name) }),
  };
}

/** @param discovered the result of `server/discover`, which named this version */
export function modernSession(wire: RemoteWire, discovered: JsonObject, onListChanged: () => void): RemoteSession {
  const { instructions, _meta: meta } = discovered;
  const info = discovered['serverInfo'] ?? (isObject(meta) ? meta[META_SERVER_INFO] : undefined);
  return {
    era: 'modern',
    server: { ...nameOf(info), protocolVersion: MODERN_VERSION },
    ...(typeof instructions === 'string' ? { instructions } : {}),
    tellsChanges: tellsToolChanges(discovered['capabilities']),
    request: ({ method, params, meta: more, headers, signal, timeoutMs, sendBy, onProgress }) =>
      wire.request({
        method,
        params: (id) => modernParams(params, metaWithToken(more, id, onProgress !== undefined)),
        headers: { ...headers, ...modernHeaders(method, params) },
        signal,
        timeoutMs,
        ...(sendBy === undefined ? {} : { sendBy }),
        onNotification: toldProgress(onProgress, onListChanged),
      }),
    async listen(signal, onReady) {
      const method = 'subscriptions/listen';
      const params = { notifications: { toolsListChanged: true } };
      const told = toldProgress(undefined, onListChanged);
      const outcome = await wire.request({
        method,
        params: () => modernParams(params),
        headers: modernHeaders(method, params),
        signal,
        onNotification(notice, more, id) {
          if (notice === 'notifications/subscriptions/acknowledged') onReady();
          else told(notice, more, id);
        },
      });
      if (outcome.kind === 'result') return 'ended';
      const { kind } = outcome;
      const refused = kind === 'refused' && (outcome.status === 404 || outcome.status === 405);
      return kind === 'error' || refused ? 'unsupported' : 'failed';
    },
    async close() {},
  };
}
