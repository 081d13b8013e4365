import { describe, expect, test } from 'vitest';
import { visibleText } from './visibleText.ts';

describe('[P05] text for a person who decides by it', () => {
  test.for<[string, string, string]>([
    ['plain text stays', 'Merges a pull request (#7).', '"Merges a pull request (#7)."'],
    ['lines and quotes', 'a\n\t"b" \\u{200b}', '"a\\n\\t\\"b\\" \\\\u{200b}"'],
    ['a zero-width space', 'mer\u200bge', '"mer\\u{200b}ge"'],
    ['a zero-width joiner', 'a\u200d', '"a\\u{200d}"'],
    ['a soft hyphen', 'a\u00adb', '"a\\u{ad}b"'],
    ['an order mark', '\ufeffa', '"\\u{feff}a"'],
    ['right-to-left', 'a\u202eb\u2066', '"a\\u{202e}b\\u{2066}"'],
    ['tags', 'a\u{e0041}', '"a\\u{e0041}"'],
    ['variation selectors', 'a\ufe0f\u{e0100}', '"a\\u{fe0f}\\u{e0100}"'],
    ['controls', '\u001b[31m\u0000\u0085', '"\\u{1b}[31m\\u{0}\\u{85}"'],
    ['separators', 'a\u2028\u2029b', '"a\\u{2028}\\u{2029}b"'],
    ['other spaces', 'a\u00a0b\u2003\u3000', '"a\\u{a0}b\\u{2003}\\u{3000}"'],
    ['fillers', '\u3164\u2800\uffa0', '"\\u{3164}\\u{2800}\\u{ffa0}"'],
    ['private use and unassigned', '\ue000\u{10ffff}', '"\\u{e000}\\u{10ffff}"'],
    ['half a pair', 'a\ud800b', '"a\\u{d800}b"'],
    ['a mark on a letter', 'e\u0301', '"e\\u{301}"'],
    ['a Cyrillic letter in a Latin word', 'p\u0430ypal', '"p\\u{430}ypal"'],
    ['a word of Cyrillic that reads as Latin', 'the \u0441\u043e\u0440 reads', '"the \\u{441}\\u{43e}\\u{440} reads"'],
    ['a Greek letter in a Latin word', 'g\u03bfogle', '"g\\u{3bf}ogle"'],
    ['full width', '\uff21dmin', '"\\u{ff21}dmin"'],
    ['mathematical letters', '\u{1d5ba}dmin', '"\\u{1d5ba}dmin"'],
    ['a dotless i', 'adm\u0131n', '"adm\\u{131}n"'],
    ['Russian is Russian', 'Читает файл', '"Читает файл"'],
    ['Greek is Greek', 'Διαβάζει', '"Διαβάζει"'],
    ['Chinese, Japanese, accents, emoji', '读取 ファイル café 🚀', '"读取 ファイル café 🚀"'],
  ])('%s', ([, text, shown]) => {
    expect(visibleText(text)).toBe(shown);
  });

  test('two texts that differ are never shown the same', () => {
    const texts = ['a', 'a\u200b', 'a\\u{200b}', '\u0430', 'a ', 'a\u00a0', 'a\n', 'a\\n', 'e\u0301', 'é'];
    expect(new Set(texts.map(visibleText)).size).toBe(texts.length);
  });
});
