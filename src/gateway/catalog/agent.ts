/** An Agent as calls are decided by it: compiled from one object, alone. Pure. */
import { agent } from '../../api/agent.ts';
import { readStored } from '../../api/judge.ts';
import type { KubeObject } from '../../engine/contract.ts';

/** What may be called of one tool: these functions, or every one. */
export type GrantedFunctions = ReadonlySet<string> | 'every';

/** Tool id → its granted functions. */
export type Grants = ReadonlyMap<string, GrantedFunctions>;

export interface CompiledAgent {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly serviceAccounts: readonly string[];
  readonly grants: Grants;
  /** Only functions that read are for it. */
  readonly shadow: boolean;
  /** Its word on who started a job is believed. */
  readonly mayAssertStarter: boolean;
  /** What becomes of a call whose outcome is unknown; undefined: it depends on who started the job. */
  readonly onUnknown: 'ask' | 'fail' | undefined;
}

/** Undefined for an object that cannot be read: it then grants nothing, and harms no other. */
export function compileAgent(object: KubeObject): CompiledAgent | undefined {
  const read = readStored(agent.schema, object);
  if (!read.ok || object.metadata.deletionTimestamp !== undefined) return undefined;
  const { spec } = read.value;
  const { name, namespace = '', uid = '' } = object.metadata;
  return {
    namespace,
    name,
    uid,
    serviceAccounts: spec.serviceAccounts,
    grants: compileGrants(spec.tools ?? []),
    shadow: spec.shadow,
    mayAssertStarter: spec.mayAssertStarter,
    onUnknown: spec.onUnknown,
  };
}

/** `<tool id>.<function>` or `<tool id>.*`; ids hold no dot, so the first one parts them. */
export function compileGrants(written: readonly string[]): Grants {
  const grants = new Map<string, Set<string> | 'every'>();
  for (const grant of written) {
    const dot = grant.indexOf('.');
    const id = grant.slice(0, dot);
    const name = grant.slice(dot + 1);
    const known = grants.get(id);
    if (name === '*' || known === 'every') grants.set(id, 'every');
    else grants.set(id, (known ?? new Set()).add(name));
  }
  return grants;
}

/** What several Agents with one ServiceAccount may do: all that any of them may. */
export function unionGrants(all: readonly Grants[]): Grants {
  const [first] = all;
  if (first !== undefined && all.length === 1) return first;
  const union = new Map<string, GrantedFunctions>();
  for (const grants of all) {
    for (const [id, names] of grants) {
      const known = union.get(id);
      if (names === 'every' || known === 'every') union.set(id, 'every');
      else union.set(id, new Set([...(known ?? []), ...names]));
    }
  }
  return union;
}

/** Who a ServiceAccount is: the Agents that name it, by name, and what they grant together. */
export interface Access {
  readonly agents: readonly CompiledAgent[];
  readonly grants: Grants;
}

export function isGranted(grants: Grants, toolId: string, functionName: string): boolean {
  const names = grants.get(toolId);
  return names === 'every' || names?.has(functionName) === true;
}
