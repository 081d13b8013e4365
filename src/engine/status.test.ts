import { describe, expect, it, test } from 'vitest';
import type { Fact } from './contract.ts';
import { composeStatus, isSameStatus, type StatusInput, type Trouble, transitions } from './status.ts';

const NOW = Date.UTC(2026, 10, 30, 12, 0, 0, 500);
const fact = (type: string, status: Fact['status'], reason = 'Because', message = '', stalled = false): Fact => ({
  type,
  status,
  reason,
  message,
  ...(stalled ? { stalled } : {}),
});

function compose(facts: readonly Fact[], given: Partial<StatusInput> = {}) {
  return composeStatus({
    before: undefined,
    facts: { conditions: facts },
    declared: ['A', 'B'],
    trouble: undefined,
    generation: 3,
    nowMs: NOW,
    ...given,
  });
}

const shown = (status: ReturnType<typeof compose>) =>
  status.conditions.map(({ type, status, reason }) => `${type}=${status} ${reason}`);

const refused: Trouble = { reason: 'ChildRefused', message: 'no', stalled: true };
const away: Trouble = { reason: 'ApiUnavailable', message: 'no', stalled: false };

test('a mark is shown while it is true; Ready does not sum it up, and has its reason where all is well', () => {
  const facts = [fact('A', 'True'), fact('B', 'True'), fact('Current', 'True'), fact('Pending', 'False')];
  expect(shown(compose(facts, { marks: ['Current', 'Pending'] }))).toEqual([
    'Ready=True Because',
    'A=True Because',
    'B=True Because',
    'Current=True Because',
  ]);
  expect(shown(compose(facts))).not.toContain('Current=True Because');
});

describe('composeStatus', () => {
  it.each<[string, readonly Fact[], Trouble | undefined, readonly string[]]>([
    [
      'all True',
      [fact('A', 'True'), fact('B', 'True')],
      undefined,
      ['Ready=True Ready', 'A=True Because', 'B=True Because'],
    ],
    [
      'an Unknown: reconciling',
      [fact('A', 'True'), fact('B', 'Unknown', 'Starting')],
      undefined,
      ['Ready=Unknown Starting', 'A=True Because', 'B=Unknown Starting', 'Reconciling=True Starting'],
    ],
    [
      'any False wins over any Unknown',
      [fact('A', 'Unknown', 'Starting'), fact('B', 'False', 'Broken')],
      undefined,
      ['Ready=False Broken', 'A=Unknown Starting', 'B=False Broken'],
    ],
    [
      'stalled',
      [fact('A', 'False', 'Wrong', '', true), fact('B', 'Unknown')],
      undefined,
      ['Ready=False Wrong', 'A=False Wrong', 'B=Unknown Because', 'Stalled=True Wrong'],
    ],
    [
      'what is left out is Unknown, what is not declared is not shown',
      [fact('B', 'True'), fact('C', 'False')],
      undefined,
      ['Ready=Unknown NotReported', 'A=Unknown NotReported', 'B=True Because', 'Reconciling=True NotReported'],
    ],
    [
      'trouble that lasts',
      [fact('A', 'True'), fact('B', 'True')],
      refused,
      ['Ready=False ChildRefused', 'A=True Because', 'B=True Because', 'Stalled=True ChildRefused'],
    ],
    [
      'trouble that passes',
      [fact('A', 'True'), fact('B', 'True')],
      away,
      ['Ready=Unknown ApiUnavailable', 'A=True Because', 'B=True Because', 'Reconciling=True ApiUnavailable'],
    ],
    [
      'a False says more than trouble',
      [fact('A', 'False', 'Broken'), fact('B', 'True')],
      away,
      ['Ready=False Broken', 'A=False Broken', 'B=True Because'],
    ],
  ])('%s', (_, facts, trouble, expected) => {
    expect(shown(compose(facts, { trouble }))).toEqual(expected);
  });

  it('stamps the time when a status changes, and keeps it otherwise', () => {
    const before = compose([fact('A', 'True'), fact('B', 'Unknown')]);
    expect(before.conditions.every((condition) => condition.lastTransitionTime === '2026-11-30T12:00:00Z')).toBe(true);
    const after = compose([fact('A', 'True', 'Other', 'words'), fact('B', 'True')], {
      before,
      nowMs: NOW + 60_000,
      generation: 4,
    });
    expect(after.conditions.map(({ type, lastTransitionTime }) => [type, lastTransitionTime.slice(14, 16)])).toEqual([
      ['Ready', '01'],
      ['A', '00'],
      ['B', '01'],
    ]);
    expect(after).toMatchObject({ observedGeneration: 4 });
    expect(after.conditions.every((condition) => condition.observedGeneration === 4)).toBe(true);
  });

  it('trims messages to one line of 1024', () => {
    const { conditions } = compose([
      fact('A', 'False', 'Broken', `a\n\u001b[31m${'x'.repeat(5000)}`),
      fact('B', 'True'),
    ]);
    expect(conditions[1]?.message).toHaveLength(1024);
    expect(conditions[1]?.message).toMatch(/^a \[31mx+…$/);
  });

  it('takes any stored status', () => {
    for (const before of [null, 3, 'x', [], {}, { conditions: 'x' }, { conditions: [null, 3, { type: 'A' }] }]) {
      expect(shown(compose([fact('A', 'True'), fact('B', 'True')], { before }))).toHaveLength(3);
    }
  });
});

describe('isSameStatus', () => {
  const status = compose([fact('A', 'True'), fact('B', 'True')], {
    facts: { conditions: [fact('A', 'True'), fact('B', 'True')], status: { b: 1, a: [1] } },
  });
  it('is not misled by order of keys, and sees every field', () => {
    expect(isSameStatus(JSON.parse(JSON.stringify({ a: [1], ...status })), status)).toBe(true);
    expect(isSameStatus({ ...status, extra: 1 }, status)).toBe(false);
    expect(isSameStatus({ ...status, b: 2 }, status)).toBe(false);
    expect(isSameStatus(undefined, status)).toBe(false);
    const again = composeStatus({
      before: status,
      facts: { conditions: [fact('A', 'True'), fact('B', 'True')], status: { a: [1], b: 1 } },
      declared: ['A', 'B'],
      trouble: undefined,
      generation: 3,
      nowMs: NOW + 1e9,
    });
    expect(isSameStatus(status, again)).toBe(true);
  });
});

describe('transitions', () => {
  it('are Ready and Stalled, and what became False for a reason of its own', () => {
    const before = compose([fact('A', 'True'), fact('B', 'True')]);
    const after = compose([fact('A', 'False', 'One', '', true), fact('B', 'False', 'Two')], { before });
    expect(transitions(before, after).map(({ type }) => type)).toEqual(['Ready', 'B', 'Stalled']);
    expect(transitions(after, after)).toEqual([]);
    expect(transitions(undefined, compose([fact('A', 'Unknown'), fact('B', 'True')]))).toEqual([]);
    expect(transitions(after, before).map(({ type }) => type)).toEqual(['Ready']);
  });
});
