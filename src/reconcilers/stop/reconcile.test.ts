import { expect, test } from 'vitest';
import { aTool, OPERATOR, statusOf, verdict } from '../testing/objects.ts';
import { stopReconciler } from './reconcile.ts';

test.for<[string, object, string, boolean, string]>([
  ['a tool', { tool: 'everything' }, 'acme', true, 'True Ready'],
  ['a tool that is not there', { tool: 'everythink' }, 'acme', false, 'False NotThere'],
  ['a namespace', { all: true }, 'acme', false, 'True Ready'],
  ['the cluster', { cluster: true }, 'oz0-system', false, 'True Ready'],
  ['the cluster, from a tenant', { cluster: true }, 'acme', false, 'False NotHere'],
])('a Stop of %s says whether it is in force', ([, spec, namespace, there, wanted]) => {
  const reconciler = stopReconciler(OPERATOR);
  const stop = {
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'Stop',
    metadata: { name: 'incident-12', namespace, generation: 1 },
    spec,
  };
  const status = statusOf(reconciler, stop, { reads: { tool: there ? [aTool()] : [] } });
  expect(verdict(status, 'Ready')).toBe(wanted);
});
