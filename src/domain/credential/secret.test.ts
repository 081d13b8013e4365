import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { makePlaceholder, PLACEHOLDER_ENTROPY_BYTES, PLACEHOLDER_LENGTH } from './placeholder.ts';
import { SECRET_MARK, Secret } from './secret.ts';

describe('[I4] a secret', () => {
  const secret = new Secret('hunter2-hunter2');
  test.each([
    ['template', `${secret}`],
    ['concatenation', `${secret}`.concat('')],
    ['String', String(secret)],
    ['JSON', JSON.parse(JSON.stringify(secret))],
    ['inspect', inspect(secret, { showHidden: true, depth: 9 })],
  ])('%s gives a mark', (_, text) => {
    expect(text).toBe(SECRET_MARK);
  });
  test('nothing of it is a property', () => {
    expect(Object.getOwnPropertyNames(secret)).toEqual([]);
    expect(JSON.stringify({ ...secret, nested: [secret] })).not.toContain('hunter2');
    expect(inspect({ nested: { secret } }, { depth: 9 })).not.toContain('hunter2');
    expect(structuredClone({ ...secret })).toEqual({});
  });
  test('the value comes out of one method', () => {
    expect(secret.reveal()).toBe('hunter2-hunter2');
  });
});

describe('a placeholder', () => {
  const of = (byte: number) => makePlaceholder(new Uint8Array(PLACEHOLDER_ENTROPY_BYTES).fill(byte));
  test('has one length, and letters and digits only', () => {
    const made = makePlaceholder(Uint8Array.from({ length: PLACEHOLDER_ENTROPY_BYTES }, (_, at) => (at * 37) % 256));
    expect(made).toMatch(/^[A-Za-z0-9]+$/);
    expect(made).toHaveLength(PLACEHOLDER_LENGTH);
  });
  test('differs with its randomness', () => expect(of(1)).not.toBe(of(2)));
  test('is not made of too little', () => {
    expect(() => makePlaceholder(new Uint8Array(8))).toThrow(RangeError);
    expect(() => of(255)).toThrow(RangeError);
  });
});
