/** Egress' settings, from its environment: all mistakes named at once. */
import { bindingProblem, isHostName } from '../domain/credential/binding.ts';
import { type AllowNetRule, readAllowNet, readCidrs } from '../domain/egress/allowNet.ts';
import type { Cidr } from '../domain/egress/cidr.ts';
import { MODEL_PATHS } from '../domain/egress/decideModelRequest.ts';
import { PORT_TLS } from '../domain/naming.ts';
import { type Environment, readVariables } from '../runtime/configuration.ts';
import type { ModelGateway } from './modelRoute.ts';

const VALUE = '$'.concat('{value}');

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
  /** Of the cluster; unset: there is none, and no tool asks a model. */
  readonly model?: ModelGateway;
}

/** @throws ConfigurationError that names each variable that is missing or wrong */
export function readSettings(environment: Environment): Settings {
  const { problems, text, port, check } = readVariables(environment);
  const ranges = (name: string): readonly Cidr[] => {
    const read = readCidrs(environment[name] ?? '');
    if (read.ok) return read.cidrs;
    problems.push(...read.problems.map((problem) => `  ${name}: ${problem}`));
    return [];
  };
  const allow = readAllowNet(environment['OZ0_CONNECT_ALLOW_NET'] ?? '');
  if (!allow.ok) problems.push(...allow.problems.map((problem) => `  OZ0_CONNECT_ALLOW_NET: ${problem}`));
  const namespace = text('OZ0_NAMESPACE');
  const domain = text('OZ0_CLUSTER_DOMAIN', 'cluster.local');
  const model = readModel(environment, domain, problems);
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
    ...(model === undefined ? {} : { model }),
  };
  check();
  return settings;
}

function readModel(environment: Environment, domain: string, problems: string[]): ModelGateway | undefined {
  const text = environment['OZ0_MODEL_URL'];
  if (!text) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const clear = url?.protocol === 'http:' && (url.hostname.endsWith('.svc') || url.hostname.endsWith(`.svc.${domain}`));
  if (url === undefined || (url.protocol !== 'https:' && !clear)) {
    problems.push('  OZ0_MODEL_URL: must be an https URL, or an http one of a Service: http://<name>.<namespace>.svc');
    return undefined;
  }
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') {
    problems.push('  OZ0_MODEL_URL: must be a URL without user name, query and fragment');
  }
  const header = environment['OZ0_MODEL_HEADER'] || 'Authorization';
  const format = environment['OZ0_MODEL_FORMAT'] || `Bearer ${VALUE}`;
  const { hostname: host } = url;
  const name = isHostName(host) ? host : 'model.example.com';
  const bound = {
    secret: 'model',
    host: name,
    port: 443,
    in: 'header',
    name: header,
    format,
    websocket: false,
  } as const;
  const problem = bindingProblem(bound);
  if (problem !== undefined) problems.push(`  OZ0_MODEL_HEADER, OZ0_MODEL_FORMAT: ${problem}`);
  const paths = environment['OZ0_MODEL_PATHS']?.split(',').map((path) => path.trim()) ?? MODEL_PATHS;
  const odd = paths.find((path) => !/^(?:\/[A-Za-z0-9._~:@-]+)+$/.test(path));
  if (odd !== undefined) problems.push(`  OZ0_MODEL_PATHS: ${odd.slice(0, 60)} is no path such as /v1/messages`);
  const keyFile = environment['OZ0_MODEL_KEY_FILE'];
  const caFile = environment['OZ0_MODEL_CA_FILE'];
  return { url, header, format, paths, ...(keyFile ? { keyFile } : {}), ...(caFile ? { caFile } : {}) };
}

function addressRange(address: string | undefined): readonly Cidr[] {
  if (!address) return [];
  const read = readCidrs(`${address}/${address.includes(':') ? 128 : 32}`);
  return read.ok ? read.cidrs : [];
}
