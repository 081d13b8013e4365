/**
 * All that policies say of one function, gathered once for each change of a policy or of the function, so that a call only
 * judges conditions. Pure.
 */
import { createHash } from 'node:crypto';
import type { FunctionKind } from '../config/sidecar.ts';
import type { CompiledPolicy, CompiledRule, Deciders } from './compilePolicy.ts';
import { looser, stricter, strictest, type Verdict } from './verdict.ts';

/** One side's word: the namespace's or the cluster's. */
export interface Side {
  readonly rules: readonly CompiledRule[];
  /** Where no rule holds. */
  readonly byKind: Verdict;
  /** Of waits by kind. */
  readonly deciders: readonly Deciders[];
  /** A policy of this side cannot be read: everything is refused. */
  readonly broken: { readonly policy: string; readonly problem: string } | undefined;
}

export interface FunctionPolicy {
  readonly tool: string;
  readonly function: string;
  readonly kind: FunctionKind;
  readonly openWorld: boolean;
  readonly namespace: Side;
  readonly cluster: Side;
  /** The function is refused to every call, whatever its arguments: it is not even shown. */
  readonly neverRuns: boolean;
  /** Hex sha256 of all that the verdict depends on: what an approval is for. */
  readonly hash: string;
}

/** Where nobody says anything. A cluster that says nothing has no opinion. */
const UNSET: Readonly<Record<'namespace' | 'cluster', Readonly<Record<FunctionKind, Verdict>>>> = {
  namespace: { ReadOnly: 'run', Additive: 'run', Destructive: 'wait', Undeclared: 'wait' },
  cluster: { ReadOnly: 'run', Additive: 'run', Destructive: 'run', Undeclared: 'run' },
};

export interface FunctionQuestion {
  readonly tool: string;
  readonly function: string;
  readonly kind: FunctionKind;
  readonly openWorld: boolean;
  /** All of the namespace, all of the cluster; in any order. */
  readonly namespacePolicies: readonly CompiledPolicy[];
  readonly clusterPolicies: readonly CompiledPolicy[];
}

export function functionPolicy(question: FunctionQuestion): FunctionPolicy {
  const { tool, kind, openWorld } = question;
  const namespace = sideOf('namespace', question, question.namespacePolicies);
  const cluster = sideOf('cluster', question, question.clusterPolicies);
  return {
    tool,
    function: question.function,
    kind,
    openWorld,
    namespace,
    cluster,
    neverRuns: stricter(loosestOf(namespace), loosestOf(cluster)) === 'refuse',
    hash: hashOf(question, namespace, cluster),
  };
}

function sideOf(side: 'namespace' | 'cluster', question: FunctionQuestion, policies: readonly CompiledPolicy[]): Side {
  const broken = policies.find((policy) => policy.broken !== undefined);
  const stating = policies.filter((policy) => policy.kinds[question.kind] !== undefined);
  const byKind =
    strictest(stating.flatMap((policy) => policy.kinds[question.kind] ?? [])) ?? UNSET[side][question.kind];
  return {
    rules: policies
      .flatMap(({ rules }) => rules)
      .filter((rule) => governs(rule, question))
      .sort((a, b) => byCodeUnit(`${a.policy}/${a.name}`, `${b.policy}/${b.name}`)),
    byKind,
    deciders: policies.flatMap(({ deciders }) => deciders ?? []),
    broken: broken?.broken === undefined ? undefined : { policy: broken.name, problem: broken.broken },
  };
}

function governs(rule: CompiledRule, { tool, openWorld, function: name }: FunctionQuestion): boolean {
  if (rule.openWorld !== undefined && rule.openWorld !== openWorld) return false;
  return rule.functions.some((pattern) => pattern === '*' || pattern === `${tool}.*` || pattern === `${tool}.${name}`);
}

/** What the most harmless call would get. */
function loosestOf({ rules, byKind, broken }: Side): Verdict {
  if (broken !== undefined) return 'refuse';
  const always = strictest(rules.flatMap((rule) => (rule.holds === undefined ? rule.do : [])));
  if (always !== undefined) return always;
  return rules.reduce((loosest, rule) => looser(loosest, rule.do), byKind);
}

function hashOf({ tool, function: name, kind, openWorld }: FunctionQuestion, ...sides: readonly Side[]): string {
  const said = sides.map(({ rules, byKind, deciders, broken }) => ({
    byKind,
    deciders,
    broken: broken?.policy,
    rules: rules.map((rule) => [rule.policy, rule.name, rule.when, rule.do, rule.deciders, rule.problem !== undefined]),
  }));
  return createHash('sha256')
    .update(JSON.stringify(['oz0-policy-1', tool, name, kind, openWorld, said]))
    .digest('hex');
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
