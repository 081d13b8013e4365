/** A tool's result as it is passed to the model; undefined for one that is none. Pure. */
import { isObject, type JsonObject } from '../mcp/wire/jsonrpc.ts';
import { passableMeta } from '../mcp/wire/meta.ts';
import type { OutputCheck } from './overrides/outputCheck.ts';

/**
 * Keeps what a result holds and drops what it may not say (our own `_meta` keys). Structured content is also given as
 * text where the server left it out, since the model reads text.
 */
export function passedResult(result: JsonObject): JsonObject | undefined {
  const { content = [], structuredContent, isError, _meta } = result;
  if (!Array.isArray(content) || !content.every(isBlock)) return undefined;
  if (isError !== undefined && typeof isError !== 'boolean') return undefined;
  const meta = isObject(_meta) ? passableMeta(_meta) : {};
  const textLacks = structuredContent !== undefined && !content.some((block) => block['type'] === 'text');
  return {
    content: textLacks ? [...content, { type: 'text', text: JSON.stringify(structuredContent) }] : content,
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === undefined ? {} : { isError }),
    ...(Object.keys(meta).length === 0 ? {} : { _meta: meta }),
  };
}

/**
 * What a structured result lacks to be what its Tool says, where it says so. Errors and text alone are not looked at; nor
 * is the text beside structured content, which the server wrote.
 */
export function resultProblem(result: JsonObject, check: OutputCheck | undefined): string | undefined {
  const { structuredContent, isError } = result;
  if (check === undefined || structuredContent === undefined || isError === true) return undefined;
  return check(structuredContent);
}

function isBlock(block: unknown): block is JsonObject {
  return isObject(block) && typeof block['type'] === 'string';
}
