/** Reads live objects, of which nothing is taken for granted: another version may have written them. */

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What lies at a path of fields; undefined where there is nothing. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((inner, field) => (isRecord(inner) ? inner[field] : undefined), value);
}

export function textAt(value: unknown, ...path: readonly string[]): string | undefined {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : undefined;
}

/** A count that Kubernetes leaves out is zero. */
export function countAt(value: unknown, ...path: readonly string[]): number {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : 0;
}

export function recordsAt(value: unknown, ...path: readonly string[]): readonly Record<string, unknown>[] {
  const found = at(value, ...path);
  return Array.isArray(found) ? found.filter(isRecord) : [];
}

/** The condition of a type in a live object's status. */
export function conditionOf(object: unknown, type: string): Record<string, unknown> | undefined {
  return recordsAt(object, 'status', 'conditions').find((condition) => condition['type'] === type);
}
