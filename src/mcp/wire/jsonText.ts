/**
 * JSON text from others, before anything else is done with it. V8 parses any depth but writes only some thousand levels:
 * what it cannot write again is refused here, by everyone who reads. Numbers that would be passed on as others are found.
 */

/** Of a request: deeper than any honest one. */
export const MAX_JSON_DEPTH = 200;
/** Of an answer, of which one part may be too deep and is then held back alone: what can surely be written again. */
export const MAX_ANSWER_DEPTH = 1_000;

export type ParsedJson =
  | {
      readonly ok: true;
      readonly value: unknown;
      /** The first number of the text that this process cannot hold: it would be written as another one. */
      readonly inexact: string | undefined;
    }
  | { readonly ok: false; readonly problem: string };

/** The value of a text. Never throws. */
export function parseJson(text: string, maxDepth = MAX_JSON_DEPTH): ParsedJson {
  const { depth, inexact } = scan(text);
  if (depth > maxDepth) return { ok: false, problem: `nested deeper than ${maxDepth} levels` };
  try {
    return { ok: true, value: JSON.parse(text), inexact };
  } catch {
    return { ok: false, problem: 'not JSON' };
  }
}

/** How many objects and arrays are open at once, at most. */
export function jsonDepth(text: string): number {
  return scan(text).depth;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** One pass, of text that need not be JSON. */
function scan(text: string): { depth: number; inexact: string | undefined } {
  let open = 0;
  let depth = 0;
  let inexact: string | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) at = endOfString(text, at);
    else if (code === 0x7b || code === 0x5b) {
      open += 1;
      if (open > depth) depth = open;
    } else if (code === 0x7d || code === 0x5d) open -= 1;
    else if (code >= 0x30 && code <= 0x39) {
      const end = endOfNumber(text, at);
      if (inexact === undefined && end - at > 3) inexact = inexactNumber(text.slice(at, end));
      at = end - 1;
    }
  }
  return { depth, inexact };
}

/** The index of the quote that ends the string which begins at `from`. */
function endOfString(text: string, from: number): number {
  for (let end = text.indexOf('"', from + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

/** Digits, and what else a number is made of. */
function endOfNumber(text: string, from: number): number {
  let end = from + 1;
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    const part = (code >= 0x30 && code <= 0x39) || code === 0x2e || code === 0x65 || code === 0x45;
    if (!part && code !== 0x2b && code !== 0x2d) break;
  }
  return end;
}

const INTEGER = /^\d+$/;
/** Every integer with fewer digits is exact. */
const EXACT_DIGITS = 15;

/** A fraction is a double wherever it is read; an integer is an exact number to many. Without its sign, which is kept. */
function inexactNumber(written: string): string | undefined {
  if (!INTEGER.test(written))
    return Math.abs(Number(written)) === Number.POSITIVE_INFINITY ? shown(written) : undefined;
  if (written.length <= EXACT_DIGITS) return undefined;
  return String(Number(written)) === written ? undefined : shown(written);
}

function shown(written: string): string {
  return written.slice(0, 40);
}
