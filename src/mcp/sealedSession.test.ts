import { describe, expect, test } from 'vitest';
import { createSessionOpener, openSession, sealSession } from './sealedSession.ts';

const KEYS = [
  { id: 'b', key: new Uint8Array(32).fill(2) },
  { id: 'a', key: new Uint8Array(32).fill(1) },
];
const SESSION = { version: '2025-11-25', expiresAtMs: 1_000 };

describe('sealed sessions', () => {
  test('open with the key, for the binding, in time; each is another text', () => {
    const one = sealSession(KEYS, 'acme/a', SESSION);
    expect(openSession(KEYS, 'acme/a', one, 999)).toEqual(SESSION);
    expect(sealSession(KEYS, 'acme/a', SESSION)).not.toBe(one);
    expect(one).toMatch(/^[\x21-\x7e]{1,256}$/);
  });

  test('an older key still opens what it sealed', () => {
    const old = sealSession(KEYS.slice(1), 'x', SESSION);
    expect(openSession(KEYS, 'x', old, 0)).toEqual(SESSION);
  });

  test('[case 4] every altered character, another binding, another key and the past open nothing', () => {
    const sealed = sealSession(KEYS, 'x', SESSION);
    for (let at = 0; at < sealed.length; at += 1) {
      for (const other of ['Q', 'R', '=', 'AA'].filter((each) => each !== sealed[at])) {
        expect(openSession(KEYS, 'x', sealed.slice(0, at) + other + sealed.slice(at + 1), 0)).toBeUndefined();
      }
    }
    expect(openSession(KEYS, 'y', sealed, 0)).toBeUndefined();
    expect(openSession(KEYS.slice(1), 'x', sealed, 0)).toBeUndefined();
    expect(openSession(KEYS, 'x', `a${sealed.slice(1)}`, 0)).toBeUndefined();
    expect(openSession(KEYS, 'x', sealed, 1_000)).toBeUndefined();
    for (const junk of ['', '.', 'b', 'b.', `b.${'A'.repeat(10)}`, 'b.AAAA.AAAA', 'x'.repeat(10_000)]) {
      expect(openSession(KEYS, 'x', junk, 0)).toBeUndefined();
    }
  });
});

describe('sessions that were opened before', () => {
  const sealed = sealSession(KEYS, 'x', SESSION);

  test('open again, and for nobody else', () => {
    const open = createSessionOpener();
    expect(open(KEYS, 'x', sealed, 0)).toEqual(SESSION);
    expect(open(KEYS, 'x', sealed, 999)).toEqual(SESSION);
    expect(open(KEYS, 'y', sealed, 0)).toBeUndefined();
    expect(open(KEYS, 'x', `${sealed}A`, 0)).toBeUndefined();
    expect(open(KEYS, 'x', sealed, 0)).toEqual(SESSION);
  });

  test('end with their time, and with the key', () => {
    const open = createSessionOpener();
    open(KEYS, 'x', sealed, 0);
    expect(open(KEYS, 'x', sealed, 1_000)).toBeUndefined();
    open(KEYS, 'x', sealed, 0);
    expect(open(KEYS.slice(1), 'x', sealed, 0)).toBeUndefined();
    open(KEYS, 'x', sealed, 0);
    expect(open([{ id: 'b', key: new Uint8Array(32).fill(3) }], 'x', sealed, 0)).toBeUndefined();
    const copies = KEYS.map(({ id, key }) => ({ id, key: Uint8Array.from(key) }));
    open(KEYS, 'x', sealed, 0);
    expect(open(copies, 'x', sealed, 0)).toEqual(SESSION);
  });

  test('are so many at most', () => {
    const open = createSessionOpener(2);
    const ids = [1, 2, 3, 4].map(() => sealSession(KEYS, 'x', SESSION));
    for (let round = 0; round < 2; round += 1) {
      for (const id of ids) expect(open(KEYS, 'x', id, 0)).toEqual(SESSION);
    }
  });
});
