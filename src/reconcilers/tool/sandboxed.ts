/** The condition Sandboxed: whether the walls were seen to hold from inside, and which of them are in force. */
import type { SandboxReport, SidecarStatus } from '../../domain/config/sidecar.ts';
import type { Fact, Sensed } from '../../engine/contract.ts';
import { fails, holds, nameSome, pending } from '../facts.ts';
import { SANDBOX_HOLDS, SANDBOX_NOT_SEEN, SANDBOX_OPEN, WIDENED_BY_POLICY } from './reasons.ts';

const TYPE = 'Sandboxed';

/** @param widening names of NetworkPolicies that let these pods do more */
export function sandboxed(answers: readonly Sensed<SidecarStatus>[], widening: readonly string[]): Fact {
  const reports = answers.flatMap((answer) => (answer.state === 'ok' ? [answer.value.sandbox] : []));
  const open = reports.find((report) => report.open.length > 0);
  if (open) {
    return fails(
      TYPE,
      SANDBOX_OPEN,
      `From inside a pod these addresses answered, and must not: ${nameSome(open.open)}.`,
    );
  }
  if (widening.length > 0) {
    const message = `Other NetworkPolicies allow these pods more than the operator's: ${nameSome(widening)}.`;
    return fails(TYPE, WIDENED_BY_POLICY, message);
  }
  const report = reports.find(({ holds: sound }) => sound);
  if (report) return holds(TYPE, SANDBOX_HOLDS, inForce(report));
  return pending(TYPE, SANDBOX_NOT_SEEN, 'No sidecar has reported yet that the sandbox holds.');
}

function inForce({ userNamespace, pidsLimit }: SandboxReport): string {
  const namespace = { true: 'yes', false: 'no', unknown: 'unknown' }[String(userNamespace)] ?? 'unknown';
  return `Nothing but the way out was reached from inside. A user namespace of its own: ${namespace}. Limit on processes: ${pidsLimit}.`;
}
