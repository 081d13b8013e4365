/**
 * The policy's word on one call: run, wait for a person, or refuse. On each side (the namespace's, the cluster's) the
 * strictest of the rules that hold, else the verdict by kind; of both sides the stricter. Pure.
 */
import type { CompiledRule, Deciders } from './compilePolicy.ts';
import { type Bindings, type Subject, subjectOf } from './expression.ts';
import { type FunctionPolicy, loosestOf, type Side } from './functionPolicy.ts';
import { stricter, type Verdict } from './verdict.ts';

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
  const judged = [policy.namespace, policy.cluster].map((side) => judge(side, () => subjectFor(policy, call)));
  const verdict = judged.map((side) => side.verdict).reduce(stricter, 'run');
  if (verdict === 'run') return { do: 'run' };
  const deciding = judged.filter((side) => side.verdict === verdict);
  const rule = deciding.flatMap(({ rules }) => rules).find((found) => found.do === verdict);
  const why = {
    ...(rule === undefined ? {} : { rule: `${rule.policy}/${rule.name}` }),
    ...(rule?.because === undefined ? {} : { because: rule.because }),
  };
  if (verdict === 'refuse') {
    const brokenKind =
      rule === undefined ? deciding.find((side) => side.brokenKind !== undefined)?.brokenKind : undefined;
    if (brokenKind !== undefined) return { do: 'refuse', reason: 'policy-broken', rule: brokenKind };
    return { do: 'refuse', reason: rule?.problem === undefined ? 'policy' : 'policy-broken', ...why };
  }
  const deciders = distinct(deciding.flatMap(({ deciders: asked }) => asked));
  if (deciders.some((each) => isNobody(each, call.job.proved))) return { do: 'refuse', reason: 'nobody', ...why };
  return { do: 'wait', ...why, deciders };
}

/** As a side's conditions see the call: what they cost together is bounded for each side, so that none spends the other's. */
export function subjectFor(policy: FunctionPolicy, call: PolicyCall): Subject {
  return subjectOf(bindingsOf(policy, call));
}

interface Judged {
  readonly verdict: Verdict;
  /** Those that made it so; none where it is by kind. */
  readonly rules: readonly CompiledRule[];
  readonly deciders: readonly Deciders[];
  readonly brokenKind: string | undefined;
}

const STRICT_FIRST: readonly Verdict[] = ['refuse', 'wait', 'run'];

function judge(side: Side, subjectOfSide: () => Subject): Judged {
  const { rules: all, byKind, deciders, brokenKind } = side;
  if (all.length > 0) {
    const subject = subjectOfSide();
    for (const verdict of STRICT_FIRST) {
      const rules = all.filter((rule) => rule.do === verdict && isHolding(rule, subject));
      if (rules.length === 0) continue;
      return { verdict, rules, deciders: rules.flatMap((rule) => rule.deciders ?? deciders), brokenKind: undefined };
    }
  }
  return { verdict: byKind, rules: [], deciders, brokenKind };
}

/** What cannot be judged holds where it is strict, and does not where it is not. */
export function isHolding(rule: CompiledRule, subject: Subject): boolean {
  const truth = rule.holds?.(subject) ?? true;
  return truth === 'error' ? rule.do !== 'run' : truth;
}

/** Known before a call is made. */
const KNOWN: ReadonlySet<string> = new Set(['agent', 'call', 'kind', 'openWorld']);

/**
 * Whether a function is shown to an agent: unless each of its calls would be refused, whatever the arguments, the job and
 * its labels.
 */
export function isShown(policy: FunctionPolicy, { agent, shadow }: Pick<PolicyCall, 'agent' | 'shadow'>): boolean {
  if (shadow && policy.kind !== 'ReadOnly') return false;
  const call: PolicyCall = { args: {}, agent, shadow, job: { proved: false }, labels: [] };
  const loosest = [policy.namespace, policy.cluster].map((side) => {
    const subject = subjectFor(policy, call);
    return loosestOf(side, (rule) =>
      [...rule.speaksOf].every((name) => KNOWN.has(name)) ? isHolding(rule, subject) : undefined,
    );
  });
  return !loosest.includes('refuse');
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
