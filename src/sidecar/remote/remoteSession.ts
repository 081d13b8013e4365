/** A conversation with a remote server, in whichever era it speaks: what the two have in common. */
import type { Progress } from '../../mcp/handler.ts';
import { readProgress } from '../../mcp/stdio.ts';
import { describeStatus, type RemoteOutcome } from '../../mcp/streamableHttpOutcome.ts';
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';

export interface SessionRequest {
  readonly method: string;
  readonly params: JsonObject;
  readonly meta?: JsonObject;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
  /** Milliseconds since 1970; nothing is sent later. */
  readonly sendBy?: number;
  readonly onProgress?: (progress: Progress) => void;
}

/** How listening for changes ended. `unsupported`: the server has no such thing, and is not asked again. */
export type Listening = 'ended' | 'unsupported' | 'failed';

export interface RemoteSession {
  readonly era: 'modern' | 'legacy';
  readonly server: { readonly name: string; readonly version: string; readonly protocolVersion: string };
  readonly instructions?: string;
  /** The server says that it tells of changes of its listing. */
  readonly tellsChanges: boolean;
  /** Never throws. Sent once; a second time only where the first surely was not looked at, since its session had ended. */
  readonly request: (request: SessionRequest) => Promise<RemoteOutcome>;
  /** Hears of changes until the stream ends or the signal aborts; `onReady` once what changes from then on is heard. */
  readonly listen: (signal: AbortSignal, onReady: () => void) => Promise<Listening>;
  /** Ends the session at the server, as far as it has one; bounded. */
  readonly close: () => Promise<void>;
}

export const LIST_CHANGED = 'notifications/tools/list_changed';

/** Passes progress of the request with this id on. */
export function toldProgress(
  onProgress: ((progress: Progress) => void) | undefined,
  onListChanged: () => void,
): (method: string, params: JsonObject, id: number) => void {
  return (method, params, id) => {
    if (method === LIST_CHANGED) onListChanged();
    if (method !== 'notifications/progress' || params['progressToken'] !== id) return;
    const progress = readProgress(params);
    if (progress !== undefined) onProgress?.(progress);
  };
}

/** `_meta` with our own progress token, where progress is wanted. */
export function metaWithToken(meta: JsonObject | undefined, id: number, wanted: boolean): JsonObject | undefined {
  return wanted ? { ...meta, progressToken: id } : meta;
}

export function tellsToolChanges(capabilities: unknown): boolean {
  const tools = isObject(capabilities) ? capabilities['tools'] : undefined;
  return isObject(tools) && tools['listChanged'] === true;
}

/** Why there is no result, for a person. */
export function describeOutcome(method: string, outcome: Exclude<RemoteOutcome, { kind: 'result' }>): string {
  switch (outcome.kind) {
    case 'error':
      return outcome.status === 200
        ? `${method} was refused: ${outcome.error.message.slice(0, 200)}`
        : describeStatus(outcome.status, outcome.error);
    case 'not-sent':
      return outcome.cause instanceof Error ? outcome.cause.message : String(outcome.cause);
    case 'refused':
      return outcome.problem;
    case 'unknown':
      if (outcome.status !== undefined && outcome.status !== 200) return outcome.problem;
      return outcome.reason === 'timeout' ? `${method} was not answered in time` : `${method}: ${outcome.problem}`;
    case 'cancelled':
      return `${method} was given up`;
  }
}
