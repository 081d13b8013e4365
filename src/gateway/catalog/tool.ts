/** A Tool as calls are decided by it: compiled from one object, alone. Pure. */
import { parseDuration } from '../../api/duration.ts';
import { readStored } from '../../api/judge.ts';
import { affinityOf, tool } from '../../api/tool.ts';
import { toolId } from '../../domain/naming.ts';
import type { KubeObject } from '../../engine/contract.ts';

export interface CompiledTool {
  readonly namespace: string;
  readonly name: string;
  readonly id: string;
  /** Why its object cannot be read: nothing of it is callable then. */
  readonly broken?: string;
  readonly affinity: 'node' | 'any';
  /** A call's longest duration. */
  readonly timeoutMs: number;
}

const DEFAULT_TIMEOUT_MS = 60_000;

/** Undefined for one that is being deleted. */
export function compileTool(object: KubeObject): CompiledTool | undefined {
  const { name, namespace = '', deletionTimestamp } = object.metadata;
  if (deletionTimestamp !== undefined) return undefined;
  const base = { namespace, name, id: toolId(name) };
  const read = readStored(tool.schema, object);
  if (!read.ok) {
    const [problem] = read.problems;
    const broken = problem === undefined ? 'unreadable' : `${problem.field}: ${problem.message}`;
    return { ...base, broken, affinity: 'node', timeoutMs: DEFAULT_TIMEOUT_MS };
  }
  const { spec } = read.value;
  return { ...base, affinity: affinityOf(spec), timeoutMs: parseDuration(spec.timeout) ?? DEFAULT_TIMEOUT_MS };
}
