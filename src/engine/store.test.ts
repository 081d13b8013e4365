import { describe, expect, it } from 'vitest';
import type { KubeObject, OwnerReference } from './contract.ts';
import { createInterest } from './interest.ts';
import { createIndexedStore } from './store.ts';

function object(name: string, metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'ns', uid: `uid-${name}`, ...metadata } };
}
const owned = (uid: string, controller = true): { ownerReferences: readonly OwnerReference[] } => ({
  ownerReferences: [{ apiVersion: 'v1', kind: 'Toy', name: 'toy', uid, controller }],
});
const names = (objects: Iterable<KubeObject>) => [...objects].map(({ metadata }) => metadata.name);

describe('createIndexedStore', () => {
  it('finds by name, uid, controller and selection, through changes', () => {
    const store = createIndexedStore();
    const b = object('b', { ...owned('t1'), labels: { app: 'x', tier: '1' } });
    store.change({ type: 'added', object: b });
    store.change({ type: 'added', object: object('a', owned('t1')) });
    store.change({ type: 'added', object: object('c', owned('t1', false)) });
    store.change({ type: 'added', object: object('d', { namespace: 'other', labels: { app: 'x' } }) });
    expect(names(store.ownedBy('t1'))).toEqual(['a', 'b']);
    expect(store.byUid('uid-a')?.metadata.name).toBe('a');
    expect(names(store.select({ labels: { app: 'x' } }))).toEqual(['b', 'd']);
    expect(names(store.select({ namespace: 'ns', labels: { app: 'x', tier: '1' } }))).toEqual(['b']);
    expect(names(store.select({ namespace: 'ns', name: 'a' }))).toEqual(['a']);
    expect(names(store.select({ namespace: 'ns', name: 'a', labels: { app: 'x' } }))).toEqual([]);
    expect(names(store.select({ name: 'd' }))).toEqual(['d']);
    expect(names(store.select({ namespace: 'none' }))).toEqual([]);

    const moved = object('b', owned('t2'));
    store.change({ type: 'updated', object: moved, before: b });
    expect(names(store.ownedBy('t1'))).toEqual(['a']);
    expect(names(store.ownedBy('t2'))).toEqual(['b']);
    store.change({ type: 'deleted', object: moved });
    expect(store.get('b', 'ns')).toBeUndefined();
    expect(store.byUid('uid-b')).toBeUndefined();
    expect(names(store.ownedBy('t2'))).toEqual([]);
  });
});

describe('createInterest', () => {
  it('wakes those who look at an object, and no others', () => {
    const interest = createInterest();
    interest.set('name', [{ kind: 'Pod', selection: { namespace: 'ns', name: 'a' } }]);
    interest.set('labels', [{ kind: 'Pod', selection: { labels: { app: 'x', tier: '1' } } }]);
    interest.set('namespace', [{ kind: 'Pod', selection: { namespace: 'ns' } }]);
    interest.set('all', [{ kind: 'Pod', selection: {} }]);
    interest.set('other kind', [{ kind: 'Node', selection: {} }]);
    const of = (pod: KubeObject) => [...interest.of('Pod', pod)].sort();
    expect(of(object('a'))).toEqual(['all', 'name', 'namespace']);
    expect(of(object('a', { namespace: 'other' }))).toEqual(['all']);
    expect(of(object('z', { labels: { app: 'x', tier: '1', more: 'y' } }))).toEqual(['all', 'labels', 'namespace']);
    expect(of(object('z', { labels: { app: 'x' } }))).toEqual(['all', 'namespace']);
    interest.set('name', [{ kind: 'Pod', selection: { namespace: 'ns', name: 'z' } }]);
    interest.set('all', []);
    expect(of(object('a'))).toEqual(['namespace']);
    expect(of(object('z'))).toEqual(['name', 'namespace']);
  });
});
