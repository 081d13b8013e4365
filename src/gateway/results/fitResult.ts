/**
 * Cuts a result to what a model may be given at once. What it reads is text: text blocks, texts of resources, and structured
 * content, which is text in another form. Pure.
 */
import { isObject, type JsonObject } from '../../mcp/wire/jsonrpc.ts';

/** Of English and of code, about; more in other scripts, so this is an estimate. */
const CHARS_PER_TOKEN = 4;

export function estimateTokens(chars: number): number {
  return Math.ceil(chars / CHARS_PER_TOKEN);
}

export type Fitted =
  | { readonly fits: true }
  /** `parts`: the whole text, cut; the first of them is in `result`. */
  | { readonly fits: false; readonly result: JsonObject; readonly parts: readonly string[] };

/**
 * @param keepsStructured the function says an output schema, so clients take no result without structured content: it is
 * left as it is, and the text alone fits
 */
export function fitResult(result: JsonObject, maxTokens: number, keepsStructured: boolean): Fitted {
  const maxChars = maxTokens * CHARS_PER_TOKEN;
  const { content, structuredContent, ...rest } = result;
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const texts = blocks.map(textOf);
  const chars = texts.reduce((sum, text) => sum + (text?.length ?? 0), 0);
  const tooStructured =
    structuredContent !== undefined && !keepsStructured && JSON.stringify(structuredContent).length > maxChars;
  if (chars <= maxChars && !tooStructured) return { fits: true };
  const kept = structuredContent === undefined || tooStructured ? {} : { structuredContent };
  const others = blocks.filter((_, index) => texts[index] === undefined);
  const parts = cut(texts.filter((text) => text !== undefined).join('\n\n'), maxChars);
  return {
    fits: false,
    result: { ...rest, ...kept, content: [{ type: 'text', text: parts[0] ?? '' }, ...others] },
    parts,
  };
}

function textOf(block: unknown): string | undefined {
  if (!isObject(block)) return undefined;
  if (block['type'] === 'text') return typeof block['text'] === 'string' ? block['text'] : undefined;
  if (block['type'] !== 'resource' || !isObject(block['resource'])) return undefined;
  const { text } = block['resource'];
  return typeof text === 'string' ? text : undefined;
}

/** At the end of a line where one is near, and never within a character. */
function cut(text: string, maxChars: number): readonly string[] {
  const parts: string[] = [];
  let from = 0;
  while (from < text.length) {
    let to = Math.min(text.length, from + maxChars);
    if (to < text.length) {
      const line = text.lastIndexOf('\n', to - 1);
      if (line > from + maxChars * 0.8) to = line + 1;
      else if (to - from > 1 && isHighSurrogate(text.charCodeAt(to - 1))) to -= 1;
    }
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
