/**
 * ToolPolicies and ClusterToolPolicies as calls are decided by them: compiled from one object each, alone. What cannot be
 * read denies what it governs: a rule its functions, a whole policy all functions of its side. Pure.
 */
import { readStored } from '../../api/judge.ts';
import { clusterToolPolicy, toolPolicy } from '../../api/toolPolicy.ts';
import type { FunctionKind } from '../config/sidecar.ts';
import { type Bindings, compileExpression, type Truth } from './expression.ts';
import type { Verdict } from './verdict.ts';

/** Who may decide beside holding the verb `decide`; all that a call carries must be met. */
export interface Deciders {
  readonly roles?: readonly string[];
  readonly groups?: readonly string[];
  readonly notStarter: boolean;
}

export interface CompiledRule {
  readonly policy: string;
  readonly name: string;
  readonly functions: readonly string[];
  readonly openWorld: boolean | undefined;
  readonly do: Verdict;
  /** As written; undefined where the rule holds for every call. */
  readonly when: string | undefined;
  readonly holds: ((bindings: Bindings) => Truth) | undefined;
  readonly because: string | undefined;
  readonly deciders: Deciders | undefined;
  /** Why it refuses whatever it names. */
  readonly problem: string | undefined;
}

export interface CompiledPolicy {
  readonly name: string;
  readonly kinds: Readonly<Partial<Record<FunctionKind, Verdict>>>;
  readonly deciders: Deciders | undefined;
  readonly newVersions: 'wait' | 'accept' | undefined;
  readonly aiLabel: string | undefined;
  readonly rules: readonly CompiledRule[];
  /** Why nothing of it can be read. */
  readonly broken: string | undefined;
}

export const POLICY_KINDS = ['ToolPolicy', 'ClusterToolPolicy'] as const;

/** @param raw as it is stored; another version may have written it */
export function compilePolicy(kind: (typeof POLICY_KINDS)[number], raw: unknown): CompiledPolicy {
  const read = readStored(kind === 'ToolPolicy' ? toolPolicy.schema : clusterToolPolicy.schema, raw);
  if (!read.ok) {
    const { field, message } = read.problems[0] ?? { field: '', message: 'cannot be read' };
    return { ...NOTHING, name: nameOf(raw), broken: `${field}: ${message}` };
  }
  const { metadata, spec } = read.value;
  const { kinds = {}, rules = [], deciders, newVersions } = spec;
  return {
    name: metadata.name,
    kinds: {
      ...(kinds.readOnly === undefined ? {} : { ReadOnly: kinds.readOnly }),
      ...(kinds.additive === undefined ? {} : { Additive: kinds.additive }),
      ...(kinds.destructive === undefined ? {} : { Destructive: kinds.destructive }),
      ...(kinds.undeclared === undefined ? {} : { Undeclared: kinds.undeclared }),
    },
    deciders,
    newVersions,
    aiLabel: 'aiLabel' in spec ? spec.aiLabel : undefined,
    rules: rules.map((rule) => compileRule(metadata.name, rule)),
    broken: undefined,
  };
}

type Rule = NonNullable<(typeof toolPolicy.schema)['_output']['spec']['rules']>[number];

function compileRule(policy: string, rule: Rule): CompiledRule {
  const { name, functions, openWorld, when, because, deciders } = rule;
  const common = { policy, name, functions, when, because };
  const condition = when === undefined ? undefined : compileExpression(when);
  if (condition?.ok === false) {
    const problem = `when: ${condition.problem}`;
    return { ...common, openWorld: undefined, do: 'refuse', holds: undefined, deciders: undefined, problem };
  }
  return { ...common, openWorld, do: rule.do, holds: condition?.evaluate, deciders, problem: undefined };
}

const NOTHING: Omit<CompiledPolicy, 'name' | 'broken'> = {
  kinds: {},
  deciders: undefined,
  newVersions: undefined,
  aiLabel: undefined,
  rules: [],
};

function nameOf(raw: unknown): string {
  const name = (raw as { metadata?: { name?: unknown } } | null)?.metadata?.name;
  return typeof name === 'string' ? name : '';
}
