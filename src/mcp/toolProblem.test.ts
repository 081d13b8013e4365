import { describe, expect, test } from 'vitest';
import { toolProblem } from './toolProblem.ts';

const sound = { name: 'echo', inputSchema: { type: 'object', properties: { text: { type: 'string' } } } };

describe('a definition, by the schema that clients judge it with', () => {
  test.each([
    ['the least there is', sound],
    [
      'all of it',
      {
        ...sound,
        title: 'Echo',
        description: 'Says it again.',
        annotations: { readOnlyHint: true },
        outputSchema: { type: 'object' },
      },
    ],
    ['words of JSON Schema that nobody knows', { ...sound, inputSchema: { type: 'object', 'x-new': [1] } }],
  ])('[D01] takes %s', (_, definition) => {
    expect(toolProblem(definition)).toBeUndefined();
  });

  test.each([
    ['a schema of something else', { ...sound, inputSchema: { type: 'string' } }, /inputSchema/],
    ['a title that is no text', { ...sound, title: 1 }, /title/],
    ['a description that is no text', { ...sound, description: ['a'] }, /description/],
    ['an icon without a place', { ...sound, icons: [{ mimeType: 'image/png' }] }, /icons/],
    ['no name', { inputSchema: { type: 'object' } }, /name/],
  ])('[case 56] says what is wrong with %s', (_, definition, problem) => {
    expect(toolProblem(definition)).toMatch(problem);
  });
});
