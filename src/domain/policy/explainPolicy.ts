/** Why a call runs, waits or is refused, for a person: each side, each rule of the function, and the verdict. Pure. */
import type { CompiledRule } from './compilePolicy.ts';
import { bindingsOf, decidePolicy, isHolding, type PolicyCall, subjectFor } from './decidePolicy.ts';
import type { Subject } from './expression.ts';
import type { FunctionPolicy, Side } from './functionPolicy.ts';

export function explainPolicy(policy: FunctionPolicy, call: PolicyCall): readonly string[] {
  const bindings = bindingsOf(policy, call);
  const { tool, function: name, openWorld } = policy;
  const decision = decidePolicy(policy, call);
  return [
    `${tool}.${name} is ${bindings.kind}${openWorld ? ', and reaches outside' : ''}.`,
    ...sideLines('The namespace', policy.namespace, () => subjectFor(policy, call)),
    ...sideLines('The cluster', policy.cluster, () => subjectFor(policy, call)),
    ...(call.shadow && policy.kind !== 'ReadOnly' ? ['The agent is a shadow: it calls only what is readOnly.'] : []),
    verdictLine(decision),
  ];
}

function sideLines(who: string, side: Side, subject: () => Subject): readonly string[] {
  if (side.broken !== undefined) {
    return [`${who}: policy ${side.broken.policy} cannot be read (${side.broken.problem}), so everything is refused.`];
  }
  // Each with all the work there is: whoever asks wants to know of each.
  const some = side.rules.some((rule) => isHolding(rule, subject()));
  return [
    ...side.rules.map((rule) => `${who}: ${ruleLine(rule, subject())}`),
    some ? `${who}: of the rules that hold, the strictest.` : `${who}: no rule holds; ${byKindLine(side)}`,
  ];
}

function byKindLine({ byKind, brokenKind }: Side): string {
  if (brokenKind === undefined) return `by its kind: ${byKind}.`;
  return `what policy ${brokenKind} says of its kind cannot be read, so it is refused.`;
}

function ruleLine(rule: CompiledRule, subject: Subject): string {
  const name = `rule ${rule.policy}/${rule.name} (${rule.do})`;
  if (rule.problem !== undefined) return `${name} cannot be read, so it refuses what it names: ${rule.problem}`;
  if (rule.holds === undefined) return `${name} holds for every call`;
  const truth = rule.holds(subject);
  if (truth !== 'error') return `${name} ${truth ? 'holds' : 'does not hold'}: ${rule.when}`;
  return `${name} cannot be judged for these arguments, and ${rule.do === 'run' ? 'lets nothing run' : 'so holds'}: ${rule.when}`;
}

function verdictLine(decision: ReturnType<typeof decidePolicy>): string {
  switch (decision.do) {
    case 'run':
      return 'It runs.';
    case 'wait':
      return `It waits for a person${decision.deciders.length === 0 ? '' : `: ${decision.deciders.map(decidersLine).join('; and ')}`}.`;
    case 'refuse':
      return `It is refused${decision.rule === undefined ? '' : ` by ${decision.rule}`}: ${REFUSED[decision.reason]}${decision.because === undefined ? '' : ` ${decision.because}`}`;
  }
}

const REFUSED = {
  policy: 'the policy says so.',
  'policy-broken': 'what governs it cannot be read.',
  shadow: 'a shadow only reads.',
  nobody: 'it would wait for a person, and nobody could decide.',
} as const;

function decidersLine({
  roles = [],
  groups = [],
  notStarter,
}: {
  roles?: readonly string[];
  groups?: readonly string[];
  notStarter: boolean;
}): string {
  const named = [...roles.map((role) => `role ${role}`), ...groups.map((group) => `group ${group}`)];
  const who = named.length === 0 ? 'whoever has the verb decide' : `of ${named.join(' or ')}`;
  return `${who}${notStarter ? ', and not who started the job' : ''}`;
}
