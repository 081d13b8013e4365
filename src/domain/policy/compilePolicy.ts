/**
 * ToolPolicies and ClusterToolPolicies as calls are decided by them: compiled from one object each, alone. What cannot be
 * read denies what it governs: a rule its functions, a verdict its kind, deciders every wait that they are of, a whole
 * policy all functions of its side. Pure.
 */
import { type Problem, readStored } from '../../api/judge.ts';
import { FUNCTIONS, POLICY_RULES_MAX } from '../../api/policyFields.ts';
import { isRecord } from '../../api/schema.ts';
import { clusterToolPolicy, toolPolicy } from '../../api/toolPolicy.ts';
import type { FunctionKind } from '../config/sidecar.ts';
import { compileExpression, type Subject, type Truth } from './expression.ts';
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
  readonly holds: ((subject: Subject) => Truth) | undefined;
  /** Variables that the condition depends on. */
  readonly speaksOf: ReadonlySet<string>;
  readonly because: string | undefined;
  readonly deciders: Deciders | undefined;
  /** Why it refuses whatever it names. */
  readonly problem: string | undefined;
}

export interface CompiledPolicy {
  readonly name: string;
  readonly kinds: Readonly<Partial<Record<FunctionKind, Verdict>>>;
  /** Their verdict cannot be read, so it is to refuse. */
  readonly brokenKinds: ReadonlySet<FunctionKind>;
  readonly deciders: Deciders | undefined;
  readonly newVersions: 'wait' | 'accept' | undefined;
  readonly aiLabel: string | undefined;
  /** There is a label, and nobody can read it: what should carry it must not be sent. */
  readonly aiLabelBroken: boolean;
  readonly rules: readonly CompiledRule[];
  /** The rules by what they name, as it is written. */
  readonly rulesByPattern: ReadonlyMap<string, readonly CompiledRule[]>;
  /** Why nothing of it can be read. */
  readonly broken: string | undefined;
  /** All that is wrong with it, for whoever wrote it. */
  readonly problems: readonly Problem[];
}

export const POLICY_KINDS = ['ToolPolicy', 'ClusterToolPolicy'] as const;
type PolicyKind = (typeof POLICY_KINDS)[number];

/** @param raw as it is stored; another version may have written it */
export function compilePolicy(kind: PolicyKind, raw: unknown): CompiledPolicy {
  const read = readPolicy(kind, raw);
  if (read.ok) return compile(read.value, NOT_READ, []);
  const { problems } = read;
  const spec = isRecord(raw) && isRecord(raw['spec']) ? raw['spec'] : undefined;
  if (spec !== undefined) {
    const { readable, unreadable } = sort(kind, raw, spec);
    const rest = readPolicy(kind, { ...(raw as object), spec: readable });
    if (rest.ok) return compile(rest.value, unreadable, problems);
  }
  const { field, message } = problems[0] ?? { field: '', message: 'cannot be read' };
  return {
    name: nameOf(raw),
    kinds: {},
    brokenKinds: new Set(),
    deciders: undefined,
    newVersions: undefined,
    aiLabel: undefined,
    aiLabelBroken: false,
    rules: [],
    rulesByPattern: new Map(),
    broken: `${field}: ${message}`,
    problems,
  };
}

type Policy = Extract<ReturnType<typeof readPolicy>, { ok: true }>['value'];

function readPolicy(kind: PolicyKind, raw: unknown) {
  return readStored(kind === 'ToolPolicy' ? toolPolicy.schema : clusterToolPolicy.schema, raw);
}

/** What is wrong with an object that can be read but for this. */
interface Unreadable {
  readonly kinds: readonly string[];
  readonly rules: readonly CompiledRule[];
  readonly fields: ReadonlySet<string>;
}

const NOT_READ: Unreadable = { kinds: [], rules: [], fields: new Set() };

/** Each field, verdict and rule is read as if it were alone. */
function sort(kind: PolicyKind, raw: unknown, spec: Readonly<Record<string, unknown>>) {
  const problemWith = (part: object): string | undefined => {
    const read = readPolicy(kind, { ...(raw as object), spec: part });
    return read.ok ? undefined : read.problems.map(({ field, message }) => `${field}: ${message}`)[0];
  };
  const readable: Record<string, unknown> = {};
  const fields = new Set<string>();
  const kinds: string[] = [];
  const rules: CompiledRule[] = [];
  for (const [name, value] of Object.entries(spec)) {
    if (name === 'kinds' && isRecord(value)) {
      const good = Object.entries(value).filter(
        ([of, verdict]) => problemWith({ kinds: { [of]: verdict } }) === undefined,
      );
      readable[name] = Object.fromEntries(good);
      kinds.push(...Object.keys(value).filter((of) => !good.some(([each]) => each === of)));
    } else if (name === 'rules' && Array.isArray(value) && value.length <= POLICY_RULES_MAX) {
      readable[name] = value.filter((rule: unknown) => {
        const problem = problemWith({ rules: [rule] });
        if (problem !== undefined) rules.push(brokenRule(nameOf(raw), rule, problem.replace('spec.rules[0].', '')));
        return problem === undefined;
      });
    } else if (HARMLESS.has(name) && problemWith({ [name]: value }) !== undefined) {
      fields.add(name);
    } else readable[name] = value;
  }
  return { readable, unreadable: { kinds, rules, fields } };
}

