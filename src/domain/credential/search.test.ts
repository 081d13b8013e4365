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
  const MIXED = [...VALUE].map((char, i) => {
    const code = char.charCodeAt(0).toString(16).padStart(2, '0');
    return [char, `\\u00${code}`, `%${code}`, `&#${char.charCodeAt(0)};`, `&#x${code};`, `\\x${code}`][i % 6] ?? char;
  });
  const SPREAD: [string, string, boolean][] = [
    ['one character escaped for JSON', VALUE.replace('3', '\\u0033'), false],
    ['quotes as JSON has them, and one more escape', VALUE.replaceAll('"', '\\"').replace('s', '\\u0073'), false],
    ['each character another way', MIXED.join(''), false],
    ['named entities and percent', VALUE.replaceAll('"', '&quot;').replace('/', '%2F'), false],
    ['two events', `data: ${VALUE.slice(0, 12)}\n\ndata: ${VALUE.slice(12)}\n\n`, true],
    ['two lines of one event', `data: ${VALUE.slice(0, 12)}\ndata: ${VALUE.slice(12)}\n\n`, true],
    [
      'three events, in a string of JSON in each, one of another kind between',
      `data: {"d":{"c":"x ${VALUE.slice(0, 8)}"},"i":0}\n\nevent: ping\ndata: {"type":"ping"}\n\n` +
        `data: {"d":{"c":"${VALUE.slice(8, 14)}"},"i":0}\r\n\r\ndata: {"d":{"c":${JSON.stringify(`${VALUE.slice(14)} y`)}}}\n\n`,
      true,
    ],
  ];
  test.each(SPREAD)('in mixed spellings and pieces, cut at every place: %s', (_name, text, events) => {
    const whole = Buffer.from(`<<${text}>>`, 'latin1');
    const pieces = [VALUE.slice(0, 8), VALUE.slice(14, 22), VALUE.slice(8, 14)];
    for (let cut = 0; cut <= whole.length; cut++) {
      const redactor = createRedactor(needles, events);
      const parts = [redactor.push(whole.subarray(0, cut)), redactor.push(whole.subarray(cut)), redactor.end()];
      const out = Buffer.concat(parts).toString('latin1');
      expect(out).toHaveLength(whole.length);
      expect(out).toMatch(/^<<.*>>$/s);
      expect(redactor.found()).toBe(1);
      if (events) for (const piece of pieces) expect(out).not.toContain(piece);
      // What is around it stays.
      expect(out.replace(/[^\n{}:]/g, '')).toBe(whole.toString('latin1').replace(/[^\n{}:]/g, ''));
    }
  });
  test('in events, only what ends a text like the beginning of a value waits for the next one', () => {
    const redactor = createRedactor(needles, true);
    for (const text of ['data: {"c":"s3c"}\n\n', 'data: s3cret things\n\n', 'data: {"c":"other"}\n\n']) {
      expect(redactor.push(Buffer.from(text)).toString()).toBe(text);
    }
    expect(redactor.push(Buffer.from('data: {"c":"a s3cret"}\n\n')).toString()).toBe('data: {"c":"a ');
    expect(redactor.push(Buffer.from('data: {"c":"no"}\n\n')).toString()).toBe('');
    const more = 'data: {"c":"no"}\n\n'.repeat(2);
    expect(redactor.push(Buffer.from(more)).toString()).toContain('s3cret"}');
    expect(redactor.found()).toBe(0);
  });
  test('a host that writes one piece over and over costs no more than a bound', () => {
    const redactor = createRedactor(needles, true);
    const line = `data: ${`"${VALUE.slice(0, 8)}"`.repeat(100)}\n\n`;
    const bytes = Buffer.from(line.repeat(20));
    const out = Buffer.concat([redactor.push(bytes), redactor.end()]);
    expect(out).toHaveLength(bytes.length);
  });
  test('without values, bytes pass as they are', () => {
    const bytes = Buffer.from([0, 255, 10]);
    expect(createRedactor([]).push(bytes)).toBe(bytes);
  });
});
