/**
 * JSON-RPC 2.0 messages as MCP uses them: one message a body, ids are strings or integers, never null.
 * Parsing is strict about what decides (version, id, method, params) and leaves the rest alone. No schema library.
 */

export type JsonObject = { readonly [key: string]: unknown };
export type RequestId = string | number;

export interface RpcRequest {
  readonly kind: 'request';
  readonly id: RequestId;
  readonly method: string;
  readonly params: JsonObject | undefined;
}

export interface RpcNotification {
  readonly kind: 'notification';
  readonly method: string;
  readonly params: JsonObject | undefined;
}

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

/** An answer; `id` is undefined where the other side could not tell which request it answers. */
export type RpcResponse =
  | { readonly kind: 'result'; readonly id: RequestId; readonly result: JsonObject }
  | { readonly kind: 'error'; readonly id: RequestId | undefined; readonly error: RpcError };

export type RpcMessage = RpcRequest | RpcNotification | RpcResponse;

export type ParsedMessage =
  | { readonly ok: true; readonly message: RpcMessage }
  | { readonly ok: false; readonly problem: string };

/** An object of JSON: neither null nor an array. */
export function isObject(value: unknown): value is JsonObject {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

/** A string, or an integer that survives a round trip. */
export function isRequestId(value: unknown): value is RequestId {
  return typeof value === 'string' || (typeof value === 'number' && Number.isSafeInteger(value));
}

/** The one message that a parsed body is. Batches are refused: 2025-06-18 removed them, and one hid a refused call. */
export function parseMessage(body: unknown): ParsedMessage {
  if (Array.isArray(body)) return { ok: false, problem: 'batches are not accepted' };
  if (!isObject(body)) return { ok: false, problem: 'the body is not a JSON-RPC message' };
  if (body['jsonrpc'] !== '2.0') return { ok: false, problem: 'jsonrpc must be "2.0"' };
  return 'method' in body ? parseCall(body) : parseResponse(body);
}

function parseCall(body: JsonObject): ParsedMessage {
  const { method, params, id } = body;
  if (typeof method !== 'string' || method === '') return { ok: false, problem: 'method must be a string' };
  if ('result' in body || 'error' in body) return { ok: false, problem: 'a message is a call or an answer, not both' };
  if (params !== undefined && !isObject(params)) return { ok: false, problem: 'params must be an object' };
  if (!('id' in body)) return { ok: true, message: { kind: 'notification', method, params } };
  if (!isRequestId(id)) return { ok: false, problem: 'id must be a string or an integer' };
  return { ok: true, message: { kind: 'request', id, method, params } };
}

function parseResponse(body: JsonObject): ParsedMessage {
  const { id, result, error } = body;
  if (result !== undefined && error !== undefined) return { ok: false, problem: 'an answer has result or error' };
  if (result !== undefined) {
    if (!isRequestId(id)) return { ok: false, problem: 'id must be a string or an integer' };
    if (!isObject(result)) return { ok: false, problem: 'result must be an object' };
    return { ok: true, message: { kind: 'result', id, result } };
  }
  if (!isObject(error)) return { ok: false, problem: 'a message has a method, a result or an error' };
  const { code, message, data } = error;
  if (!Number.isSafeInteger(code) || typeof message !== 'string') {
    return { ok: false, problem: 'error needs an integer code and a message' };
  }
  const parsed: RpcError = { code: Number(code), message, ...(data === undefined ? {} : { data }) };
  return { ok: true, message: { kind: 'error', id: isRequestId(id) ? id : undefined, error: parsed } };
}

/** The id to echo in an error about a body that may be no message at all; null where there is none (JSON-RPC 2.0, 5). */
export function echoableId(body: unknown): RequestId | null {
  const id = isObject(body) ? body['id'] : undefined;
  return isRequestId(id) ? id : null;
}

/** Text of a request. */
export function encodeRequest(id: RequestId, method: string, params: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id, method, params });
}

/** Text of a notification. */
export function encodeNotification(method: string, params?: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', method, params });
}

/** Text of an answer. */
export function encodeResult(id: RequestId, result: JsonObject): string {
  return JSON.stringify({ jsonrpc: '2.0', id, result });
}

/** Text of an error; `id` null where the request could not be read. */
export function encodeError(id: RequestId | null, error: RpcError): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error });
}
