/** Regular expressions that users write, on an engine that never backtracks. Pure. */
import { RE2JS } from '@bufbuild/re2';

const KEPT = 256;
const compiled = new Map<string, (text: string) => boolean>();

/** Whether the pattern is found anywhere in a text. Throws what the engine says of a pattern that is none. */
export function compile(pattern: string): (text: string) => boolean {
  let found = compiled.get(pattern);
  if (found === undefined) {
    const matcher = RE2JS.compile(pattern);
    found = (text) => matcher.test(text);
    if (compiled.size >= KEPT) compiled.clear();
    compiled.set(pattern, found);
  }
  return found;
}
