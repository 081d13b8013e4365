/** The condition Resolved: whether what an Agent was granted is there and works. What is wrong with one grant harms no other. */
import type { Fact } from '../../engine/contract.ts';
import { fails, holds, nameSome, pending } from '../facts.ts';
import type { Granted } from './grants.ts';
import { NOTHING_GRANTED, RESOLVED, TOOL_FAILING, TOOLS_STARTING, UNKNOWN_FUNCTION, UNKNOWN_TOOL } from './reasons.ts';

const TYPE = 'Resolved';

export function resolved(granted: readonly Granted[]): Fact {
  if (granted.length === 0) return holds(TYPE, NOTHING_GRANTED, 'It was granted no function.');
  const missing = granted.filter(({ tool }) => tool === undefined);
  if (missing.length > 0) {
    return fails(TYPE, UNKNOWN_TOOL, `There is no tool ${nameSome(missing.map(({ id }) => id))} in this namespace.`);
  }
  const failing = granted.filter(({ ready }) => ready === 'False');
  if (failing.length > 0) {
    return fails(TYPE, TOOL_FAILING, `Not working: ${nameSome(failing.map(({ id }) => id))}.`);
  }
  const unknown = granted.flatMap(({ id, unknown: names }) => names.map((name) => `${id}.${name}`));
  if (unknown.length > 0) return fails(TYPE, UNKNOWN_FUNCTION, `No tool lists ${nameSome(unknown)}.`);
  const starting = granted.filter(({ ready }) => ready !== 'True');
  if (starting.length > 0) {
    return pending(TYPE, TOOLS_STARTING, `Not ready yet: ${nameSome(starting.map(({ id }) => id))}.`);
  }
  return holds(TYPE, RESOLVED, '');
}
