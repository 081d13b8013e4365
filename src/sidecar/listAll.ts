/** A server's whole listing, page by page, bounded in pages, functions, size and time, whatever way the pages come. */
import { type Snapshot, snapshotListing } from '../domain/snapshot/snapshotListing.ts';
import type { JsonObject } from '../mcp/wire/jsonrpc.ts';
import type { Opened } from './toolSession.ts';

const MAX_PAGES = 100;
const MAX_FUNCTIONS = 2_000;
const MAX_LISTING_CHARS = 16 * 1024 * 1024;

/** @param askPage sends `tools/list` with these params; answers with its result, or says why there is none */
export async function listAll(
  instructions: string | undefined,
  timeoutMs: number,
  askPage: (params: JsonObject, timeoutMs: number) => Promise<Opened<JsonObject>>,
): Promise<Opened<Snapshot>> {
  const until = Date.now() + timeoutMs;
  const listed: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  let chars = 0;
  for (let page = 0; page < MAX_PAGES; page++) {
    const asked = await askPage(cursor === undefined ? {} : { cursor }, Math.max(1, until - Date.now()));
    if (!asked.ok) return asked;
    const { tools, nextCursor } = asked.value;
    if (!Array.isArray(tools)) return { ok: false, problem: 'the server answered tools/list without tools' };
    listed.push(...tools);
    chars += JSON.stringify(tools).length;
    if (listed.length > MAX_FUNCTIONS)
      return { ok: false, problem: `the server lists more than ${MAX_FUNCTIONS} functions` };
    if (chars > MAX_LISTING_CHARS) return { ok: false, problem: 'the listing is too large' };
    // An empty cursor is one, says the protocol; servers that send it mean the end.
    if (typeof nextCursor !== 'string' || nextCursor === '') {
      return { ok: true, value: snapshotListing(listed, instructions) };
    }
    if (seen.has(nextCursor)) return { ok: false, problem: 'the server repeats a cursor of its listing' };
    seen.add(nextCursor);
    cursor = nextCursor;
  }
  return { ok: false, problem: `the listing has more than ${MAX_PAGES} pages` };
}
