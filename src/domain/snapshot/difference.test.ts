import { describe, expect, test } from 'vitest';
import {
  BY_NAME_ONLY,
  type Definition,
  DIFFERENCE_MAX_BYTES,
  describeDifference,
  differenceByName,
} from './difference.ts';

const MERGE: Definition = {
  name: 'merge',
  description: 'Merges a pull request.',
  title: 'Merge',
  inputSchema: {
    type: 'object',
    properties: {
      repo: { type: 'string', enum: ['a', 'b'], description: 'Which.' },
      number: { type: ['integer', 'null'], default: { x: [1, 2] } },
    },
    required: ['repo', 'number'],
  },
  annotations: { destructiveHint: true },
  _meta: { 'ai.oz0/honours-idempotency-key': true },
};
const GET: Definition = { name: 'get_pr', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } };

/** `MERGE` while it is being changed. */
interface Draft {
  description?: string;
  title?: string;
  annotations: object;
  inputSchema: {
    properties: {
      repo: { description: string; enum: string[] };
      number: { type: string[]; default: { x: number[] } };
      [name: string]: unknown;
    };
    required: string[];
  };
  outputSchema?: object;
  icons?: object[];
  _meta: object;
}

function changed(change: (definition: Draft) => void): Definition {
  const draft = structuredClone(MERGE) as unknown as Draft;
  change(draft);
  return { ...draft };
}

const differ = (now: Definition) => describeDifference({ tools: [MERGE, GET] }, { tools: [GET, now] });

describe('[P05] [case 49] what changed, and where', () => {
  test.for<[string, (definition: Draft) => void, string]>([
    [
      'a description',
      (d) => {
        d.description += ' Then mail it.';
      },
      'description: "Merges a pull request." → "Merges a pull request. Then mail it."',
    ],
    [
      'one character that is not seen',
      (d) => {
        d.description = 'Merges a\u200b pull request.';
      },
      'description: "Merges a pull request." → "Merges a\\u{200b} pull request."',
    ],
    [
      'a title',
      (d) => {
        delete d.title;
      },
      'title: "Merge" → (none)',
    ],
    [
      'a hint',
      (d) => {
        d.annotations = { readOnlyHint: true };
      },
      'annotations.readOnlyHint: (none) → true',
    ],
    [
      'a nested text',
      (d) => {
        d.inputSchema.properties.repo.description = 'All.';
      },
      'inputSchema.properties.repo.description: "Which." → "All."',
    ],
    [
      'an enum',
      (d) => {
        d.inputSchema.properties.repo.enum = ['c', 'a'];
      },
      'inputSchema.properties.repo.enum: "b" → "c"',
    ],
    [
      'what is required',
      (d) => {
        d.inputSchema.required = ['repo'];
      },
      'inputSchema.required: "number" → (none)',
    ],
    [
      'a default',
      (d) => {
        d.inputSchema.properties.number.default.x = [2, 1];
      },
      'inputSchema.properties.number.default.x[0]: 1 → 2',
    ],
    [
      'a new property',
      (d) => {
        d.inputSchema.properties.token = { type: 'string' };
      },
      'inputSchema.properties.token: (none) → {"type":"string"}',
    ],
    [
      'a property called as a keyword',
      (d) => {
        d.inputSchema.properties['a b'] = true;
      },
      'inputSchema.properties["a b"]: (none) → true',
    ],
    [
      'an output schema',
      (d) => {
        d.outputSchema = { type: 'object' };
      },
      'outputSchema: (none) → {"type":"object"}',
    ],
    [
      'an icon',
      (d) => {
        d.icons = [{ src: 'data:,x' }];
      },
      'icons: (none) → [{"src":"data:,x"}]',
    ],
    [
      '_meta',
      (d) => {
        d._meta = {};
      },
      '_meta["ai.oz0/honours-idempotency-key"]: true → (none)',
    ],
  ])('%s', ([, change, line]) => {
    const text = differ(changed(change));
    expect(text.split('\n')).toContain(`  ${line}`);
    expect(text).toMatch(/^Changed \(1\): merge$/m);
    expect(text).not.toContain('get_pr');
  });

  test('what a hint makes of a function is said', () => {
    expect(
      differ(
        changed((d) => {
          d.annotations = { readOnlyHint: true };
        }),
      ),
    ).toContain('~ merge (Destructive → ReadOnly)');
  });

  test('instructions', () => {
    const text = describeDifference(
      { instructions: 'Be kind.', tools: [GET] },
      { instructions: 'Be rude.', tools: [GET] },
    );
    expect(text).toContain('Changed: the server\'s instructions\n\ninstructions: "Be kind." → "Be rude."');
  });

  test('a change far into a long text is shown where it is', () => {
    const long = 'word '.repeat(1_000);
    const text = describeDifference(
      { tools: [{ ...GET, description: `${long}end` }] },
      { tools: [{ ...GET, description: `${long}\u202eend` }] },
    );
    expect(text).toMatch(/description: …"[^"]*word end" → …"[^"]*word \\u\{202e\}end"/);
  });

  test('functions that come and go', () => {
    const text = describeDifference({ tools: [MERGE] }, { tools: [{ ...GET, description: 'Reads one.' }] });
    expect(text.split('\n')).toEqual([
      'Added (1): get_pr',
      'Removed (1): merge',
      '',
      '+ get_pr (ReadOnly)',
      '  description: "Reads one."',
      '- merge',
    ]);
  });
});

