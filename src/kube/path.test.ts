import { describe, expect, it } from 'vitest';
import { collectionPath, objectPath } from './path.ts';

const pods = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
const nodes = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };
const leases = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases', namespaced: true };

describe('paths', () => {
  it('are those of the API server', () => {
    expect(collectionPath(pods, undefined)).toBe('/api/v1/pods');
    expect(collectionPath(pods, 'a')).toBe('/api/v1/namespaces/a/pods');
    expect(collectionPath(nodes, 'ignored')).toBe('/api/v1/nodes');
    expect(objectPath({ resource: leases, namespace: 'a', name: 'l' })).toBe(
      '/apis/coordination.k8s.io/v1/namespaces/a/leases/l',
    );
    expect(objectPath({ resource: nodes, name: 'n' }, 'status')).toBe('/api/v1/nodes/n/status');
    expect(objectPath({ resource: nodes, name: 'system:odd' })).toBe('/api/v1/nodes/system%3Aodd');
  });

  it.each(['', '.', '..', '../secrets', 'a/b', 'a%2fb', 'a\\b'])('refuse the name %j', (name) => {
    expect(() => objectPath({ resource: pods, namespace: 'a', name })).toThrow(/Not a name/);
    expect(() => objectPath({ resource: pods, namespace: name, name: 'a' })).toThrow(/Not a name/);
  });

  it('refuse a namespaced object without its namespace, which would be one of all', () => {
    expect(() => objectPath({ resource: pods, name: 'a' })).toThrow(/namespace/);
  });
});
