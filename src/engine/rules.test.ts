import { describe, expect, it } from 'vitest';
import type { Resource } from './contract.ts';
import { type AnyReconciler, leaderRules, rulesFor, watchesFor } from './rules.ts';

const resource = (apiVersion: string, kind: string, namespaced = true): Resource => ({
  apiVersion,
  kind,
  plural: `${kind.toLowerCase()}s`,
  namespaced,
});
const TOY = resource('toys.test/v1', 'Toy');
const POD = resource('v1', 'Pod');
const DEPLOYMENT = resource('apps/v1', 'Deployment');

function reconciler(given: Partial<AnyReconciler>): AnyReconciler {
  return {
    resource: TOY,
    parse: (value) => ({ ok: true, value }),
    owns: [],
    reads: {},
    sensors: [],
    conditions: ['A'],
    reconcile: () => ({ do: 'hold', facts: { conditions: [] } }),
    ...given,
  };
}

describe('rulesFor', () => {
  it('is what the declarations ask for, each resource once [case 121]', () => {
    const first = reconciler({ owns: [DEPLOYMENT], reads: { pods: { resource: POD, select: () => ({}) } } });
    const second = reconciler({
      resource: resource('v1', 'Namespace', false),
      conditions: [],
      owns: [resource('v1', 'ConfigMap')],
      reads: { toys: { resource: TOY, select: () => ({}) } },
    });
    const owned = ['create', 'delete', 'get', 'list', 'patch', 'watch'];
    expect(rulesFor([first, second])).toEqual([
      { apiGroups: ['apps'], resources: ['deployments'], verbs: owned },
      { apiGroups: ['events.k8s.io'], resources: ['events'], verbs: ['create'] },
      { apiGroups: ['toys.test'], resources: ['toys'], verbs: ['list', 'watch'] },
      { apiGroups: ['toys.test'], resources: ['toys/status'], verbs: ['patch'] },
      { apiGroups: [''], resources: ['configmaps'], verbs: owned },
      { apiGroups: [''], resources: ['namespaces'], verbs: ['list', 'watch'] },
      { apiGroups: [''], resources: ['pods'], verbs: ['list', 'watch'] },
    ]);
    expect(watchesFor([first, second]).map(({ kind }) => kind)).toEqual([
      'Toy',
      'Deployment',
      'Pod',
      'Namespace',
      'ConfigMap',
    ]);
  });

  it('lets the leader have its Lease and no other', () => {
    expect(leaderRules('oz0-controller')).toMatchObject([
      { verbs: ['create'] },
      { verbs: ['get', 'update'], resourceNames: ['oz0-controller'] },
    ]);
  });
});
