import { describe, expect, test } from 'vitest';
import { callName, idempotencyKey } from './callName.ts';
import { nextAttempt, retrySafe } from './retry.ts';

const plain = { kind: 'Additive', idempotent: false, honoursKey: false, approved: true } as const;

describe('[R02] [R03] [R04] which calls are safe to repeat', () => {
  test.each([
    ['reads', { kind: 'ReadOnly' }, true],
    ['reads, and nobody approved the listing that says so', { kind: 'ReadOnly', approved: false }, false],
    ['adds', {}, false],
    ['destroys', { kind: 'Destructive' }, false],
    ['undeclared', { kind: 'Undeclared' }, false],
    ['idempotent on its word alone', { idempotent: true }, false],
    ['keeps keys, and is not idempotent', { honoursKey: true }, false],
    ['idempotent, and keeps keys', { idempotent: true, honoursKey: true }, true],
    ['destroys, idempotent, and keeps keys', { kind: 'Destructive', idempotent: true, honoursKey: true }, true],
    ['idempotent and keeps keys, not approved', { idempotent: true, honoursKey: true, approved: false }, false],
  ] as const)('%s', (_, terms, safe) => {
    expect(retrySafe({ ...plain, ...terms })).toBe(safe);
  });
});

describe('[R01] [R02] [case 63] [case 70] what follows an attempt', () => {
  test.each([
    ['lost, the first', true, { attempts: 1, how: 'lost', leftMs: 60_000 }, 'again'],
    ['lost, the third', true, { attempts: 3, how: 'lost', leftMs: 60_000 }, 'again'],
    ['lost, the fourth', true, { attempts: 4, how: 'lost', leftMs: 60_000 }, 'end'],
    ['lost, and the caller’s time is over', true, { attempts: 1, how: 'lost', leftMs: 50 }, 'end'],
    ['answered, if with an error', true, { attempts: 1, how: 'answered', leftMs: 60_000 }, 'end'],
    ['ended by somebody', true, { attempts: 1, how: 'other', leftMs: 60_000 }, 'end'],
    ['lost, and not safe to repeat', false, { attempts: 1, how: 'lost', leftMs: 60_000 }, 'end'],
  ] as const)('%s', (_, safe, ended, follows) => {
    expect(nextAttempt(safe, ended).do).toBe(follows);
  });

  test('each pause is longer than the one before, and short', () => {
    const pauses = [1, 2, 3].map((attempts) => {
      const next = nextAttempt(true, { attempts, how: 'lost', leftMs: 60_000 });
      return next.do === 'again' ? next.afterMs : Number.NaN;
    });
    expect(pauses).toEqual([100, 200, 400]);
  });
});

describe('[case 65] names and keys', () => {
  test('a name is a Kubernetes name of fixed length, and the key is not it', () => {
    expect(callName('uid-1', 'call-1')).toMatch(/^c-[0-9a-f]{40}$/);
    expect(idempotencyKey('uid-1', 'call-1')).not.toBe(callName('uid-1', 'call-1').slice(2));
  });

  test('equal for one call of one agent, and for no other', () => {
    const of = [
      ['a', 'bc'],
      ['ab', 'c'],
      ['a', 'b'],
      ['b', 'a'],
      ['a","b', ''],
      ['a', 'b","'],
    ] as const;
    for (const make of [callName, idempotencyKey]) {
      expect(new Set(of.map(([agent, call]) => make(agent, call))).size).toBe(of.length);
      expect(make('a', 'b')).toBe(make('a', 'b'));
    }
  });
});
