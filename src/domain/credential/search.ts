/**
 * Finds values in bytes that come in pieces, in any of their forms and in any case. Holds back only what could be the
 * beginning of a match, so that a stream is not delayed by more. Pure: a value and functions over it.
 */
import { formsOf } from './forms.ts';
import { findSpread, isEscaped, type SpreadValue, spreadValue } from './spread.ts';

export interface Needle {
  /** Lower case. */
  readonly bytes: Buffer;
  /** As long as `bytes`: what is put in its place. */
  readonly mask: Buffer;
  /** The value itself, where this is its plain form: it is looked for in pieces and mixed spellings too. */
  readonly plain?: SpreadValue;
}

/** @param values visible ASCII, with the text that stands in for the value in its plain form */
export function compileNeedles(values: readonly { value: string; instead: string }[]): readonly Needle[] {
  const needles = values.flatMap(({ value, instead }) =>
    formsOf(value).map((form) => ({
      bytes: Buffer.from(form.toLowerCase(), 'latin1'),
      mask: Buffer.from(maskOf(form, value, instead), 'latin1'),
      ...(form === value ? { plain: spreadValue(value) } : {}),
    })),
  );
  // A value that begins another is the shorter one: the longer is looked for first.
  return needles.sort((left, right) => right.bytes.length - left.bytes.length);
}

/**
 * As long as what it replaces, so that a Content-Length stays true: the placeholder for the plain form, zeros (good base64,
 * hex and JSON) for the others.
 */
function maskOf(form: string, value: string, instead: string): string {
  return form === value ? instead.padEnd(form.length, '0').slice(0, form.length) : '0'.repeat(form.length);
}

/** Whether the text holds one of the values. */
export function holds(text: string, needles: readonly Needle[]): boolean {
  if (needles.length === 0) return false;
  const folded = fold(Buffer.from(text, 'latin1'));
  return needles.some((needle) => folded.includes(needle.bytes));
}

/** The text with each value replaced by its mask. */
export function masked(text: string, needles: readonly Needle[]): string {
  const redactor = createRedactor(needles);
  return Buffer.concat([redactor.push(Buffer.from(text, 'latin1')), redactor.end()]).toString('latin1');
}

export interface Redactor {
  /** What may go on, masked; the rest is held until it is known to be no match. */
  readonly push: (chunk: Buffer) => Buffer;
  readonly end: () => Buffer;
  /** Matches so far. */
  readonly found: () => number;
}

/** @param events the bytes are an event stream, over whose events a value may lie in pieces */
export function createRedactor(needles: readonly Needle[], events = false): Redactor {
  let held: Buffer = Buffer.alloc(0);
  let found = 0;

  function take(data: Buffer, atEnd: boolean): Buffer {
    const folded = fold(data);
    let out = data;
    for (const { bytes, mask } of needles) {
      for (let at = folded.indexOf(bytes); at >= 0; at = folded.indexOf(bytes, at + mask.length)) {
        // The caller's chunk may be somebody else's memory.
        if (out === data) out = Buffer.from(data);
        mask.copy(out, at);
        // A shorter needle inside of this one is not another match.
        folded.fill(0, at, at + mask.length);
        found++;
      }
    }
    const text = folded.toString('latin1');
    let from = text.length;
    if (events || isEscaped(text)) {
      for (const { plain } of needles) {
        for (let seen = 0; plain !== undefined; ) {
          const spread = findSpread(text, plain, seen, events);
          if (spread.kind === 'partial') from = Math.min(from, spread.at);
          if (spread.kind !== 'found') break;
          if (out === data) out = Buffer.from(data);
          for (const [begin, end] of spread.pieces) out.fill('0', begin, end);
          seen = spread.pieces.at(-1)?.[1] ?? text.length;
          found++;
        }
      }
    }
    const keep = atEnd ? 0 : Math.max(partialMatch(folded, needles), text.length - from);
    held = out.subarray(out.length - keep);
    return out.subarray(0, out.length - keep);
  }

  return {
    push(chunk) {
      if (needles.length === 0) return chunk;
      return take(held.length === 0 ? chunk : Buffer.concat([held, chunk]), false);
    },
    end() {
      const rest = held;
      held = Buffer.alloc(0);
      return rest.length === 0 ? rest : take(rest, true);
    },
    found: () => found,
  };
}

/** The number of bytes at the end of `folded` that could be the beginning of a needle. */
function partialMatch(folded: Buffer, needles: readonly Needle[]): number {
  let longest = 0;
  for (const { bytes } of needles) {
    const [first = 0] = bytes;
    const from = Math.max(0, folded.length - bytes.length + 1);
    // A later start would hold back less than what is held back already.
    const until = folded.length - longest;
    for (let at = folded.indexOf(first, from); at >= 0 && at < until; at = folded.indexOf(first, at + 1)) {
      if (folded.compare(bytes, 0, folded.length - at, at) === 0) {
        longest = folded.length - at;
        break;
      }
    }
  }
  return longest;
}

/** ASCII letters in lower case; one byte stays one byte. */
function fold(bytes: Buffer): Buffer {
  return Buffer.from(bytes.toString('latin1').toLowerCase(), 'latin1');
}
