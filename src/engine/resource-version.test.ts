import { describe, expect, it } from 'vitest';
import { compareVersions } from './resource-version.ts';

describe('compareVersions', () => {
  it.each([
    ['9', '10', -1],
    ['10', '9', 1],
    ['10', '10', 0],
    ['18446744073709551616', '18446744073709551617', -1],
    ['opaque', 'opaque', 0],
    ['opaque', '10', undefined],
    ['010', '10', undefined],
    [undefined, '10', undefined],
  ])('%s and %s: %s', (a, b, expected) => {
    const result = compareVersions(a, b);
    expect(result === undefined ? undefined : Math.sign(result)).toBe(expected);
  });
});
