import { describe, expect, test } from 'vitest';
import { formsOf } from './forms.ts';
import { compileNeedles, createRedactor, holds, masked } from './search.ts';

const VALUE = 's3cret/Value+with"quotes"&more';
const needles = compileNeedles([{ value: VALUE, instead: 'PLACEHOLDER' }]);

describe('redaction', () => {
  test('every form, cut at every place, is masked, and nothing else changes', () => {
    for (const form of formsOf(VALUE)) {
      const text = Buffer.from(`<<${form}>>`, 'latin1');
      for (let cut = 0; cut <= text.length; cut++) {
        const redactor = createRedactor(needles);
        const out = Buffer.concat([
          redactor.push(text.subarray(0, cut)),
          redactor.push(text.subarray(cut)),
          redactor.end(),
        ]);
        expect(out).toHaveLength(text.length);
        expect(holds(out.toString('latin1'), needles)).toBe(false);
        expect(out.toString('latin1')).toMatch(/^<<.*>>$/s);
        expect(redactor.found()).toBe(1);
      }
    }
  });
  test('only what could be the beginning of a value is held back', () => {
    const redactor = createRedactor(needles);
    expect(redactor.push(Buffer.from('data: x\n\n')).toString()).toBe('data: x\n\n');
    expect(redactor.push(Buffer.from('abc s3cr')).toString()).toBe('abc ');
    expect(redactor.push(Buffer.from('ets')).toString()).toBe('s3cret');
    expect(redactor.end().toString()).toBe('s');
  });
  test('a value within a value: the longer one is masked', () => {
    const both = compileNeedles([
      { value: 'abcdefgh', instead: '1' },
      { value: 'abcdefghijkl', instead: '2' },
    ]);
    expect(masked('abcdefghijkl abcdefgh', both)).toBe('200000000000 10000000');
  });
  test('values that follow each other, and half of one before a whole one', () => {
    expect(holds(masked(VALUE + VALUE, needles), needles)).toBe(false);
    expect(masked(VALUE.slice(0, 9) + VALUE, needles)).toBe(
      `${VALUE.slice(0, 9)}${'PLACEHOLDER'.padEnd(VALUE.length, '0')}`,
    );
  });
  test('without values, bytes pass as they are', () => {
    const bytes = Buffer.from([0, 255, 10]);
    expect(createRedactor([]).push(bytes)).toBe(bytes);
  });
});
