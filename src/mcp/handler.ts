/** What an MCP endpoint asks of the process behind it: free of transport and era. */
import type { Holding } from './heldBytes.ts';
import type { JsonObject, RpcError } from './wire/jsonrpc.ts';

export interface Progress {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
}

export interface ToolCall {
  readonly name: string;
  readonly arguments: JsonObject;
  /** `_meta` as the client wrote it; nothing in it is proved. */
  readonly meta: JsonObject;
  /** Aborted when the client cancelled or went away; the answer is then not read. */
  readonly signal: AbortSignal;
  /** Present where the client asked for progress. */
  readonly progress?: (progress: Progress) => void;
  /** Room for the answer, where the endpoint bounds what is held. */
  readonly reserve?: Holding['reserve'];
  /** Value of an `Mcp-Param-*` header (lower-case name); undefined in the older era, which has none. */
  readonly paramHeader?: (name: string) => string | undefined;
}

/** `status` is the HTTP status in the stateless era; unset, errors of a method travel with 200. */
export interface Failure {
  readonly kind: 'error';
  readonly error: RpcError;
  readonly status?: 400 | 404 | 503;
}

export type Answer = { readonly kind: 'result'; readonly result: JsonObject } | Failure;

export interface McpHandler<Context> {
  readonly serverInfo: { readonly name: string; readonly version: string };
  readonly instructions?: string;
  /** `result`: `tools`, and what else a listing holds (`nextCursor`, `_meta`). */
  readonly listTools: (context: Context, cursor: string | undefined) => Answer | Promise<Answer>;
  /** `result`: `content`, `structuredContent`, `isError`, `_meta`. */
  readonly callTool: (context: Context, call: ToolCall) => Answer | Promise<Answer>;
  /** Calls back when the listing of this context changed; returns how to stop. */
  readonly subscribe: (context: Context, onChange: () => void) => () => void;
}
