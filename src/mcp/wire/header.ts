/**
 * The headers of 2026-07-28 that repeat what the body says: `MCP-Protocol-Version`, `Mcp-Method`, `Mcp-Name`.
 * An intermediary may have decided by the header, so a body that says otherwise is refused (HTTP 400, -32020).
 */
import type { JsonObject, RpcRequest } from './jsonrpc.ts';

const SENTINEL_START = '=?base64?';
const SENTINEL_END = '?=';
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const PLAIN = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Which field of params `Mcp-Name` repeats, by method. */
const NAME_FIELD: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

/** The value of a mirrored header: `=?base64?…?=` decoded as UTF-8, else as it is; undefined where the base64 is broken. */
export function decodeHeaderValue(value: string): string | undefined {
  if (!value.startsWith(SENTINEL_START) || !value.endsWith(SENTINEL_END)) return value;
  const base64 = value.slice(SENTINEL_START.length, -SENTINEL_END.length);
  if (!BASE64.test(base64)) return undefined;
  try {
    return utf8.decode(Buffer.from(base64, 'base64'));
  } catch {
    return undefined;
  }
}

/** A value as a header may carry it: visible ASCII as it is, anything else (and what looks encoded) in base64. */
export function encodeHeaderValue(value: string): string {
  if (PLAIN.test(value) && !value.startsWith(SENTINEL_START)) return value;
  return `${SENTINEL_START}${Buffer.from(value, 'utf8').toString('base64')}${SENTINEL_END}`;
}

export interface MirroredHeaders {
  readonly version?: string | undefined;
  readonly method?: string | undefined;
  readonly name?: string | undefined;
}

/** What `Mcp-Name` must say for this request, or undefined where the method has no name. */
export function mirroredName(method: string, params: JsonObject | undefined): string | undefined {
  const field = NAME_FIELD.get(method);
  const value = field === undefined ? undefined : params?.[field];
  return typeof value === 'string' ? value : undefined;
}

/** The first disagreement between the headers and a request of 2026-07-28, in words, or undefined. */
export function headerMismatch(headers: MirroredHeaders, request: RpcRequest, version: string): string | undefined {
  if (headers.version === undefined) return 'the required MCP-Protocol-Version header is absent';
  if (headers.version !== version) return 'MCP-Protocol-Version differs from the version in _meta';
  if (headers.method === undefined) return 'the required Mcp-Method header is absent';
  if (headers.method !== request.method) return 'Mcp-Method differs from the method in the body';
  const field = NAME_FIELD.get(request.method);
  if (field === undefined) return undefined;
  const name = mirroredName(request.method, request.params);
  if (headers.name === undefined) {
    return name === undefined ? undefined : 'the required Mcp-Name header is absent';
  }
  const decoded = decodeHeaderValue(headers.name);
  if (decoded === undefined) return 'Mcp-Name is not valid base64 of UTF-8';
  return decoded === name ? undefined : `Mcp-Name differs from params.${field}`;
}
