/**
 * What is new about a listing, for the person who approves it: function by function, part by part, old to new. What the server says is
 * shown so that nothing in it hides, and bounded so that nothing pushes the rest out of sight: all functions are named before any is
 * described. Pure.
 */
import { canonicalJson, DATA, MAPS, SETS } from './canonical.ts';
import { functionKind } from './functionKind.ts';
import { hashFunction } from './snapshotListing.ts';
import { visibleText } from './visibleText.ts';

/** A listing as a model sees it. */
export interface Definitions {
  readonly instructions?: string;
  readonly tools: readonly Definition[];
}

export type Definition = Readonly<Record<string, unknown>>;

/** A listing by the hashes of its functions. */
export interface NamedHashes {
  readonly functions: readonly { readonly name: string; readonly hash: string }[];
}

/** Bytes of UTF-8, which is what status takes. */
export const DIFFERENCE_MAX_BYTES = 4096;
const NAMES_MAX_BYTES = 1024;
/** Of one function, so that one noisy function leaves room for the others. */
const PARTS_MAX = 12;
/** Found in all: more than are ever shown. */
const CHANGES_MAX = 200;
const VALUE_MAX = 120;
const CONTEXT = 24;

/** One place of a definition. */
export interface Part {
  /** `description`, `inputSchema.properties.repo.enum`. */
  readonly path: string;
  /** As shown; undefined: it was not there. */
  readonly from: string | undefined;
  readonly to: string | undefined;
}

/** @returns lines of at most `DIFFERENCE_MAX_BYTES` in all */
export function describeDifference(from: Definitions, to: Definitions): string {
  const [before, after] = [byName(from.tools), byName(to.tools)];
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  const added = names.filter((name) => !before.has(name));
  const removed = names.filter((name) => !after.has(name));
  const changed = names.filter((name) => {
    const [old, now] = [before.get(name), after.get(name)];
    return old !== undefined && now !== undefined && hashFunction(old) !== hashFunction(now);
  });
  const about = partsOf(from.instructions, to.instructions, 'instructions', false);
  const details = [
    ...about.map((part) => [line(part)]),
    ...changed.map((name) => [
      `~ ${shownName(name)}${kinds(before.get(name), after.get(name))}`,
      ...changes(before.get(name), after.get(name)),
    ]),
    ...added.map((name) => [`+ ${shownName(name)}${kinds(undefined, after.get(name))}`, ...summary(after.get(name))]),
    ...removed.map((name) => [`- ${shownName(name)}`]),
  ];
  const head = heading(added, removed, changed, about.length > 0);
  return bounded([...head, '', ...fairly(details)]);
}

/** The same where definitions are not at hand: names alone. */
export function differenceByName(from: NamedHashes, to: NamedHashes): string {
  const hashes = ({ functions }: NamedHashes) => new Map(functions.map(({ name, hash }) => [name, hash]));
  const [before, after] = [hashes(from), hashes(to)];
  const names = [...new Set([...before.keys(), ...after.keys()])].sort();
  const added = names.filter((name) => !before.has(name));
  const removed = names.filter((name) => !after.has(name));
  const changed = names.filter((name) => before.has(name) && after.has(name) && before.get(name) !== after.get(name));
  return bounded([
    ...heading(added, removed, changed, added.length + removed.length + changed.length === 0),
    BY_NAME_ONLY,
  ]);
}

/** In a text that could say no more than names. */
export const BY_NAME_ONLY = 'The definitions themselves are not at hand.';

function heading(
  added: readonly string[],
  removed: readonly string[],
  changed: readonly string[],
  instructions: boolean,
): readonly string[] {
  const list = (what: string, names: readonly string[]) =>
    names.length === 0 ? [] : [within(`${what} (${names.length}): `, names.map(shownName), NAMES_MAX_BYTES)];
  return [
    ...list('Changed', changed),
    ...list('Added', added),
    ...list('Removed', removed),
    ...(instructions ? ["Changed: the server's instructions"] : []),
  ];
}

