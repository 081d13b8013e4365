import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../engine/contract.ts';
import { messageOf, statusOf, verdict } from '../testing/objects.ts';
import { clusterToolPolicyReconciler, toolPolicyReconciler } from './reconcile.ts';

const policy = (rules: readonly object[], kind = 'ToolPolicy'): KubeObject => ({
  apiVersion: 'oz0.ai/v1alpha1',
  kind,
  metadata: { name: 'default', ...(kind === 'ToolPolicy' ? { namespace: 'acme' } : {}), generation: 1 },
  spec: { rules },
});
const GOOD = { name: 'never-force', functions: ['acme_github.*'], when: 'args.force == true', do: 'refuse' };
const BAD = { name: 'typo', functions: ['acme_github.merge'], when: 'args.force ==', do: 'run' };

describe('[I9] what cannot be judged is told by name', () => {
  test.each([
    ['ToolPolicy', toolPolicyReconciler],
    ['ClusterToolPolicy', clusterToolPolicyReconciler],
  ] as const)('%s', (kind, reconciler) => {
    expect(verdict(statusOf(reconciler, policy([GOOD], kind)), 'Ready')).toBe('True Ready');
    const status = statusOf(reconciler, policy([GOOD, BAD], kind));
    expect(verdict(status, 'Ready')).toBe('False RulesBroken');
    expect(verdict(status, 'Stalled')).toBe('True RulesBroken');
    expect(messageOf(status, 'Accepted')).toContain('rule typo: when:');
    expect(messageOf(status, 'Accepted')).not.toContain('never-force');
  });
});
