import { expect, test } from 'vitest';
import { wideningPolicies } from './widening.ts';

const LABELS = { 'oz0.ai/tool': 'github', 'app.kubernetes.io/managed-by': 'oz0-operator' };

test.for<[string, object, boolean]>([
  ['all pods', {}, true],
  ['our label', { matchLabels: { 'oz0.ai/tool': 'github' } }, true],
  ['another label', { matchLabels: { app: 'web' } }, false],
  ['one label of two', { matchLabels: { 'oz0.ai/tool': 'github', app: 'web' } }, false],
  ['In', { matchExpressions: [{ key: 'oz0.ai/tool', operator: 'In', values: ['github', 'x'] }] }, true],
  ['In others', { matchExpressions: [{ key: 'oz0.ai/tool', operator: 'In', values: ['x'] }] }, false],
  ['NotIn', { matchExpressions: [{ key: 'oz0.ai/tool', operator: 'NotIn', values: ['github'] }] }, false],
  ['NotIn of a label that is absent', { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['web'] }] }, true],
  ['Exists', { matchExpressions: [{ key: 'oz0.ai/tool', operator: 'Exists' }] }, true],
  [
    'DoesNotExist, the way to leave tools out',
    { matchExpressions: [{ key: 'oz0.ai/tool', operator: 'DoesNotExist' }] },
    false,
  ],
  ['an operator of the future', { matchExpressions: [{ key: 'oz0.ai/tool', operator: 'Like' }] }, true],
])('[case 97] a policy for %s', ([, podSelector, wanted]) => {
  const policy = {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'p' },
    spec: { podSelector, ingress: [{}] },
  };
  expect(wideningPolicies([policy], 'own', LABELS)).toEqual(wanted ? ['p'] : []);
});
