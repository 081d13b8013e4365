/**
 * The policy's word on one call: run, wait for a person, or refuse. On each side (the namespace's, the cluster's) the
 * strictest of the rules that hold, else the verdict by kind; of both sides the stricter. Pure.
 */
import type { CompiledRule, Deciders } from './compilePolicy.ts';
import type { Bindings } from './expression.ts';
import type { FunctionPolicy, Side } from './functionPolicy.ts';
import { stricter, strictest, type Verdict } from './verdict.ts';

/** The call; what the function is, its policy knows. */
export interface PolicyCall {
  readonly args: Readonly<Record<string, unknown>>;
  readonly agent: Bindings['agent'];
  /** It only tries things out. */
  readonly shadow: boolean;
  readonly job: { readonly id?: string; readonly startedBy?: string; readonly proved: boolean };
  readonly labels: readonly string[];
}

export type PolicyDecision =
  | { readonly do: 'run' }
  | {
      readonly do: 'wait';
      readonly rule?: string;
      readonly because?: string;
      /** Each of them must be met by whoever decides. */
      readonly deciders: readonly Deciders[];
    }
  | {
      readonly do: 'refuse';
      /** `nobody`: it would wait for a person, and none could decide. */
      readonly reason: 'policy' | 'policy-broken' | 'shadow' | 'nobody';
      readonly rule?: string;
      readonly because?: string;
    };

export function decidePolicy(policy: FunctionPolicy, call: PolicyCall): PolicyDecision {
  if (call.shadow && policy.kind !== 'ReadOnly') return { do: 'refuse', reason: 'shadow' };
  const broken = policy.namespace.broken ?? policy.cluster.broken;
  if (broken !== undefined) return { do: 'refuse', reason: 'policy-broken', rule: broken.policy };
  const bindings = bindingsOf(policy, call);
  const judged = [policy.namespace, policy.cluster].map((side) => judge(side, bindings));
  const verdict = judged.map((side) => side.verdict).reduce(stricter, 'run');
  if (verdict === 'run') return { do: 'run' };
  const deciding = judged.filter((side) => side.verdict === verdict);
  const rule = deciding.flatMap(({ rules }) => rules).find((found) => found.do === verdict);
  const why = {
    ...(rule === undefined ? {} : { rule: `${rule.policy}/${rule.name}` }),
    ...(rule?.because === undefined ? {} : { because: rule.because }),
  };
  if (verdict === 'refuse') {
    return { do: 'refuse', reason: rule?.problem === undefined ? 'policy' : 'policy-broken', ...why };
  }
  const deciders = distinct(deciding.flatMap(({ deciders: asked }) => asked));
  if (deciders.some((each) => isNobody(each, call.job.proved))) return { do: 'refuse', reason: 'nobody', ...why };
  return { do: 'wait', ...why, deciders };
}

interface Judged {
  readonly verdict: Verdict;
  /** Those that made it so; none where it is by kind. */
  readonly rules: readonly CompiledRule[];
  readonly deciders: readonly Deciders[];
}

function judge(side: Side, bindings: Bindings): Judged {
  const holding = side.rules.filter((rule) => isHolding(rule, bindings));
  const verdict = strictest(holding.map((rule) => rule.do));
  if (verdict === undefined) return { verdict: side.byKind, rules: [], deciders: side.deciders };
  const rules = holding.filter((rule) => rule.do === verdict);
  return { verdict, rules, deciders: rules.flatMap(({ deciders }) => deciders ?? side.deciders) };
}

/** What cannot be judged holds where it is strict, and does not where it is not. */
export function isHolding(rule: CompiledRule, bindings: Bindings): boolean {
  const truth = rule.holds?.(bindings) ?? true;
  return truth === 'error' ? rule.do !== 'run' : truth;
}

/** Nobody is in an empty set, and nobody is known to be another than a starter whom nobody knows. */
function isNobody({ roles, groups, notStarter }: Deciders, starterProved: boolean): boolean {
  const named = roles !== undefined || groups !== undefined;
  if (named && (roles ?? []).length + (groups ?? []).length === 0) return true;
  return notStarter && !starterProved;
}

function distinct(deciders: readonly Deciders[]): readonly Deciders[] {
  return [...new Map(deciders.map((each) => [JSON.stringify(each), each])).values()];
}

const KIND_NAMES = { ReadOnly: 'readOnly', Additive: 'additive', Destructive: 'destructive', Undeclared: 'undeclared' };

export function bindingsOf(policy: FunctionPolicy, call: PolicyCall): Bindings {
  const { id = '', startedBy = '', proved } = call.job;
  return {
    args: call.args,
    call: { tool: policy.tool, function: policy.function, id: `${policy.tool}.${policy.function}` },
    kind: KIND_NAMES[policy.kind],
    openWorld: policy.openWorld,
    agent: call.agent,
    job: { id, startedBy, proved },
    labels: call.labels,
  };
}
