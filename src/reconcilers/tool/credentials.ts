/**
 * The credentials of a Tool: its own secrets, and those that Connections of its namespace bind for it. Only which key of which Secret
 * and where it goes; no part of the controller may read what one holds.
 */
import { placeOf } from '../../api/bindings.ts';
import { addressOf, mayReach } from '../../api/hosts.ts';
import type { SecretBinding, SidecarStatus } from '../../domain/config/sidecar.ts';
import { toolId } from '../../domain/naming.ts';
import type { KubeObject, Sensed } from '../../engine/contract.ts';
import { parseConnection, type StoredConnection } from '../connection/connection.ts';
import type { WrittenTool } from './tool.ts';

/** A key of a Secret. */
export interface SecretKey {
  readonly secret: string;
  readonly key: string;
}

export interface MountedSecret extends SecretKey {
  /** By which the sidecar knows it; in the tool's process the environment variable with the value, or the placeholder. */
  readonly name: string;
  /** Below `/oz0/secrets`. */
  readonly file: string;
}

export interface Credentials {
  readonly secrets: readonly MountedSecret[];
  readonly bindings: readonly SecretBinding[];
  /** Names of the Connections that are among them. */
  readonly connections: readonly string[];
  /** Why a Connection is not: by name, for people. */
  readonly refused: ReadonlyMap<string, string>;
}

export type ProblemOfSecret = NonNullable<SidecarStatus['secrets']>['problems'][number]['problem'];

type Bind = StoredConnection['spec']['bind'][number];

/** Environment variable in which a tool finds the placeholder of a Connection. No secret and no variable may be named so by a user. */
export function connectionVariable(name: string): string {
  return `OZ0_CONNECTION_${name.replaceAll('-', '_').toUpperCase()}`;
}

/**
 * One place in the requests to one host holds one secret. The Tool's own binding is first, then the Connections by age; one that is
 * late is left out as a whole, so that it harms nobody else.
 * @param connections all of the namespace, as they are stored; one that cannot be read binds nothing
 */
export function credentialsOf({ metadata, spec }: WrittenTool, connections: readonly KubeObject[]): Credentials {
  const secret = spec.secretRef?.name ?? metadata.name;
  const secrets: MountedSecret[] = (spec.secrets ?? []).map((key) => ({ name: key, secret, key, file: `own/${key}` }));
  const taken = new Map<string, SecretKey & { readonly by: string }>();
  const bindings = (spec.inject ?? []).map((binding) => {
    taken.set(placeOf(binding), { secret, key: binding.secret, by: 'the Tool itself' });
    return bindingOf(binding.secret, binding);
  });
  const used: string[] = [];
  const refused = new Map<string, string>();
  for (const connection of byAge(connections, toolId(metadata.name))) {
    const { name } = connection.metadata;
    const { secretRef, key } = connection.spec.secret;
    const own = { secret: secretRef.name, key };
    const late = connection.spec.bind.find((place) => {
      const holder = taken.get(placeOf(place));
      return holder !== undefined && (holder.secret !== own.secret || holder.key !== own.key);
    });
    if (late) {
      refused.set(name, `${describe(late)} is bound by ${taken.get(placeOf(late))?.by}`);
      continue;
    }
    const fresh = connection.spec.bind.filter((place) => !taken.has(placeOf(place)));
    for (const place of fresh) taken.set(placeOf(place), { ...own, by: `Connection ${name}` });
    used.push(name);
    // A secret that the Tool itself declares is bound under its own name: it then gets a placeholder where it had the value.
    const known = secrets.find((mounted) => mounted.secret === own.secret && mounted.key === own.key);
    if (!known) secrets.push({ name: connectionVariable(name), ...own, file: `connections/${name}` });
    bindings.push(...fresh.map((place) => bindingOf(known?.name ?? connectionVariable(name), place)));
  }
  return { secrets, bindings, connections: used, refused };
}

function byAge(connections: readonly KubeObject[], id: string): readonly StoredConnection[] {
  const key = ({ metadata }: StoredConnection) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  return connections
    .map((raw) => parseConnection(raw))
    .flatMap((parsed) => (parsed.ok ? [parsed.value] : []))
    .filter(({ metadata, spec }) => metadata.deletionTimestamp === undefined && spec.tools.includes(id))
    .sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

function bindingOf(
  secret: string,
  { host, port, in: where, header, parameter, format, websocket }: Bind,
): SecretBinding {
  const name = where === 'query' ? (parameter ?? '') : (header ?? 'Authorization');
  const bare = where === 'query' || name.toLowerCase() !== 'authorization';
  const value = '$'.concat('{value}');
  return { secret, host, port, in: where, name, format: format ?? (bare ? value : `Bearer ${value}`), websocket };
}

function describe({ host, port, in: where, header, parameter }: Bind): string {
  const at = port === 443 ? host : `${host}:${port}`;
  return where === 'query' ? `parameter ${parameter} of ${at}` : `header ${header ?? 'Authorization'} of ${at}`;
}

/** All that a tool may reach, as egress reads it: its hosts, and that of its URL. To bind a secret opens no host. */
export function hostsOf({ spec }: WrittenTool): readonly string[] {
  const written = ({ host, port }: { readonly host: string; readonly port: number }) =>
    port === 443 ? host : `${host}:${port}`;
  const remote = spec.url === undefined ? undefined : addressOf(spec.url);
  return [...new Set([...(spec.hosts ?? []), ...(remote ? [written(remote)] : [])])].sort();
}

/** Hosts that secrets are bound to and that the Tool does not name, so that egress lets no request there through. */
export function unreachable({ spec }: WrittenTool, bindings: readonly SecretBinding[]): readonly string[] {
  const remote = spec.url === undefined ? undefined : addressOf(spec.url);
  const reachable = ({ host, port }: SecretBinding) =>
    remote ? remote.host === host && remote.port === port : mayReach(spec.hosts ?? [], host, port);
  return [...new Set(bindings.filter((binding) => !reachable(binding)).map(({ host }) => host))];
}

export interface SecretTrouble extends SecretKey {
  readonly problem: ProblemOfSecret;
}

/** What pods say is wrong with secrets; only of those that the Tool has, whatever else they name. */
export function secretTroubles(
  { secrets }: Credentials,
  answers: readonly Sensed<SidecarStatus>[],
): readonly SecretTrouble[] {
  const problems = new Map(
    answers.flatMap((answer) =>
      answer.state === 'ok' ? (answer.value.secrets?.problems ?? []).map(({ name, problem }) => [name, problem]) : [],
    ),
  );
  return secrets.flatMap((secret) => {
    const problem = problems.get(secret.name);
    return problem === undefined ? [] : [{ ...secret, problem }];
  });
}

const WORDS: Record<ProblemOfSecret, string> = {
  missing: 'is missing',
  empty: 'is empty',
  malformed: 'is no single line of visible ASCII',
};

/** `Key TOKEN of Secret acme is missing`, for up to five. */
export function describeTroubles(troubles: readonly SecretTrouble[]): string {
  const said = troubles
    .slice(0, 5)
    .map(({ secret, key, problem }) => `key ${key} of Secret ${secret} ${WORDS[problem]}`);
  const more = troubles.length > 5 ? ` and ${troubles.length - 5} more` : '';
  const text = `${said.join('; ')}${more}.`;
  return text.charAt(0).toUpperCase() + text.slice(1);
}