function byName(tools: readonly Definition[]): ReadonlyMap<string, Definition> {
  return new Map(tools.flatMap((tool) => (typeof tool['name'] === 'string' ? [[tool['name'], tool] as const] : [])));
}

function kinds(before: Definition | undefined, after: Definition | undefined): string {
  const [old, now] = [before, after].map((definition) => definition && functionKind(definition['annotations']));
  if (now === undefined) return '';
  return old === undefined || old === now ? ` (${now})` : ` (${old} → ${now})`;
}

function changes(before: Definition = {}, after: Definition = {}): readonly string[] {
  const parts = differingParts(before, after);
  const lines = parts.slice(0, PARTS_MAX).map((part) => `  ${line(part)}`);
  return parts.length > PARTS_MAX ? [...lines, `  and ${parts.length - PARTS_MAX} more places`] : lines;
}

/** Of a function that nobody knows yet. */
function summary(definition: Definition = {}): readonly string[] {
  return ['title', 'description'].flatMap((field) =>
    definition[field] === undefined ? [] : [`  ${field}: ${shortened(definition[field])}`],
  );
}

function line({ path, from, to }: Part): string {
  return `${path}: ${from ?? '(none)'} → ${to ?? '(none)'}`;
}

/** Every place in which two definitions differ in meaning, in order of path; at most 200. */
export function differingParts(before: Definition, after: Definition): readonly Part[] {
  const parts: Part[] = [];
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort(
    (a, b) => rank(a) - rank(b) || (a < b ? -1 : 1),
  );
  for (const key of keys) {
    const schema = key === 'inputSchema' || key === 'outputSchema';
    parts.push(...partsOf(own(before, key), own(after, key), key, schema));
  }
  return parts.slice(0, CHANGES_MAX);
}

/** What a model reads first. */
const ORDER = ['annotations', 'description', 'title', 'inputSchema', 'outputSchema'];

function rank(key: string): number {
  const at = ORDER.indexOf(key);
  return at === -1 ? ORDER.length : at;
}

function partsOf(before: unknown, after: unknown, path: string, schema: boolean, room = CHANGES_MAX): readonly Part[] {
  if (before === after || room <= 0) return [];
  if (isObject(before) && isObject(after)) {
    return collect([...new Set([...Object.keys(before), ...Object.keys(after)])].sort(), room, (key, left) => {
      const [old, now] = [own(before, key), own(after, key)];
      const where = `${path}${step(key)}`;
      if (!schema) return partsOf(old, now, where, false, left);
      if (SETS.has(key) && Array.isArray(old) && Array.isArray(now)) return partsOfSets(old, now, where);
      if (MAPS.has(key) && isObject(old) && isObject(now)) {
        return collect([...new Set([...Object.keys(old), ...Object.keys(now)])].sort(), left, (name, still) =>
          partsOf(own(old, name), own(now, name), `${where}${step(name)}`, true, still),
        );
      }
      return partsOf(old, now, where, !DATA.has(key), left);
    });
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const longest = Math.max(before.length, after.length);
    return collect([...Array(longest).keys()], room, (index, left) =>
      partsOf(before[index], after[index], `${path}[${index}]`, schema, left),
    );
  }
  if (typeof before === 'string' && typeof after === 'string') return [{ path, ...aroundChange(before, after) }];
  return [{ path, from: shown(before), to: shown(after) }];
}

function partsOfSets(before: readonly unknown[], after: readonly unknown[], path: string): readonly Part[] {
  const [old, now] = [before, after].map((items) => new Map(items.map((item) => [canonicalJson(item), item])));
  const only = (these: typeof old, those: typeof old) =>
    [...(these ?? [])].filter(([key]) => !those?.has(key)).sort(([a], [b]) => (a < b ? -1 : 1));
  const said = (items: readonly (readonly [string, unknown])[]) =>
    items.length === 0 ? undefined : cut(items.map(([, item]) => shortened(item)).join(', '));
  const [gone, come] = [only(old, now), only(now, old)];
  // One that is only said twice, or once, means the same and is told as the whole.
  if (gone.length === 0 && come.length === 0) {
    return before.length === after.length ? [] : [{ path, from: shown(before), to: shown(after) }];
  }
  return [{ path, from: said(gone), to: said(come) }];
}

