/** The hosts that one Tool names, compiled from its object alone. Pure; reads leniently, so that a newer Tool is no broken one. */
import { type HostPattern, parseHostPattern, patternOfUrl } from '../domain/egress/host.ts';
import type { KubeObject } from '../engine/contract.ts';

export interface ToolHosts {
  readonly patterns: readonly HostPattern[];
  /** Entries that name no host, each in a sentence: they open nothing, and the others hold. */
  readonly problems: readonly string[];
  /** `spec.usesModel`. */
  readonly usesModel: boolean;
  /** The list itself cannot be read: nothing of it counts. [I9] */
  readonly broken: boolean;
}

const MAX_HOSTS = 256;

/** `spec.hosts`, and the host of `spec.url`. */
export function compileToolHosts(object: KubeObject): ToolHosts {
  const spec = object['spec'];
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) return broken('spec is not an object');
  const { hosts = [], url, usesModel } = spec as Readonly<Record<'hosts' | 'url' | 'usesModel', unknown>>;
  if (!Array.isArray(hosts)) return broken('spec.hosts is not a list');
  if (hosts.length > MAX_HOSTS) return broken(`spec.hosts has more than ${MAX_HOSTS} entries`);
  const patterns: HostPattern[] = [];
  const problems: string[] = [];
  hosts.forEach((entry: unknown, i) => {
    const read = typeof entry === 'string' ? parseHostPattern(entry) : ({ ok: false, problem: 'is not text' } as const);
    if (read.ok) patterns.push(read.pattern);
    else problems.push(`spec.hosts[${i}]: ${read.problem}`);
  });
  // A host that comes from a connection's parameter is known where that is, not here.
  if (url !== undefined && !(typeof url === 'string' && url.includes('{'))) {
    const read = typeof url === 'string' ? patternOfUrl(url) : ({ ok: false, problem: 'is not text' } as const);
    if (read.ok) patterns.push(read.pattern);
    else problems.push(`spec.url: ${read.problem}`);
  }
  return { patterns, problems, usesModel: usesModel === true, broken: false };
}

function broken(problem: string): ToolHosts {
  return { patterns: [], problems: [problem], usesModel: false, broken: true };
}
