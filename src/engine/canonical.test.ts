import { describe, expect, it } from 'vitest';
import { canonical, hashOf, isContained } from './canonical.ts';

describe('canonical [case 107]', () => {
  it('is one text whatever the order of keys', () => {
    expect(canonical({ b: 1, a: { d: [1, { z: 1, y: 2 }], c: null } })).toBe(
      '{"a":{"c":null,"d":[1,{"y":2,"z":1}]},"b":1}',
    );
    expect(hashOf({ a: 1, b: 2 })).toBe(hashOf({ b: 2, a: 1 }));
    expect(hashOf([1, 2])).not.toBe(hashOf([2, 1]));
  });

  it('leaves out what JSON leaves out', () => {
    const value = { a: undefined, b: [undefined, Number.NaN], c: 'x"\n', d: true };
    expect(JSON.parse(canonical(value))).toEqual(JSON.parse(JSON.stringify(value)));
  });
});

describe('isContained', () => {
  const live = { a: 1, b: { c: [1, { d: 2, e: 3 }], f: null }, g: 'x' };
  it.each([
    [{}, true],
    [{ a: 1 }, true],
    [{ a: undefined }, true],
    [{ a: '1' }, false],
    [{ b: { c: [1, { d: 2 }] } }, true],
    [{ b: { c: [1] } }, false],
    [{ b: { c: [{ d: 2 }, 1] } }, false],
    [{ b: { c: {} } }, true],
    [{ b: { h: {} } }, true],
    [{ b: { h: { i: 1 } } }, false],
    [{ b: { f: null } }, true],
    [{ g: ['x'] }, false],
  ])('%j: %s', (wanted, expected) => {
    expect(isContained(wanted, live)).toBe(expected);
  });
});
