/**
 * Text of a server that may be hostile, for a person who decides by it: what cannot be seen, or looks like something else, is written
 * as an escape. Pure.
 */

/** Cannot be seen, changes how its neighbours are seen, or means nothing: controls, formats, odd spaces, marks, private use, unassigned. */
const HIDDEN = /[\p{C}\p{M}\p{Zl}\p{Zp}]|(?! )\p{Zs}|[\u115f\u1160\u3164\uffa0\u2800]/u;
/** Letters and digits of ASCII in other dress, and phonetic ones. */
const DRESSED =
  /[\u0131\u017f\u0237\u0250-\u02ff\u1d00-\u1dbf\u2100-\u214f\u2160-\u217f\u2460-\u24ff\ua640-\ua69f\uff00-\uffef\u{1d400}-\u{1d7ff}\u{1f100}-\u{1f1ff}]/u;
/** Scripts with letters that look like Latin ones. */
const ALIKE =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Coptic}\p{Script=Lisu}]/u;
/** Their letters of which a whole Latin word could be made. */
const LOOKALIKES = new Set('асеіјорѕухһԁԛԝкмтгпибАВСЕНІЈКМОРЅТХУҮԌαγικνορτυχωΑΒΕΖΗΙΚΜΝΟΡΤΥΧѵѡѴϲϹօսհոցզՕՏՍ');
const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const LATIN = /\p{Script=Latin}/u;

/** In double quotes and on one line; what is not told apart by eye is `\u{…}`. */
export function visibleText(text: string): string {
  const suspicious = suspiciousAt(text);
  let shown = '';
  let at = 0;
  for (const character of text) {
    shown += suspicious.has(at) ? escaped(character) : plain(character);
    at += character.length;
  }
  return `"${shown}"`;
}

/** Places of letters in words that mix scripts, or that could be read as Latin. */
function suspiciousAt(text: string): ReadonlySet<number> {
  const found = new Set<number>();
  for (const { 0: word, index } of text.matchAll(WORD)) {
    const letters = [...word];
    if (!letters.some((letter) => ALIKE.test(letter))) continue;
    const deceives = LATIN.test(word) || letters.every((letter) => LOOKALIKES.has(letter) || !ALIKE.test(letter));
    let at = index;
    for (const letter of letters) {
      if (deceives && ALIKE.test(letter)) found.add(at);
      at += letter.length;
    }
  }
  return found;
}

const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '"': '\\"', '\\': '\\\\' };

function plain(character: string): string {
  const short = SHORT[character];
  if (short !== undefined) return short;
  return HIDDEN.test(character) || DRESSED.test(character) ? escaped(character) : character;
}

function escaped(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}
