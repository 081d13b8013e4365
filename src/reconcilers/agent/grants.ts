/** What an Agent's grants come to, given the Tools of its namespace. */
import { toolId } from '../../domain/naming.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { at, conditionOf, countAt, recordsAt, textAt } from '../live.ts';

/** What is granted of one tool. */
export interface Granted {
  readonly id: string;
  readonly functions: 'every' | ReadonlySet<string>;
  readonly tool: KubeObject | undefined;
  readonly ready: 'True' | 'False' | 'Unknown';
  /** Granted functions that the tool lists now. */
  readonly count: number;
  /** Granted functions that its whole listing is known not to hold. */
  readonly unknown: readonly string[];
}

/** By tool id. What is no grant is left out, so that it grants nothing. */
export function resolveGrants(grants: readonly string[], tools: readonly KubeObject[]): readonly Granted[] {
  const byId = new Map<string, 'every' | Set<string>>();
  for (const grant of grants) {
    const dot = grant.indexOf('.');
    if (dot < 1) continue;
    const [id, name] = [grant.slice(0, dot), grant.slice(dot + 1)];
    const known = byId.get(id);
    if (known === 'every' || name === '*') byId.set(id, 'every');
    else byId.set(id, (known ?? new Set()).add(name));
  }
  const toolOf = new Map(tools.map((tool) => [toolId(tool.metadata.name), tool]));
  return [...byId]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([id, functions]) => ({ id, functions, ...stateOf(toolOf.get(id), functions) }));
}

function stateOf(tool: KubeObject | undefined, functions: Granted['functions']): Omit<Granted, 'id' | 'functions'> {
  const status = conditionOf(tool, 'Ready')?.['status'];
  const ready = status === 'True' || status === 'False' ? status : 'Unknown';
  const count = countAt(tool, 'status', 'listing', 'count');
  if (functions === 'every') return { tool, ready, count, unknown: [] };
  const listed = new Set(recordsAt(tool, 'status', 'listing', 'functions').map((item) => textAt(item, 'name')));
  // The status of a tool names so many functions at most; of the others nothing is known here.
  const whole = at(tool, 'status', 'listing') !== undefined && listed.size >= count;
  const unlisted = [...functions].filter((name) => !listed.has(name));
  return {
    tool,
    ready,
    count: whole ? functions.size - unlisted.length : functions.size,
    unknown: whole ? unlisted : [],
  };
}
