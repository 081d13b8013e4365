import { describe, expect, test } from 'vitest';
import { fitResult } from './fitResult.ts';

const text = (value: string) => ({ type: 'text', text: value });
const image = { type: 'image', data: 'x'.repeat(1_000), mimeType: 'image/png' };
/** 10 tokens are 40 characters. */
const fitted10 = (result: object, keeps = false) => fitResult(result as never, 10, keeps);

describe('[R12] what a model is given at once', () => {
  test('what fits is left alone', () => {
    expect(fitted10({ content: [text('x'.repeat(40)), image], structuredContent: { a: 1 } })).toEqual({ fits: true });
    expect(fitted10({ content: [] })).toEqual({ fits: true });
  });

  test('all the text is in the parts, and each of them fits', () => {
    const lines = Array.from({ length: 50 }, (_, n) => `line ${n}`).join('\n');
    const fitted = fitted10({
      content: [text(lines), image, { type: 'resource', resource: { uri: 'a:b', text: 'end' } }],
    });
    if (fitted.fits) throw new Error('it fits');
    expect(fitted.parts.join('')).toBe(`${lines}\n\nend`);
    expect(fitted.parts.every((part) => part.length <= 40)).toBe(true);
    expect(fitted.parts[0]?.endsWith('\n')).toBe(true);
    expect(fitted.result['content']).toEqual([text(fitted.parts[0] ?? ''), image]);
  });

  test('no character is cut apart', () => {
    const fitted = fitted10({ content: [text(`x${'😀'.repeat(100)}`)] });
    expect(fitted.fits ? [] : fitted.parts.filter((part) => !part.isWellFormed())).toEqual([]);
  });

  test('structured content that is too large goes, unless the function says that there is some', () => {
    const result = { content: [text('short')], structuredContent: { a: 'x'.repeat(100) }, isError: false };
    const fitted = fitted10(result);
    expect(fitted).toMatchObject({
      fits: false,
      parts: ['short'],
      result: { content: [text('short')], isError: false },
    });
    expect(fitted.fits || 'structuredContent' in fitted.result).toBe(false);
    expect(fitted10(result, true)).toEqual({ fits: true });
    const both = fitted10({ ...result, content: [text('y'.repeat(50))] }, true);
    expect(both.fits ? undefined : both.result['structuredContent']).toEqual(result.structuredContent);
  });
});
