/**
 * `connect-allow-net`: networks that the cluster's admin opens to tools, read from a setting. Pure. It may open private,
 * carriers' shared and unique local ranges, and, where it is narrow, a part of the pods' ranges; whatever else is refused here.
 */
import { classOf } from './address.ts';
import { type Cidr, covers, parseCidr } from './cidr.ts';

export interface AllowNetRule {
  readonly cidr: Cidr;
  /** Of tools; undefined: all. */
  readonly namespaces?: readonly string[];
  /** Undefined: all. */
  readonly ports?: readonly number[];
  /** /28 (IPv6 /124) or narrower: opens addresses of pods too. */
  readonly narrow: boolean;
}

export type AllowNetReading =
  | { readonly ok: true; readonly rules: readonly AllowNetRule[] }
  /** A sentence for each mistake. */
  | { readonly ok: false; readonly problems: readonly string[] };

const MAX_RULES = 256;
const OPENABLE = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16', '100.64.0.0/10', 'fc00::/7'];
const OPENABLE_RANGES = OPENABLE.map(parseCidr).filter((range) => typeof range !== 'string');
const NAMESPACE = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

/** @param text CIDRs with commas between, or a JSON list of CIDRs and `{"cidr", "namespaces"?, "ports"?}`; empty: nothing is opened */
export function readAllowNet(text: string): AllowNetReading {
  const entries = entriesOf(text);
  if (entries === undefined) {
    return {
      ok: false,
      problems: ['must be CIDRs with commas between, or a JSON list of {cidr, namespaces?, ports?}'],
    };
  }
  if (entries.length > MAX_RULES) return { ok: false, problems: [`has more than ${MAX_RULES} networks`] };
  const rules: AllowNetRule[] = [];
  const problems: string[] = [];
  for (const entry of entries) {
    const rule = readRule(entry);
    if (typeof rule === 'string') problems.push(rule);
    else rules.push(rule);
  }
  return problems.length === 0 ? { ok: true, rules } : { ok: false, problems };
}

/** Ranges without more, for what is never to be dialled: any range will do. */
export function readCidrs(text: string): { ok: true; cidrs: readonly Cidr[] } | { ok: false; problems: string[] } {
  const entries = entriesOf(text) ?? [text];
  const cidrs: Cidr[] = [];
  const problems: string[] = [];
  for (const entry of entries) {
    const cidr = typeof entry === 'string' ? parseCidr(entry) : 'not-a-cidr';
    if (typeof cidr === 'string') problems.push(cidrProblem(String(entry).slice(0, 60), cidr));
    else cidrs.push(cidr);
  }
  return problems.length === 0 ? { ok: true, cidrs } : { ok: false, problems };
}

function entriesOf(text: string): readonly unknown[] | undefined {
  const trimmed = text.trim();
  if (trimmed === '') return [];
  if (!trimmed.startsWith('[')) return trimmed.split(',').map((entry) => entry.trim());
  try {
    const value: unknown = JSON.parse(trimmed);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function readRule(entry: unknown): AllowNetRule | string {
  const { cidr: text, namespaces, ports, ...rest } = fieldsOf(entry);
  if (typeof text !== 'string') return `${JSON.stringify(entry)?.slice(0, 60)}: must be a CIDR or have a cidr`;
  const named = text.slice(0, 60);
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined)
    return `${named}: ${unknown.slice(0, 60)} is not known; a network has cidr, namespaces and ports`;
  const cidr = parseCidr(text);
  if (typeof cidr === 'string') return cidrProblem(named, cidr);
  const problem = notOpenable(cidr);
  if (problem !== undefined) return `${named}: ${problem}`;
  if (namespaces !== undefined && !isListOf(namespaces, isNamespace)) {
    return `${named}: namespaces must be a list of names of namespaces, not empty; left out, it is all of them`;
  }
  if (ports !== undefined && !isListOf(ports, isPort)) {
    return `${named}: ports must be a list of whole numbers from 1 to 65535, not empty; left out, it is all of them`;
  }
  return {
    cidr,
    ...(namespaces === undefined ? {} : { namespaces }),
    ...(ports === undefined ? {} : { ports }),
    narrow: isNarrow(cidr),
  };
}

function fieldsOf(entry: unknown): Readonly<Record<string, unknown>> {
  if (typeof entry === 'string') return { cidr: entry };
  return typeof entry === 'object' && entry !== null && !Array.isArray(entry) ? { ...entry } : {};
}

function notOpenable(cidr: Cidr): string | undefined {
  const inside = OPENABLE_RANGES.some((range) => covers(range, cidr));
  const first = classOf({ text: cidr.text.split('/')[0] ?? '', family: cidr.family, value: cidr.value });
  const alone = cidr.bits === (cidr.family === 4 ? 32 : 128);
  if (inside)
    return alone && first !== 'private' && first !== 'shared' ? `is ${first}, which is never opened` : undefined;
  if (cidr.bits === 0) return 'is everything; name the networks';
  if (OPENABLE_RANGES.some((range) => covers(cidr, range))) {
    return `is wider than what may be opened: ranges within ${OPENABLE.join(', ')}`;
  }
  if (first !== 'public') return `is ${first}, which is never opened`;
  if (isNarrow(cidr)) return undefined;
  return 'is public and needs no rule; only where pods have such addresses, a /28 (IPv6: /124) or narrower opens some';
}

function isNarrow({ family, bits }: Cidr): boolean {
  return bits >= (family === 4 ? 28 : 124);
}

function cidrProblem(text: string, problem: 'not-a-cidr' | 'host-bits-set'): string {
  return problem === 'not-a-cidr'
    ? `${text}: is not a CIDR, such as 10.1.0.0/16 or fd00:1::/64`
    : `${text}: has bits set beyond its prefix; write its first address, or a longer prefix`;
}

function isListOf<T>(value: unknown, is: (item: unknown) => item is T): value is readonly T[] {
  return Array.isArray(value) && value.length > 0 && value.length <= 64 && value.every(is);
}

function isNamespace(value: unknown): value is string {
  return typeof value === 'string' && NAMESPACE.test(value);
}

function isPort(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= 65_535;
}
