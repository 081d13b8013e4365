/** Reads a tool's whole listing over a hop: page after page, bounded in time, pages and functions. */
import { callHop, type Hop } from '../../mcp/hop.ts';
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { META_LISTING } from '../../mcp/wire/meta.ts';

export interface ListingLimits {
  /** For each page. */
  readonly pageTimeoutMs: number;
  readonly maxPages: number;
  readonly maxFunctions: number;
  readonly maxPageBytes: number;
}

export const LISTING_LIMITS: ListingLimits = {
  pageTimeoutMs: 10_000,
  maxPages: 64,
  maxFunctions: 4_096,
  maxPageBytes: 8 * 1024 * 1024,
};

export type ReadListing =
  | {
      readonly ok: true;
      readonly tools: readonly unknown[] /** Hex hash of it all, as its sidecar says. */;
      readonly hash?: string;
    }
  | { readonly ok: false; readonly problem: string };

/** Whole or not at all: half a listing would take functions away. */
export async function readListing(hop: Hop, signal: AbortSignal, limits = LISTING_LIMITS): Promise<ReadListing> {
  const tools: unknown[] = [];
  let cursor: string | undefined;
  let hash: string | undefined;
  for (let page = 0; page < limits.maxPages; page += 1) {
    const params: JsonObject = cursor === undefined ? {} : { cursor };
    const outcome = await callHop(hop, {
      id: page + 1,
      method: 'tools/list',
      params,
      signal,
      timeoutMs: limits.pageTimeoutMs,
      maxAnswerBytes: limits.maxPageBytes,
    });
    if (outcome.kind !== 'result') return { ok: false, problem: describeFailure(outcome) };
    const { tools: listed, nextCursor } = outcome.result;
    if (!Array.isArray(listed)) return { ok: false, problem: 'the listing has no tools' };
    for (const tool of listed) tools.push(tool);
    if (tools.length > limits.maxFunctions) {
      return { ok: false, problem: `it lists more than ${limits.maxFunctions} functions` };
    }
    hash ??= hashOf(outcome.result);
    if (typeof nextCursor !== 'string') return { ok: true, tools, ...(hash === undefined ? {} : { hash }) };
    cursor = nextCursor;
  }
  return { ok: false, problem: `its listing has more than ${limits.maxPages} pages` };
}

function hashOf(result: JsonObject): string | undefined {
  const meta = result['_meta'];
  const hash = isObject(meta) ? meta[META_LISTING] : undefined;
  return typeof hash === 'string' && /^[0-9a-f]{64}$/.test(hash) ? hash : undefined;
}

function describeFailure(outcome: Exclude<Awaited<ReturnType<typeof callHop>>, { kind: 'result' }>): string {
  switch (outcome.kind) {
    case 'error':
      return outcome.error.message.slice(0, 200);
    case 'not-started':
      return outcome.reason;
    case 'cancelled':
      return 'given up';
    default:
      return outcome.problem.slice(0, 200);
  }
}
