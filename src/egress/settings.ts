/** Egress' settings, from its environment: all mistakes named at once. */
import { type AllowNetRule, readAllowNet, readCidrs } from '../domain/egress/allowNet.ts';
import type { Cidr } from '../domain/egress/cidr.ts';
import { PORT_TLS } from '../domain/naming.ts';
import { ConfigurationError, type Environment } from '../runtime/configuration.ts';

export interface Settings {
  readonly trustDomain: string;
  /** Edge, for its signer. */
  readonly edge: { readonly host: string; readonly port: number };
  readonly trustFile: string;
  readonly tokenFile: string;
  readonly port: number;
  /** `connect-allow-net`: networks that are opened to tools. Empty opens nothing. */
  readonly allow: readonly AllowNetRule[];
  /** Ranges that no tool reaches, whatever is opened. */
  readonly never: readonly Cidr[];
  /** Ranges of Services and pods, where the cluster's objects do not tell. */
  readonly services: readonly Cidr[];
  readonly pods: readonly Cidr[];
  /** Addresses at which this pod knows the API server. */
  readonly api: readonly Cidr[];
}

/** @throws ConfigurationError that names each variable that is missing or wrong */
export function readSettings(environment: Environment): Settings {
  const problems: string[] = [];
  const text = (name: string, unset?: string): string => {
    // An empty variable is what a chart writes for an unset value.
    const value = environment[name] || unset;
    if (value === undefined) problems.push(`  ${name}: is missing`);
    return value ?? '';
  };
  const ranges = (name: string): readonly Cidr[] => {
    const read = readCidrs(environment[name] ?? '');
    if (read.ok) return read.cidrs;
    problems.push(...read.problems.map((problem) => `  ${name}: ${problem}`));
    return [];
  };
  const allow = readAllowNet(environment['OZ0_CONNECT_ALLOW_NET'] ?? '');
  if (!allow.ok) problems.push(...allow.problems.map((problem) => `  OZ0_CONNECT_ALLOW_NET: ${problem}`));
  const port = (name: string, unset: number): number => {
    const value = Number(environment[name] || unset);
    if (Number.isInteger(value) && value >= 1 && value <= 65_535) return value;
    problems.push(`  ${name}: must be a port`);
    return unset;
  };
  const namespace = text('OZ0_NAMESPACE');
  const domain = text('OZ0_CLUSTER_DOMAIN', 'cluster.local');
  const settings: Settings = {
    trustDomain: text('OZ0_TRUST_DOMAIN'),
    // Absolute, so that no search list is tried.
    edge: { host: text('OZ0_EDGE_HOST', `oz0-edge.${namespace}.svc.${domain}.`), port: port('OZ0_EDGE_PORT', 443) },
    trustFile: text('OZ0_TRUST_FILE', '/oz0/trust/ca.crt'),
    tokenFile: text('OZ0_TOKEN_FILE', '/oz0/identity/token'),
    port: port('OZ0_PORT', PORT_TLS),
    allow: allow.ok ? allow.rules : [],
    never: ranges('OZ0_EGRESS_NEVER'),
    services: ranges('OZ0_SERVICE_CIDRS'),
    pods: ranges('OZ0_POD_CIDRS'),
    api: addressRange(environment['KUBERNETES_SERVICE_HOST']),
  };
  if (problems.length === 0) return settings;
  throw new ConfigurationError(`These environment variables are missing or wrong:\n${problems.join('\n')}`);
}

function addressRange(address: string | undefined): readonly Cidr[] {
  if (!address) return [];
  const read = readCidrs(`${address}/${address.includes(':') ? 128 : 32}`);
  return read.ok ? read.cidrs : [];
}
