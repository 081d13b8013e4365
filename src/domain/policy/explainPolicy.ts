/** Why a call runs, waits or is refused, for a person: each side, each rule of the function, and the verdict. Pure. */
import type { CompiledRule } from './compilePolicy.ts';
import { bindingsOf, decidePolicy, isHolding, type PolicyCall } from './decidePolicy.ts';
import type { Bindings } from './expression.ts';
import type { FunctionPolicy, Side } from './functionPolicy.ts';

export function explainPolicy(policy: FunctionPolicy, call: PolicyCall): readonly string[] {
  const bindings = bindingsOf(policy, call);
  const { tool, function: name, openWorld } = policy;
  const decision = decidePolicy(policy, call);
  return [
    `${tool}.${name} is ${bindings.kind}${openWorld ? ', and reaches outside' : ''}.`,
    ...sideLines('The namespace', policy.namespace, bindings),
    ...sideLines('The cluster', policy.cluster, bindings),
    ...(call.shadow && policy.kind !== 'ReadOnly' ? ['The agent is a shadow: it calls only what is readOnly.'] : []),
    verdictLine(decision),
  ];
}

function sideLines(who: string, side: Side, bindings: Bindings): readonly string[] {
  if (side.broken !== undefined) {
    return [`${who}: policy ${side.broken.policy} cannot be read (${side.broken.problem}), so everything is refused.`];
  }
  const some = side.rules.some((rule) => isHolding(rule, bindings));
  return [
    ...side.rules.map((rule) => `${who}: ${ruleLine(rule, bindings)}`),
    some ? `${who}: of the rules that hold, the strictest.` : `${who}: no rule holds; by its kind: ${side.byKind}.`,
  ];
}

function ruleLine(rule: CompiledRule, bindings: Bindings): string {
  const name = `rule ${rule.policy}/${rule.name} (${rule.do})`;
  if (rule.problem !== undefined) return `${name} does not compile, so it refuses what it names: ${rule.problem}`;
  if (rule.holds === undefined) return `${name} holds for every call`;
  const truth = rule.holds(bindings);
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
