/** Regular expressions that users write, on an engine that never backtracks: its time is linear in the text. Pure. */
import { RE2JS } from '@bufbuild/re2';

export interface Pattern {
  /** Whether it is found anywhere in the text. */
  readonly isFoundIn: (text: string) => boolean;
  /** Instructions of its program, which counted repetitions make long: a character costs at most so many steps. */
  readonly size: number;
}

/** Throws what the engine says of a text that is no pattern. */
export function compilePattern(source: string): Pattern {
  const pattern = RE2JS.compile(source);
  return { isFoundIn: (text) => pattern.test(text), size: pattern.re2().prog.numInst() };
}
