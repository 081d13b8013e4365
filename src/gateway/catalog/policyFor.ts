/** What policies say of one function, gathered once for each change of a policy, a listing or an override. Pure. */
import { type FunctionPolicy, functionPolicy } from '../../domain/policy/functionPolicy.ts';
import type { DescribedFunction } from '../overrides/described.ts';
import type { Policies } from './catalog.ts';
import type { CompiledTool } from './tool.ts';

export interface PolicyOfFunction {
  readonly of: FunctionPolicy;
  /** It runs whatever the call is, but for a shadow: nothing is to be judged. */
  readonly runs: boolean;
}

const kept = new WeakMap<DescribedFunction, { readonly from: Policies; readonly policy: PolicyOfFunction }>();

export function policyFor(
  tool: CompiledTool,
  functionName: string,
  described: DescribedFunction,
  policies: Policies,
): PolicyOfFunction {
  const known = kept.get(described);
  if (known?.from === policies) return known.policy;
  const of = functionPolicy({
    tool: tool.id,
    function: functionName,
    kind: described.kind,
    openWorld: described.openWorld,
    namespacePolicies: policies.namespace,
    clusterPolicies: policies.cluster,
  });
  const runs = [of.namespace, of.cluster].every(
    ({ rules, broken, byKind }) => rules.length === 0 && broken === undefined && byKind === 'run',
  );
  const policy = { of, runs };
  kept.set(described, { from: policies, policy });
  return policy;
}
