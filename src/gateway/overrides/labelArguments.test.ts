import { describe, expect, test } from 'vitest';
import type { Terms } from '../decide.ts';
import { labelArguments } from './labelArguments.ts';

const terms = (aiLabel: string | undefined, pointer: string | undefined, remote = true): Terms =>
  ({
    tool: { remote },
    described: { override: pointer === undefined ? undefined : { aiLabel: pointer } },
    aiLabel,
  }) as Terms;

describe('[P07] the mark on what an agent writes', () => {
  const cases: [string, string | undefined, string | undefined, object, object | undefined][] = [
    ['at the start', '[AI] ', '/body', { body: 'hi' }, { body: '[AI] hi' }],
    ['once', '[AI] ', '/body', { body: '[AI] hi' }, { body: '[AI] hi' }],
    [
      'within',
      '[AI] ',
      '/fields/description',
      { fields: { description: 'd', n: 1 } },
      { fields: { description: '[AI] d', n: 1 } },
    ],
    ['a key with a slash', '[AI] ', '/a~1b', { 'a/b': 'x' }, { 'a/b': '[AI] x' }],
    ['switched off', undefined, '/body', { body: 'hi' }, { body: 'hi' }],
    ['no argument is named', '[AI] ', undefined, { body: 'hi' }, { body: 'hi' }],
    ['nothing is written', '[AI] ', '/body', { title: 't' }, { title: 't' }],
    ['null is nothing', '[AI] ', '/body', { body: null }, { body: null }],
    ['no text where one should be', '[AI] ', '/body', { body: { text: 'hi' } }, undefined],
    ['a text where an object should be', '[AI] ', '/fields/description', { fields: 'hi' }, undefined],
    ['an inherited name', '[AI] ', '/constructor/name', {}, {}],
  ];
  test.each(cases)('%s', (_, label, pointer, args, labelled) => {
    const before = structuredClone(args);
    const result = labelArguments(terms(label, pointer), args as never);
    expect(result.ok ? result.arguments : undefined).toEqual(labelled);
    expect(args).toEqual(before);
  });

  test('a mark that cannot be read: what should carry it is not sent, the rest is', () => {
    const broken = { ...terms(undefined, '/body'), aiLabelBroken: true };
    expect(labelArguments(broken, { body: 'hi' }).ok).toBe(false);
    expect(labelArguments(broken, { title: 'hi' }).ok).toBe(true);
  });

  test('a local tool is told the mark, a remote one is not', () => {
    expect(labelArguments(terms('[AI] ', undefined, false), {})).toMatchObject({
      meta: { 'ai.oz0/ai-label': '[AI] ' },
    });
    expect(labelArguments(terms('[AI] ', undefined), {})).toMatchObject({ meta: {} });
    expect(labelArguments(terms(undefined, undefined, false), {})).toMatchObject({ meta: {} });
  });
});
