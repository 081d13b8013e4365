import { describe, expect, test } from 'vitest';
import { CORPUS } from '../../test/corpus/corpus.ts';
import { judge, readStored } from './judge.ts';
import { KINDS } from './kinds.ts';

const schemaOf = (kind: string) => {
  const found = KINDS.find((item) => item.kind === kind);
  if (!found) throw new Error(`no kind ${kind}`);
  return found.schema;
};

describe('[D03] the schemas judge the corpus', () => {
  test.for(CORPUS)('$name', ({ object, wrong }) => {
    const judged = judge(schemaOf(object.kind), object);
    const fields = judged.ok ? undefined : judged.problems.map(({ field }) => field);
    if (wrong === undefined) expect(fields, JSON.stringify(judged)).toBeUndefined();
    else
      expect(
        fields?.some((field) => (wrong === '' ? field === '' : field.startsWith(wrong))),
        `${fields}`,
      ).toBe(true);
  });

  test('[case 47] no name stands twice, so that a failure says which', () => {
    expect(new Set(CORPUS.map(({ name }) => name)).size).toBe(CORPUS.length);
  });
});

describe('a stored object is read leniently', () => {
  const stored = {
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'Tool',
    metadata: { name: 'a', uid: 'u', managedFields: [] },
    spec: { image: { reference: 'a/b:1', command: ['x'], transport: { http: {} } }, lease: ['a.example'] },
  };

  test('what a newer version wrote is left out', () => {
    const read = readStored(schemaOf('Tool'), stored);
    expect(read).toMatchObject({ ok: true, value: { spec: { timeout: '60s', concurrency: 8 } } });
    expect(JSON.stringify(read)).not.toContain('lease');
  });

  test('[case 114] what cannot be read says where', () => {
    const read = readStored(schemaOf('Tool'), { ...stored, spec: { image: { reference: 7 } } });
    expect(read.ok ? [] : read.problems.map(({ field }) => field)).toEqual([
      'spec.image.reference',
      'spec.image.command',
    ]);
  });
});