function collect<T>(
  items: readonly T[],
  room: number,
  partsFor: (item: T, left: number) => readonly Part[],
): readonly Part[] {
  const parts: Part[] = [];
  for (const item of items) {
    if (parts.length >= room) break;
    parts.push(...partsFor(item, room - parts.length));
  }
  return parts;
}

/** Both texts from a little before the first character in which they differ. */
function aroundChange(before: string, after: string): { from: string; to: string } {
  let same = 0;
  while (same < before.length && before[same] === after[same]) same += 1;
  const start = same > CONTEXT + 8 ? boundary(before, same - CONTEXT) : 0;
  const part = (text: string) => {
    const lead = start > 0 ? '…' : '';
    return `${lead}${cut(visibleText(text.slice(start, start + VALUE_MAX)))}${text.length > start + VALUE_MAX ? '…' : ''}`;
  };
  return { from: part(before), to: part(after) };
}

/** Not between the two halves of one character. */
function boundary(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

function shown(value: unknown): string | undefined {
  return value === undefined ? undefined : shortened(value);
}

function shortened(value: unknown): string {
  if (typeof value === 'string') {
    return `${cut(visibleText(value.slice(0, VALUE_MAX)))}${value.length > VALUE_MAX ? '…' : ''}`;
  }
  if (typeof value === 'object' && value !== null) {
    // As text of JSON, whose own quotes are not escaped again.
    const text = visibleText(canonicalJson(value).slice(0, VALUE_MAX)).slice(1, -1).replaceAll('\\"', '"');
    return cut(text);
  }
  return String(value);
}

/** Escapes make a text longer than what it shows. */
function cut(text: string): string {
  return text.length > 4 * VALUE_MAX ? `${text.slice(0, 4 * VALUE_MAX)}…` : text;
}

function step(key: string): string {
  return /^[\w$-]{1,64}$/.test(key) ? `.${key}` : `[${shortened(key)}]`;
}

function shownName(name: string): string {
  return /^[\x21-\x7e]{1,128}$/.test(name) ? name : shortened(name);
}

/** As many names as fit, and how many more there are. */
function within(lead: string, names: readonly string[], bytes: number): string {
  let text = lead;
  for (const [index, name] of names.entries()) {
    const next = `${index === 0 ? '' : ', '}${name}`;
    if (size(text) + size(next) > bytes) return `${text} and ${names.length - index} more`;
    text += next;
  }
  return text;
}

/** A first few lines of each, then the rest of each, so that the last is not left unseen for the length of the first. */
function fairly(groups: readonly (readonly string[])[]): readonly string[] {
  const room = DIFFERENCE_MAX_BYTES / 2;
  const share = Math.max(1, Math.floor(room / 160 / Math.max(1, groups.length)));
  return groups.flatMap((group) =>
    group.length > share + 1 ? [...group.slice(0, share + 1), `  and ${group.length - share - 1} more lines`] : group,
  );
}

function bounded(lines: readonly string[]): string {
  const kept: string[] = [];
  let bytes = 0;
  for (const [index, text] of lines.entries()) {
    const more = `and ${lines.length - index} more lines`;
    const next = size(text) + 1;
    const isLast = index === lines.length - 1;
    if (bytes + next + (isLast ? 0 : size(more)) > DIFFERENCE_MAX_BYTES) return [...kept, more].join('\n');
    kept.push(text);
    bytes += next;
  }
  return kept.join('\n').trimEnd();
}

function size(text: string): number {
  return new TextEncoder().encode(text).length;
}

function own(object: Definition, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

function isObject(value: unknown): value is Definition {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
