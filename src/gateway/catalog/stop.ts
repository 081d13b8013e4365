/**
 * Stops as calls are decided by them: what one names is stopped as long as it exists, also while it is being deleted. One
 * that cannot be read stops its namespace, since nobody can say that it meant less. Pure.
 */
import { readStored } from '../../api/judge.ts';
import { stop } from '../../api/stop.ts';
import type { KubeObject } from '../../engine/contract.ts';
import type { CompiledAgent } from './agent.ts';
import type { CompiledTool } from './tool.ts';

export interface CompiledStop {
  readonly namespace: string;
  readonly name: string;
  readonly target:
    | { readonly kind: 'tool' | 'plugin' | 'agent'; readonly name: string }
    | { readonly kind: 'all' | 'cluster' };
  readonly because?: string;
  /** Why it cannot be read. */
  readonly problem?: string;
}

/** @param operatorNamespace the one namespace in which a Stop may mean the whole cluster */
export function compileStop(object: KubeObject, operatorNamespace: string | undefined): CompiledStop {
  const { name, namespace = '' } = object.metadata;
  const read = readStored(stop.schema, object);
  if (!read.ok) {
    const problem = 'it cannot be read, so it stops its namespace';
    return { namespace, name, target: { kind: 'all' }, problem };
  }
  const { spec } = read.value;
  return {
    namespace,
    name,
    target: targetOf(spec, namespace === operatorNamespace),
    ...(spec.because === undefined ? {} : { because: spec.because }),
  };
}

function targetOf(
  spec: {
    tool?: string | undefined;
    plugin?: string | undefined;
    agent?: string | undefined;
    cluster?: true | boolean | undefined;
  },
  ofOperator: boolean,
): CompiledStop['target'] {
  if (spec.tool !== undefined) return { kind: 'tool', name: spec.tool };
  if (spec.plugin !== undefined) return { kind: 'plugin', name: spec.plugin };
  if (spec.agent !== undefined) return { kind: 'agent', name: spec.agent };
  // Elsewhere it means no more than the namespace of whoever could make it.
  return { kind: spec.cluster === true && ofOperator ? 'cluster' : 'all' };
}

/** Whether a Stop is for a call of this tool by a caller whom these Agents name. */
export function isStopped(stopped: CompiledStop, tool: CompiledTool, agents: readonly CompiledAgent[]): boolean {
  const { target } = stopped;
  if (target.kind === 'cluster') return true;
  if (stopped.namespace !== tool.namespace) return false;
  switch (target.kind) {
    case 'all':
      return true;
    case 'tool':
      return target.name === tool.name;
    case 'plugin':
      return target.name === tool.plugin;
    case 'agent':
      // Of several Agents with one ServiceAccount nobody can say which of them called.
      return agents.some((agent) => agent.name === target.name);
  }
}
