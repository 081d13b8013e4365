/** The one built-in function: gives the next part of a result that was too large to be given at once. */
import type { JsonObject } from '../../mcp/wire/jsonrpc.ts';
import { accountKey } from '../principal.ts';
import { type Caller, decideFor, type World } from '../view.ts';
import { refusedResult } from '../wording.ts';
import { estimateTokens, fitResult } from './fitResult.ts';
import type { KeptResult, KeptResults } from './keptResults.ts';

/** No tool has the id `oz`. */
export const READ_ON = 'oz__read_on';

export const READ_ON_DEFINITION: JsonObject = {
  description: 'Reads the next part of a result that was too large. The result says what to give here.',
  inputSchema: {
    type: 'object',
    properties: { result: { type: 'string' }, part: { type: 'integer', minimum: 1 } },
    required: ['result', 'part'],
  },
  annotations: { readOnlyHint: true, openWorldHint: false },
};

/** The result as it is given: whole, or its first part and how to read on. */
export function giveResult(
  kept: KeptResults,
  maxTokens: number,
  caller: Caller,
  about: Omit<KeptResult, 'parts'>,
  result: JsonObject,
  keepsStructured: boolean,
): JsonObject {
  if (maxTokens === 0) return result;
  const fitted = fitResult(result, maxTokens, keepsStructured);
  if (fitted.fits) return result;
  const { parts } = fitted;
  // What was too large was structured content alone; its text is whole.
  if (parts.length === 1) return fitted.result;
  const name = kept.keep(accountKey(caller.principal), { ...about, parts });
  const content = Array.isArray(fitted.result['content']) ? fitted.result['content'] : [];
  return { ...fitted.result, content: [...content, note(name, 1, parts)] };
}

export type ReadOn =
  | { readonly ok: true; readonly result: JsonObject; readonly outside: boolean }
  | { readonly ok: false; readonly reason: string; readonly result: JsonObject };

/** Decides anew: what the caller may not call now, it may not read on either. */
export function readOn(world: World, kept: KeptResults, caller: Caller, args: JsonObject): ReadOn {
  const { result: name, part } = args;
  const found = typeof name === 'string' ? kept.read(accountKey(caller.principal), name) : undefined;
  if (found === undefined || typeof name !== 'string') {
    return failed(
      'no-such-result',
      'There is no such result: it is kept for some minutes only. Call the function again.',
    );
  }
  const text = Number.isSafeInteger(part) ? found.parts[Number(part) - 1] : undefined;
  if (text === undefined) return failed('no-such-part', `This result has the parts 1 to ${found.parts.length}.`);
  const decision = decideFor(world, caller, found.target);
  if (decision.do === 'refuse') {
    if (decision.hidden) return failed('no-such-result', 'There is no such result.');
    return { ok: false, reason: decision.reason, result: refusedResult(decision.reason, decision) };
  }
  const content = [{ type: 'text', text }, note(name, Number(part), found.parts)];
  return { ok: true, result: { content }, outside: found.outside };
}

function note(name: string | undefined, part: number, parts: readonly string[]): JsonObject {
  const tokens = estimateTokens(parts.reduce((sum, each) => sum + each.length, 0));
  const size = `part ${part} of ${parts.length} of a result of about ${tokens} tokens`;
  if (part === parts.length) return { type: 'text', text: `[This was ${size}: its end.]` };
  const next = JSON.stringify({ result: name, part: part + 1 });
  return {
    type: 'text',
    text:
      name === undefined
        ? `[This was ${size}. The rest is too large to be kept: ask for less.]`
        : `[This was ${size}. To read on, call ${READ_ON} with ${next}; it is kept for some minutes.]`,
  };
}

function failed(reason: string, text: string): ReadOn {
  return { ok: false, reason, result: { content: [{ type: 'text', text }], isError: true } };
}
