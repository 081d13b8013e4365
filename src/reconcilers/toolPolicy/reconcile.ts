/** ToolPolicy and ClusterToolPolicy: make nothing; gateways read them. They say whether every rule can be judged. */
import { clusterToolPolicy, toolPolicy } from '../../api/toolPolicy.ts';
import { compilePolicy, type POLICY_KINDS } from '../../domain/policy/compilePolicy.ts';
import type { Fact, KubeObject, Reconciler } from '../../engine/contract.ts';
import { holds, nameSome, stalls } from '../facts.ts';
import { parseWith } from '../parse.ts';
import { CLUSTER_TOOL_POLICY, TOOL_POLICY } from '../resources.ts';
import { ACCEPTED, RULES_BROKEN } from './reasons.ts';

export const toolPolicyReconciler: Reconciler = {
  ...reconcilerOf('ToolPolicy'),
  resource: TOOL_POLICY,
  parse: parseWith(toolPolicy.schema),
};

export const clusterToolPolicyReconciler: Reconciler = {
  ...reconcilerOf('ClusterToolPolicy'),
  resource: CLUSTER_TOOL_POLICY,
  parse: parseWith(clusterToolPolicy.schema),
};

function reconcilerOf(kind: (typeof POLICY_KINDS)[number]): Omit<Reconciler, 'resource' | 'parse'> {
  return {
    owns: [],
    reads: {},
    sensors: [],
    conditions: ['Accepted'],
    reconcile: ({ parent }) => ({ do: 'converge', children: [], facts: { conditions: [accepted(kind, parent)] } }),
  };
}

function accepted(kind: (typeof POLICY_KINDS)[number], { status: _, ...policy }: KubeObject): Fact {
  const { broken, rules } = compilePolicy(kind, policy);
  // What gateways cannot read refuses all calls that it governs.
  if (broken !== undefined) return stalls('Accepted', RULES_BROKEN, `It refuses every call: ${broken}.`);
  const problems = rules.flatMap(({ name, problem }) => (problem === undefined ? [] : [`rule ${name}: ${problem}`]));
  if (problems.length === 0) return holds('Accepted', ACCEPTED, '');
  return stalls('Accepted', RULES_BROKEN, `These refuse all that they name: ${nameSome(problems)}.`);
}
