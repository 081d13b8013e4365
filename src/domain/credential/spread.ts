/**
 * Finds a value whose characters are written one way here and another there (`s\u0033cr%65t`), or that lies in pieces over the events of a
 * stream, in the texts of their data. What is looked for whole, in one form, is `search.ts`' affair. Pure.
 */

export type Spread =
  | { readonly kind: 'none' }
  /** From here on it may yet become one. */
  | { readonly kind: 'partial'; readonly at: number }
  /** Where its pieces are, from and to. */
  | { readonly kind: 'found'; readonly pieces: readonly (readonly [number, number])[] };

/** Shorter pieces than these in events are not put together: half of all texts end with the first letter of something. */
const SHORTEST_PIECE = 4;
const LONGEST_GAP = 4_096;
const LINES_BETWEEN = 3;
/** A host that writes one piece a thousand times is not followed along each way. */
const MOST_STEPS = 20_000;
const LONGEST_ESCAPE = 8;

const NAMED: Readonly<Record<string, string>> = {
  '&amp;': '&',
  '&lt;': '<',
  '&gt;': '>',
  '&quot;': '"',
  '&apos;': "'",
};
const JSON_SHORT: Readonly<Record<string, string>> = { '"': '"', '\\': '\\', '/': '/', "'": "'" };

/** A value to look for, made ready once. */
export interface SpreadValue {
  /** In lower case. */
  readonly value: string;
  readonly begins: RegExp;
}

/** @param value visible ASCII, not empty */
export function spreadValue(value: string): SpreadValue {
  const first = value.charAt(0).toLowerCase();
  const codes = [...new Set([first, first.toUpperCase()])].map((char) => char.charCodeAt(0));
  const names = Object.keys(NAMED).filter((name) => NAMED[name] === first);
  const spellings = [
    literally(first),
    ...(JSON_SHORT[first] === first ? [`\\\\${literally(first)}`] : []),
    ...codes.flatMap((code) => [
      `(?:\\\\u00|\\\\x|%)${code.toString(16)}`,
      `&#0*${code};`,
      `&#x0*${code.toString(16)};`,
    ]),
    ...names,
    // One that is cut off.
    `[\\\\%&][^]{0,${LONGEST_ESCAPE - 1}}$`,
  ];
  return { value: value.toLowerCase(), begins: new RegExp(spellings.join('|'), 'g') };
}

function literally(char: string): string {
  return /[\w\s]/.test(char) ? char : `\\${char}`;
}

/** Whether a text may hold anything for this to find. */
export function isEscaped(text: string): boolean {
  return /\\[ux]|%|&|\\$/.test(text);
}

/**
 * @param text in lower case, one character a byte
 * @param events the text is an event stream
 */
export function findSpread(text: string, { value, begins }: SpreadValue, from: number, events: boolean): Spread {
  let steps = 0;
  let partial: number | undefined;

  /** The pieces from here on; undefined: none; 'partial': the text ends too early to say. */
  function walk(start: number, done: number): (readonly [number, number])[] | 'partial' | undefined {
    let at = start;
    for (let i = done; i < value.length; i++) {
      if (++steps > MOST_STEPS) return undefined;
      const length = charAt(text, at, value[i] ?? '');
      if (length === 'partial') return 'partial';
      if (length === 0) return i - done >= SHORTEST_PIECE && events ? over(start, at, i) : undefined;
      at += length;
    }
    return [[start, at]];
  }

  /** The rest in one of the next events, at the beginning of its data or of a string in it. */
  function over(start: number, end: number, done: number): (readonly [number, number])[] | 'partial' | undefined {
    if (!/["'\r\n\\]/.test(text[end] ?? '"')) return undefined;
    let unsure = false;
    let line = end;
    for (let lines = 0; lines < LINES_BETWEEN; lines++) {
      line = text.indexOf('\ndata:', line);
      if (line < 0 || line > end + LONGEST_GAP) {
        unsure ||= line < 0 && text.length < end + LONGEST_GAP;
        break;
      }
      line += '\ndata:'.length;
      const begin = text[line] === ' ' ? line + 1 : line;
      const close = text.indexOf('\n', begin);
      const until = close < 0 ? text.length : close;
      unsure ||= close < 0 && until < begin + LONGEST_GAP;
      for (let next = begin; next <= until; ) {
        const rest = walk(next, done);
        if (rest === 'partial') unsure = true;
        else if (rest !== undefined) return [[start, end], ...rest];
        const quote = text.indexOf('"', next);
        next = quote < 0 ? until + 1 : quote + 1;
      }
    }
    return unsure ? 'partial' : undefined;
  }

  begins.lastIndex = from;
  for (let match = begins.exec(text); match !== null && steps <= MOST_STEPS; match = begins.exec(text)) {
    const { index: at } = match;
    begins.lastIndex = at + 1;
    const found = walk(at, 0);
    if (found === 'partial') partial ??= at;
    else if (found !== undefined) return { kind: 'found', pieces: found };
  }
  return partial === undefined ? { kind: 'none' } : { kind: 'partial', at: partial };
}

/** How many characters of the text stand for one of a value: 0 where they stand for another. */
function charAt(text: string, at: number, char: string): number | 'partial' {
  const here = text[at];
  if (here === char && here !== '\\' && here !== '%' && here !== '&') return 1;
  if (here !== '\\' && here !== '%' && here !== '&') return at >= text.length ? 'partial' : 0;
  const rest = text.slice(at, at + LONGEST_ESCAPE);
  const [written = ''] =
    /^(?:\\u[0-9a-f]{4}|\\x[0-9a-f]{2}|%[0-9a-f]{2}|&#[0-9]{1,4};|&#x[0-9a-f]{1,4};)/.exec(rest) ?? [];
  if (written !== '') {
    const [digits = ''] = /[0-9a-f]+(?=;?$)/.exec(written.replace(/^(?:\\[ux]|%|&#x?)/, '')) ?? [];
    const radix = written.startsWith('&#') && !written.startsWith('&#x') ? 10 : 16;
    if (String.fromCharCode(Number.parseInt(digits, radix)).toLowerCase() === char) return written.length;
  }
  if (here === '\\' && JSON_SHORT[rest[1] ?? ''] === char) return 2;
  const named = here === '&' ? Object.keys(NAMED).find((name) => rest.startsWith(name)) : undefined;
  if (named !== undefined && NAMED[named] === char) return named.length;
  if (here === char) return 1;
  // Cut off within an escape.
  const cut = at + rest.length === text.length && /^(?:\\(?:[ux][0-9a-f]*)?|%[0-9a-f]?|&[#a-z0-9]*)$/.test(rest);
  return cut && written === '' ? 'partial' : 0;
}
