/**
 * Server-side apply on plain JSON: who owns which field, what an apply changes and removes, and where it conflicts. Lists are
 * owned as a whole, but for owner references and conditions, whose items have an identity; enough for what we apply.
 */
export type Json = Readonly<Record<string, unknown>>;

/** Paths of fields by the manager that owns them. */
export type Managers = ReadonlyMap<string, ReadonlySet<string>>;

const SEPARATOR = '\u0000';
const LIST_KEYS: Readonly<Record<string, string>> = { ownerReferences: 'uid', conditions: 'type' };

export type ApplyOutcome =
  | { readonly ok: true; readonly object: Json; readonly managers: Managers }
  | { readonly ok: false; readonly conflicts: readonly string[] };

export function applyFields(
  live: Json,
  managers: Managers,
  manager: string,
  wanted: Json,
  force: boolean,
): ApplyOutcome {
  const liveFields = flatten(live);
  const wantedFields = flatten(wanted);
  const conflicts: string[] = [];
  const next = new Map([...managers].map(([name, paths]) => [name, new Set(paths)]));
  const mine = next.get(manager) ?? new Set<string>();
  const result = new Map(liveFields);

  for (const path of mine) {
    if (wantedFields.has(path)) continue;
    const shared = [...next].some(([name, paths]) => name !== manager && paths.has(path));
    if (!shared) result.delete(path);
  }
  for (const [path, value] of wantedFields) {
    const differs = JSON.stringify(liveFields.get(path)) !== JSON.stringify(value);
    for (const [name, paths] of next) {
      if (name === manager || !differs || !paths.has(path)) continue;
      if (!force) conflicts.push(`${path.replaceAll(SEPARATOR, '.')} of ${name}`);
      paths.delete(path);
    }
    result.set(path, value);
  }
  if (conflicts.length > 0) return { ok: false, conflicts };
  next.set(manager, new Set(wantedFields.keys()));
  return { ok: true, object: unflatten(result), managers: next };
}

/** After an ordinary write: what changed is the writer's. */
export function ownChanges(before: Json, after: Json, managers: Managers, manager: string): Managers {
  const old = flatten(before);
  const now = flatten(after);
  const next = new Map(
    [...managers].map(([name, paths]) => [name, new Set([...paths].filter((path) => now.has(path)))]),
  );
  for (const [path, value] of now) {
    if (JSON.stringify(old.get(path)) === JSON.stringify(value)) continue;
    for (const paths of next.values()) paths.delete(path);
    const mine = next.get(manager) ?? new Set<string>();
    next.set(manager, mine.add(path));
  }
  return next;
}

function flatten(value: Json): Map<string, unknown> {
  const fields = new Map<string, unknown>();
  const walk = (inner: unknown, path: string, name: string): void => {
    const listKey = LIST_KEYS[name];
    if (Array.isArray(inner) && listKey !== undefined) {
      for (const item of inner) {
        fields.set(`${path}${SEPARATOR}[${String((item as Record<string, unknown>)[listKey])}]`, item);
      }
    } else if (typeof inner === 'object' && inner !== null && !Array.isArray(inner) && Object.keys(inner).length > 0) {
      for (const [key, item] of Object.entries(inner)) walk(item, path === '' ? key : `${path}${SEPARATOR}${key}`, key);
    } else if (inner !== undefined) {
      fields.set(path, inner);
    }
  };
  walk(value, '', '');
  return fields;
}

function unflatten(fields: ReadonlyMap<string, unknown>): Json {
  const root: Record<string, unknown> = {};
  for (const [path, value] of fields) {
    const parts = path.split(SEPARATOR);
    const last = parts.pop() ?? '';
    let at: Record<string, unknown> = root;
    for (const [i, part] of parts.entries()) {
      const isList = i === parts.length - 1 && last.startsWith('[');
      if (isList) {
        const list = (at[part] ?? []) as unknown[];
        at[part] = list;
        list.push(value);
        break;
      }
      const inner = at[part];
      const next = typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>) : {};
      at[part] = next;
      at = next;
    }
    if (!last.startsWith('[')) at[last] = value;
  }
  return root;
}
