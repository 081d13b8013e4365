/** The condition Installed: whether all that the Plugin brings works. */
import { toolName } from '../../domain/naming.ts';
import type { Fact, KubeObject } from '../../engine/contract.ts';
import { fails, holds, nameSome, pending } from '../facts.ts';
import { conditionOf, textAt } from '../live.ts';
import type { StoredPlugin } from './plugin.ts';
import { INSTALLED, TOOL_FAILING, TOOLS_STARTING } from './reasons.ts';

const TYPE = 'Installed';

export interface ToolState {
  readonly id: string;
  readonly ready: 'True' | 'False' | 'Unknown';
  readonly why: string;
}

/** Each declared tool's readiness, as its Tool says for what is written now. */
export function toolStates({ spec }: StoredPlugin, tools: readonly KubeObject[]): readonly ToolState[] {
  return (spec.tools ?? []).map(({ id }) => {
    const tool = tools.find(({ metadata }) => metadata.name === toolName(id));
    const ready = conditionOf(tool, 'Ready');
    if (!tool || !ready || ready['observedGeneration'] !== tool.metadata.generation) {
      return { id, ready: 'Unknown', why: 'not judged yet' };
    }
    const status = ready['status'];
    const why = textAt(ready, 'message') || textAt(ready, 'reason') || '';
    return { id, ready: status === 'True' || status === 'False' ? status : 'Unknown', why };
  });
}

export function installed(states: readonly ToolState[]): Fact {
  const [failing, ...more] = states.filter(({ ready }) => ready === 'False');
  if (failing) {
    const others = more.length > 0 ? ` Also: ${nameSome(more.map(({ id }) => id))}.` : '';
    return fails(TYPE, TOOL_FAILING, `${failing.id}: ${failing.why}${others}`);
  }
  const starting = states.filter(({ ready }) => ready === 'Unknown');
  if (starting.length > 0) {
    return pending(TYPE, TOOLS_STARTING, `Not ready yet: ${nameSome(starting.map(({ id }) => id))}.`);
  }
  return holds(TYPE, INSTALLED, `${states.length} of ${states.length} tools take calls.`);
}
