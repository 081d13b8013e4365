/** NetworkPolicies only ever add: which others of the namespace let tool pods do more than their own does. */
import type { KubeObject } from '../../engine/contract.ts';
import { at, isRecord, recordsAt, textAt } from '../live.ts';

/** Names of policies that select pods with these labels, are not `own`, and allow anything. */
export function wideningPolicies(
  policies: readonly KubeObject[],
  own: string,
  labels: Readonly<Record<string, string>>,
): readonly string[] {
  return policies
    .filter((policy) => policy.metadata.name !== own && allowsAnything(policy))
    .filter((policy) => selects(at(policy, 'spec', 'podSelector'), labels))
    .map(({ metadata }) => metadata.name)
    .sort();
}

/** A policy that only isolates, such as one that denies all, takes nothing from ours and adds nothing. */
function allowsAnything(policy: KubeObject): boolean {
  return ['ingress', 'egress'].some((direction) => {
    const rules = at(policy, 'spec', direction);
    return Array.isArray(rules) && rules.length > 0;
  });
}

function selects(selector: unknown, labels: Readonly<Record<string, string>>): boolean {
  const wanted = at(selector, 'matchLabels');
  const byLabels = !isRecord(wanted) || Object.entries(wanted).every(([key, value]) => labels[key] === value);
  return byLabels && recordsAt(selector, 'matchExpressions').every((expression) => matches(expression, labels));
}

function matches(expression: Record<string, unknown>, labels: Readonly<Record<string, string>>): boolean {
  const value = labels[textAt(expression, 'key') ?? ''];
  const listed = at(expression, 'values');
  const among = value !== undefined && Array.isArray(listed) && listed.includes(value);
  switch (expression['operator']) {
    case 'In':
      return among;
    case 'NotIn':
      return !among;
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      // An operator of the future: better one warning too many.
      return true;
  }
}
