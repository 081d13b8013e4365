import { describe, expect, it } from 'vitest';
import type { KubeObject } from './contract.ts';
import { createFreshness, LONGEST_WAIT_MS } from './freshness.ts';

function object(uid: string, resourceVersion: string, deletionTimestamp?: string): KubeObject {
  const metadata = { name: 'a', uid, resourceVersion, ...(deletionTimestamp ? { deletionTimestamp } : {}) };
  return { apiVersion: 'v1', kind: 'Box', metadata };
}

describe('createFreshness', () => {
  const written = { kind: 'v1/Box', name: 'a', namespace: 'ns', uid: 'u1', atMs: 0 };
  it.each<[string, string | undefined, KubeObject | undefined, string | undefined, boolean]>([
    ['written, not there yet', '20', undefined, '19', false],
    ['written, an older form is seen', '20', object('u1', '19'), '19', false],
    ['written, seen', '20', object('u1', '20'), '19', true],
    ['written, and changed since', '20', object('u1', '21'), undefined, true],
    ['written, and come and gone: the view is further', '20', undefined, '25', true],
    ['versions that cannot be compared', 'x', object('u1', 'y'), 'z', false],
    ['opaque and the same', 'x', object('u1', 'x'), 'y', true],
    ['deleted, still seen', undefined, object('u1', '20'), '30', false],
    ['deleted, on its way out', undefined, object('u1', '21', '2026-01-01T00:00:00Z'), '30', true],
    ['deleted, gone', undefined, undefined, '10', true],
    ['deleted, another of that name', undefined, object('u2', '40'), '30', true],
  ])('%s', (_, resourceVersion, seen, version, expected) => {
    let nowMs = 0;
    const freshness = createFreshness(() => nowMs);
    const look = () => ({ object: seen, version });
    expect(freshness.isFresh('key', look)).toBe(true);
    freshness.wrote('key', { ...written, resourceVersion });
    expect(freshness.isFresh('key', look)).toBe(expected);
    expect(freshness.isFresh('other', look)).toBe(true);
    nowMs = LONGEST_WAIT_MS + 1;
    expect(freshness.isFresh('key', look)).toBe(true);
  });
});
