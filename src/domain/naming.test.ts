import { describe, expect, test } from 'vitest';
import { MODEL_NAME_LIMIT, modelName, toolId, toolName } from './naming.ts';

describe('names', () => {
  test('a tool id is its name with underscores, and back', () => {
    expect(toolId('acme-github')).toBe('acme_github');
    expect(toolName('acme_github')).toBe('acme-github');
  });

  test('[P01] the model sees <tool>__<function>', () => {
    expect(modelName('acme_github', 'get_pr')).toBe('acme_github__get_pr');
  });

  test('[P01] [case 57] a longer name than vendors take gets a short form: stable, within the limit, without collision', () => {
    const long = 'f'.repeat(80);
    const short = modelName('acme_github', long);
    expect(short).toHaveLength(MODEL_NAME_LIMIT);
    expect(short).toBe(modelName('acme_github', long));
    expect(short).toMatch(/^acme_github__f+_[0-9a-f]{8}$/);
    expect(modelName('acme_github', `${long}x`)).not.toBe(short);
    expect(modelName('a', 'f'.repeat(61))).toHaveLength(MODEL_NAME_LIMIT);
    expect(modelName('a', 'f'.repeat(62))).toHaveLength(MODEL_NAME_LIMIT);
  });
});
