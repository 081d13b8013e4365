/** What a function says it does to the world, from its MCP annotations. Read strictly: what is not said well is not said. */
import type { FunctionKind } from '../config/sidecar.ts';

/**
 * - `Destructive`: says so, whatever else it says.
 * - `ReadOnly`: says that it changes nothing.
 * - `Additive`: says that it writes, but only adds (`destructiveHint: false`).
 * - `Undeclared`: says neither, or says something that is not true or false.
 */
export function functionKind(annotations: unknown): FunctionKind {
  if (typeof annotations !== 'object' || annotations === null || Array.isArray(annotations)) return 'Undeclared';
  const { readOnlyHint, destructiveHint } = annotations as Readonly<Record<string, unknown>>;
  if (destructiveHint === true) return 'Destructive';
  // A hint of another type was meant to say something, and nobody knows what.
  if (!isHint(readOnlyHint) || !isHint(destructiveHint)) return 'Undeclared';
  if (readOnlyHint === true) return 'ReadOnly';
  return destructiveHint === false ? 'Additive' : 'Undeclared';
}

function isHint(value: unknown): value is boolean | undefined {
  return value === undefined || typeof value === 'boolean';
}
