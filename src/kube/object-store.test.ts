import { describe, expect, it } from 'vitest';
import type { Change } from '../engine/door.ts';
import { createStore } from './object-store.ts';

const object = (name: string, uid: string, resourceVersion: string) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'ns', uid, resourceVersion },
});
const told = (changes: readonly Change[]) =>
  changes.map((change) => `${change.type} ${change.object.metadata.uid}@${change.object.metadata.resourceVersion}`);

describe('createStore', () => {
  it('knows nothing before its first list [I1]', () => {
    const store = createStore();
    store.put(object('a', 'u1', '1'));
    expect(store.synced()).toBe(false);
    store.replaceAll([], '5');
    expect(store.synced()).toBe(true);
    expect(store.list()).toEqual([]);
  });

  it('tells a list as the difference, deletions first', () => {
    const store = createStore();
    expect(
      told(store.replaceAll([object('a', 'u1', '1'), object('b', 'u2', '2'), object('c', 'u3', '3')], '3')),
    ).toEqual(['added u1@1', 'added u2@2', 'added u3@3']);
    const next = [object('d', 'u5', '9'), object('a', 'u1', '1'), object('b', 'u2', '7'), object('c', 'u4', '8')];
    expect(told(store.replaceAll(next, '9'))).toEqual(['deleted u3@3', 'added u5@9', 'updated u2@7', 'added u4@8']);
    expect(store.get('c', 'ns')?.metadata.uid).toBe('u4');
    expect(store.list('other')).toEqual([]);
  });

  it('tells another uid under one name as deleted, then added', () => {
    const store = createStore();
    store.replaceAll([object('a', 'u1', '1')], '1');
    expect(told(store.put(object('a', 'u2', '5')))).toEqual(['deleted u1@1', 'added u2@5']);
  });

  it('is moved neither by what it knows nor by what is older', () => {
    const store = createStore();
    store.replaceAll([object('a', 'u2', '10')], '10');
    expect(store.put(object('a', 'u2', '10'))).toEqual([]);
    expect(store.put(object('a', 'u2', '9'))).toEqual([]);
    expect(store.put(object('a', 'u1', '8'))).toEqual([]);
    expect(store.remove(object('a', 'u1', '11'))).toEqual([]);
    expect(store.remove(object('x', 'u9', '11'))).toEqual([]);
    expect(store.get('a', 'ns')?.metadata.resourceVersion).toBe('10');
    expect(told(store.remove(object('a', 'u2', '12')))).toEqual(['deleted u2@12']);
  });

  it('knows how far it is, and does not go back but for a list', () => {
    const store = createStore();
    expect(store.version()).toBeUndefined();
    store.replaceAll([], '10');
    store.reach('12');
    store.reach('11');
    store.reach(undefined);
    expect(store.version()).toBe('12');
    store.replaceAll([], '5');
    expect(store.version()).toBe('5');
  });
});