/** Fields that govern less than everything, and say what is denied without them. */
const HARMLESS: ReadonlySet<string> = new Set(['deciders', 'newVersions', 'aiLabel']);

const NOBODY: Deciders = { groups: [], notStarter: false };

const KINDS: Readonly<Record<string, FunctionKind>> = {
  readOnly: 'ReadOnly',
  additive: 'Additive',
  destructive: 'Destructive',
  undeclared: 'Undeclared',
};

function compile({ metadata, spec }: Policy, unreadable: Unreadable, problems: readonly Problem[]): CompiledPolicy {
  const said = Object.entries(spec.kinds ?? {}).flatMap(([of, verdict]) =>
    KINDS[of] === undefined || verdict === undefined ? [] : [[KINDS[of], verdict] as const],
  );
  const brokenKinds = unreadable.kinds.flatMap((of) => KINDS[of] ?? []);
  const compiled = (spec.rules ?? []).map((rule) => compileRule(metadata.name, rule));
  const rules = [...compiled, ...unreadable.rules];
  return {
    name: metadata.name,
    kinds: Object.fromEntries([...said, ...brokenKinds.map((of) => [of, 'refuse'])]),
    brokenKinds: new Set(brokenKinds),
    deciders: unreadable.fields.has('deciders') ? NOBODY : spec.deciders,
    newVersions: unreadable.fields.has('newVersions') ? 'wait' : spec.newVersions,
    aiLabel: 'aiLabel' in spec ? spec.aiLabel : undefined,
    aiLabelBroken: unreadable.fields.has('aiLabel'),
    rules,
    rulesByPattern: byPattern(rules),
    broken: undefined,
    problems: [
      ...problems,
      ...compiled.flatMap(({ name, problem }) =>
        problem === undefined ? [] : [{ field: `spec.rules[${name}]`, message: problem }],
      ),
    ],
  };
}

type Rule = NonNullable<Policy['spec']['rules']>[number];

function compileRule(policy: string, rule: Rule): CompiledRule {
  const { name, functions, openWorld, when, because, deciders } = rule;
  const condition = when === undefined ? undefined : compileExpression(when);
  if (condition?.ok === false) {
    return { ...refusing(policy, name, functions, `when: ${condition.problem}`), when, because };
  }
  return {
    ...{ policy, name, functions, when, because, openWorld, deciders },
    do: rule.do,
    holds: condition?.evaluate,
    speaksOf: condition?.speaksOf ?? new Set(),
    problem: undefined,
  };
}

/** What it named, as far as that can be read; else it may have been anything. */
function brokenRule(policy: string, raw: unknown, problem: string): CompiledRule {
  const { name, functions } = isRecord(raw) ? raw : {};
  const read = Array.isArray(functions) && functions.length > 0 ? (functions as unknown[]) : [undefined];
  const named = read.filter((each) => typeof each === 'string' && FUNCTIONS.test(each)) as string[];
  return refusing(policy, typeof name === 'string' ? name : '', named.length === read.length ? named : ['*'], problem);
}

function refusing(policy: string, name: string, functions: readonly string[], problem: string): CompiledRule {
  return {
    ...{ policy, name, functions, problem },
    openWorld: undefined,
    do: 'refuse',
    when: undefined,
    holds: undefined,
    speaksOf: new Set(),
    because: undefined,
    deciders: undefined,
  };
}

function byPattern(rules: readonly CompiledRule[]): ReadonlyMap<string, readonly CompiledRule[]> {
  const found = new Map<string, CompiledRule[]>();
  for (const rule of rules) {
    for (const pattern of new Set(rule.functions)) {
      const known = found.get(pattern);
      if (known === undefined) found.set(pattern, [rule]);
      else known.push(rule);
    }
  }
  return found;
}

function nameOf(raw: unknown): string {
  const name = (raw as { metadata?: { name?: unknown } } | null)?.metadata?.name;
  return typeof name === 'string' ? name : '';
}
