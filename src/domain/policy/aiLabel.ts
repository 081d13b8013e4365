/** The tenant's mark on texts that an agent wrote and people read. Pure. */

export type Labelled =
  | { readonly ok: true; readonly args: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly problem: string };

/**
 * Puts the label at the start of the string at a JSON pointer (RFC 6901), once; the arguments given stay as they are.
 * @param label unset or empty: nothing is put
 */
export function applyAiLabel(
  args: Readonly<Record<string, unknown>>,
  pointer: string | undefined,
  label: string | undefined,
): Labelled {
  if (pointer === undefined || label === undefined || label === '') return { ok: true, args };
  // The empty pointer is of the arguments as a whole, which are no text.
  if (!pointer.startsWith('/')) return { ok: false, problem: `there is no text at ${JSON.stringify(pointer)}` };
  const path = pointer
    .slice(1)
    .split('/')
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const labelled = withLabel(args, path, label);
  return labelled === undefined
    ? { ok: false, problem: `there is no text at ${pointer} to put the label on` }
    : { ok: true, args: labelled as Readonly<Record<string, unknown>> };
}

function withLabel(value: unknown, [key, ...rest]: readonly string[], label: string): unknown {
  if (key === undefined) {
    if (typeof value !== 'string') return undefined;
    return value.startsWith(label) ? value : `${label}${value}`;
  }
  if (Array.isArray(value)) {
    const index = /^(0|[1-9][0-9]*)$/.test(key) ? Number(key) : -1;
    if (index < 0 || index >= value.length) return undefined;
    const inner = withLabel(value[index], rest, label);
    return inner === undefined ? undefined : value.with(index, inner);
  }
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  const inner = withLabel((value as Record<string, unknown>)[key], rest, label);
  if (inner === undefined) return undefined;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, name === key ? inner : item]));
}
