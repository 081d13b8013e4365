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
  /** The policy whose verdict for the kind cannot be read. */
  readonly brokenKind: string | undefined;
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
  const broken = [...policies].filter(({ broken: why }) => why !== undefined).sort(byName)[0];
  const stating = policies.filter((policy) => policy.kinds[question.kind] !== undefined);
  const byKind =
    strictest(stating.flatMap((policy) => policy.kinds[question.kind] ?? [])) ?? UNSET[side][question.kind];
  return {
    rules: rulesOf(policies, question),
    byKind,
    brokenKind: [...policies].filter(({ brokenKinds }) => brokenKinds.has(question.kind)).sort(byName)[0]?.name,
    deciders: [...policies].sort(byName).flatMap(({ deciders }) => deciders ?? []),
    broken: broken?.broken === undefined ? undefined : { policy: broken.name, problem: broken.broken },
  };
}

/** By what they name, so that those of other functions cost nothing. */
function rulesOf(policies: readonly CompiledPolicy[], question: FunctionQuestion): readonly CompiledRule[] {
  const { tool, openWorld, function: name } = question;
  const patterns = ['*', `${tool}.*`, `${tool}.${name}`];
  const named = policies.flatMap(({ rulesByPattern }) => patterns.flatMap((each) => rulesByPattern.get(each) ?? []));
  return [...new Set(named)]
    .filter((rule) => rule.openWorld === undefined || rule.openWorld === openWorld)
    .sort((a, b) => byCodeUnit(orderOf(a), orderOf(b)));
}

function orderOf({ policy, name }: CompiledRule): string {
  return `${policy}/${name}`;
}

function byName(a: CompiledPolicy, b: CompiledPolicy): number {
  return byCodeUnit(a.name, b.name);
}

/**
 * What the most harmless call would get.
 * @param holds of a rule with a condition; undefined where only a call can tell
 */
export function loosestOf(
  { rules, byKind, broken }: Side,
  holds: (rule: CompiledRule) => boolean | undefined = () => undefined,
): Verdict {
  if (broken !== undefined) return 'refuse';
  const told = rules.map((rule) => ({ rule, held: rule.holds === undefined ? true : holds(rule) }));
  const always = strictest(told.flatMap(({ rule, held }) => (held === true ? rule.do : [])));
  if (always !== undefined) return always;
  return told.reduce((loosest, { rule, held }) => (held === false ? loosest : looser(loosest, rule.do)), byKind);
}

/** Of the same texts in any order the same: a list of who decides is a set, and so are rules and policies. */
function hashOf({ tool, function: name, kind, openWorld }: FunctionQuestion, ...sides: readonly Side[]): string {
  const said = sides.map(({ rules, byKind, brokenKind, deciders, broken }) => ({
    byKind,
    brokenKind: brokenKind !== undefined,
    broken: broken !== undefined,
    deciders: setOf(deciders.map(textOf)),
    rules: setOf(
      rules.map((rule) =>
        JSON.stringify([
          ...[rule.policy, rule.name, rule.when, rule.do, rule.problem !== undefined],
          rule.deciders === undefined ? null : textOf(rule.deciders),
        ]),
      ),
    ),
  }));
  return createHash('sha256')
    .update(JSON.stringify(['oz0-policy-1', tool, name, kind, openWorld, said]))
    .digest('hex');
}

function textOf({ roles, groups, notStarter }: Deciders): string {
  return JSON.stringify([roles && setOf(roles), groups && setOf(groups), notStarter]);
}

function setOf(texts: readonly string[]): readonly string[] {
  return [...new Set(texts)].sort(byCodeUnit);
}

function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
