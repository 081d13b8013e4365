import { describe, expect, test } from 'vitest';
import { applyAiLabel } from './aiLabel.ts';
import { effectiveHints, type HintOverride } from './hints.ts';

describe('[P07] overrides of hints', () => {
  const TABLE: [string, unknown, HintOverride, object][] = [
    ['sets one that is missing', {}, { readOnlyHint: true }, { kind: 'ReadOnly' }],
    ['of a server that says nothing at all', undefined, { destructiveHint: false }, { kind: 'Additive' }],
    ['tightens', { readOnlyHint: true }, { readOnlyHint: false }, { kind: 'Undeclared' }],
    [
      'does not loosen',
      { readOnlyHint: false, destructiveHint: true },
      { readOnlyHint: true },
      { kind: 'Destructive' },
    ],
    ['does not loosen either', { destructiveHint: true }, { destructiveHint: false }, { kind: 'Destructive' }],
    ['nor what nobody can read', { readOnlyHint: 'true' }, { readOnlyHint: true }, { kind: 'Undeclared' }],
    ['destructive clears read-only', { readOnlyHint: true }, { destructiveHint: true }, { kind: 'Destructive' }],
    ['open world is tightened', { openWorldHint: false }, { openWorldHint: true }, { openWorld: true }],
    ['and not loosened', { openWorldHint: true }, { openWorldHint: false }, { openWorld: true }],
    ['but set', {}, { openWorldHint: false }, { openWorld: false }],
    ['idempotent is set', {}, { idempotentHint: true }, { idempotent: true }],
    ['and tightened', { idempotentHint: true }, { idempotentHint: false }, { idempotent: false }],
  ];
  test.each(TABLE)('%s', (_, annotations, override, expected) => {
    expect(effectiveHints({ annotations, override, annotationsCount: true })).toMatchObject(expected);
  });

  test('[P06] before its listing is its snapshot, nothing is known of a remote server’s function', () => {
    const override = { readOnlyHint: true, openWorldHint: false, idempotentHint: true };
    expect(effectiveHints({ annotations: { readOnlyHint: true }, override, annotationsCount: false })).toEqual({
      kind: 'Undeclared',
      openWorld: true,
      idempotent: false,
    });
  });

  test('an override that was reviewed also loosens', () => {
    const annotations = { readOnlyHint: false, destructiveHint: true, openWorldHint: true, idempotentHint: false };
    const override = { readOnlyHint: true, destructiveHint: false, openWorldHint: false, idempotentHint: true };
    const question = { annotations, override, annotationsCount: true };
    expect(effectiveHints(question)).toEqual({ kind: 'Destructive', openWorld: true, idempotent: false });
    expect(effectiveHints({ ...question, reviewed: true })).toEqual({
      kind: 'ReadOnly',
      openWorld: false,
      idempotent: true,
    });
  });

  test('no override that was not reviewed makes a promise that the server’s own hints deny', () => {
    const values = [undefined, true, false, 'true', null] as const;
    const flags = [undefined, true, false] as const;
    const withOnly = (entries: Record<string, unknown>) =>
      Object.fromEntries(Object.entries(entries).filter(([, value]) => value !== undefined));
    for (const readOnlyHint of values) {
      for (const destructiveHint of values) {
        for (const overReadOnly of flags) {
          for (const overDestructive of flags) {
            const annotations = withOnly({ readOnlyHint, destructiveHint });
            const override = withOnly({ readOnlyHint: overReadOnly, destructiveHint: overDestructive });
            const { kind } = effectiveHints({ annotations, override, annotationsCount: true });
            const said = JSON.stringify({ annotations, override });
            if (destructiveHint === true || overDestructive === true) expect(kind, said).toBe('Destructive');
            if (readOnlyHint !== undefined && readOnlyHint !== true) expect(kind, said).not.toBe('ReadOnly');
            if (overReadOnly === false) expect(kind, said).not.toBe('ReadOnly');
          }
        }
      }
    }
  });
});

describe('[P07] the AI label', () => {
  const LABEL = '[AI agent] ';
  test.each<[string, string, object, object]>([
    ['at the start', '/body', { body: 'hi', n: 1 }, { body: '[AI agent] hi', n: 1 }],
    ['once', '/body', { body: '[AI agent] hi' }, { body: '[AI agent] hi' }],
    [
      'below',
      '/fields/description',
      { fields: { description: 'x', a: 1 } },
      { fields: { description: '[AI agent] x', a: 1 } },
    ],
    ['in a list', '/items/1', { items: ['a', 'b'] }, { items: ['a', '[AI agent] b'] }],
    ['escaped', '/a~1b/c~0d', { 'a/b': { 'c~d': 'x' } }, { 'a/b': { 'c~d': '[AI agent] x' } }],
    [
      'a key like any other',
      '/__proto__',
      JSON.parse('{"__proto__": "x"}'),
      JSON.parse('{"__proto__": "[AI agent] x"}'),
    ],
  ])('%s', (_, pointer, args, expected) => {
    const before = structuredClone(args);
    const labelled = applyAiLabel(args as Record<string, unknown>, pointer, LABEL);
    expect(JSON.stringify(labelled.ok && labelled.args)).toBe(JSON.stringify(expected));
    expect(args).toEqual(before);
  });

  test.each(['', '/nothing', '/n', '/items/2', '/items/-', '/body/x', '/toString'])(
    'no text at %s is a problem',
    (pointer) => {
      const labelled = applyAiLabel({ '': 'x', body: 'x', n: 1, items: ['a'] }, pointer, LABEL);
      expect(labelled).toMatchObject({ ok: false, problem: expect.stringContaining(pointer) });
    },
  );

  test('off, or of no argument: nothing is put', () => {
    const args = { body: 'x' };
    for (const [pointer, label] of [
      ['/body', undefined],
      ['/body', ''],
      [undefined, LABEL],
    ] as const) {
      expect(applyAiLabel(args, pointer, label)).toEqual({ ok: true, args });
    }
  });
});