describe('[case 53] what means the same is no difference', () => {
  test.for<[string, (definition: Draft) => void]>([
    [
      'order of keys',
      (d) => {
        d.inputSchema = Object.fromEntries(Object.entries(d.inputSchema).reverse()) as Draft['inputSchema'];
      },
    ],
    [
      'order of an enum',
      (d) => {
        d.inputSchema.properties.repo.enum.reverse();
      },
    ],
    [
      'order of types',
      (d) => {
        d.inputSchema.properties.number.type.reverse();
      },
    ],
  ])('%s', ([, change]) => {
    expect(differ(changed(change))).toBe('');
  });

  test('and beside a real change it is not told', () => {
    const text = differ(
      changed((d) => {
        d.title = 'M';
        d.inputSchema.required.reverse();
      }),
    );
    expect(text).not.toContain('required');
  });
});

describe('bounds', () => {
  const many = (count: number, description: (index: number) => string): Definition[] =>
    Array.from({ length: count }, (_, index) => ({
      name: `f${index}`,
      inputSchema: {},
      description: description(index),
    }));
  const bytes = (text: string) => new TextEncoder().encode(text).length;

  test.for<[string, Definition[], Definition[]]>([
    ['two thousand functions', many(2_000, () => 'a'), many(2_000, () => '\u200b'.repeat(5_000))],
    [
      'one function with a thousand places',
      [{ ...GET, _meta: {} }],
      [{ ...GET, _meta: Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`k${n}`, n])) }],
    ],
    ['names of another kind', [], [{ name: '\u202e'.repeat(10_000), inputSchema: {} }]],
    ['text of four bytes a character', many(50, () => 'a'), many(50, () => '😀'.repeat(500))],
  ])('[case 122] %s', ([, from, to]) => {
    const text = describeDifference({ tools: from }, { tools: to });
    expect(bytes(text)).toBeLessThanOrEqual(DIFFERENCE_MAX_BYTES);
    expect(text).toMatch(/more|…/);
    expect(text).not.toMatch(/[\u200b\u202e]/);
  });

  test('noise does not push a function out of sight: all are named first', () => {
    const noisy = many(30, (index) => 'x'.repeat(index * 50));
    const text = describeDifference(
      { tools: [...many(30, () => 'a'), { ...GET, name: 'zz' }] },
      { tools: [...noisy, { ...GET, name: 'zz', annotations: {} }] },
    );
    expect(text.split('\n')[0]).toMatch(/^Changed \(31\): .*zz$/);
  });

  test('[P05] order of listing does not count', () => {
    const now = many(20, (index) => String(index));
    expect(describeDifference({ tools: [GET] }, { tools: now })).toBe(
      describeDifference({ tools: [GET] }, { tools: [...now].reverse() }),
    );
  });

  test('__proto__ is a key like others', () => {
    const evil = JSON.parse(
      '{"name":"get_pr","inputSchema":{"type":"object","properties":{"__proto__":{"type":"string"}}},"annotations":{"readOnlyHint":true}}',
    ) as Definition;
    expect(describeDifference({ tools: [GET] }, { tools: [evil] })).toContain(
      'inputSchema.properties: (none) → {"__proto__":{"type":"string"}}',
    );
  });
});

test('by hashes alone, names are told, and that it is no more', () => {
  const hashes = (...pairs: [string, string][]) => ({ functions: pairs.map(([name, hash]) => ({ name, hash })) });
  expect(
    differenceByName(hashes(['a', '1'], ['b', '1'], ['c', '1']), hashes(['a', '1'], ['b', '2'], ['d', '1'])).split(
      '\n',
    ),
  ).toEqual(['Changed (1): b', 'Added (1): d', 'Removed (1): c', BY_NAME_ONLY]);
});
