/** Error codes of JSON-RPC and of MCP 2026-07-28, and which of another hop's codes may be passed on. */

export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;
export const INTERNAL_ERROR = -32603;
/** A header says other than the body; always with HTTP 400. */
export const HEADER_MISMATCH = -32020;
/** The client did not declare a capability that the request needs. */
export const MISSING_CAPABILITY = -32021;
export const UNSUPPORTED_VERSION = -32022;

/**
 * The code under which an error of the hop behind us may go to the client. What the protocol reserves (-32768..-32000)
 * describes the hop on which it was said, or is not ours to say (-32002, -32042, the undefined part of -32020..-32099),
 * so of these only what is about the request itself is kept. Application codes pass.
 */
export function passableCode(code: number): number {
  if (code === INVALID_PARAMS || code === INTERNAL_ERROR) return code;
  const reserved = code >= -32768 && code <= -32000;
  return reserved || !Number.isSafeInteger(code) ? INTERNAL_ERROR : code;
}
