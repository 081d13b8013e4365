/** From a Tool, and the Plugin that owns it, to what its pods run; or why not. */
import { parseDuration } from '../../api/duration.ts';
import { addressOf, parameterOf } from '../../api/hosts.ts';
import { plugin as pluginKind } from '../../api/plugin.ts';
import type { SidecarConfig } from '../../domain/config/sidecar.ts';
import type { Fact, KubeObject } from '../../engine/contract.ts';
import { holds, nameSome, stalls } from '../facts.ts';
import type { Operator } from '../operator.ts';
import { parseWith } from '../parse.ts';
import { type Credentials, credentialsOf, hostsOf, unreachable } from './credentials.ts';
import {
  ACCEPTED,
  CONFIGURATION_TOO_LARGE,
  NO_MODEL_GATEWAY,
  PARAMETER_MISSING,
  PLUGIN_MISSING,
  PLUGIN_NOT_OWNER,
  PLUGIN_WITHOUT_IMAGE,
  SOURCE_NOT_SUPPORTED,
} from './reasons.ts';
import type { WrittenTool } from './tool.ts';

export type Source = ProcessSource | RemoteSource;

/** A program in an image. */
export interface ProcessSource {
  readonly kind: 'process';
  readonly image: string;
  readonly pullSecrets: readonly string[];
  readonly argv: readonly string[];
  readonly workingDir: string | undefined;
}

/** A server elsewhere, to which the sidecar alone speaks. */
export interface RemoteSource {
  readonly kind: 'remote';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type Acceptance =
  | { readonly ok: true; readonly source: Source; readonly credentials: Credentials; readonly fact: Fact }
  | { readonly ok: false; readonly fact: Fact };

const DEFAULT_TIMEOUT_MS = 60_000;
const MESSAGE_BYTES = 4 * 1024 * 1024;
/** Linux gives a process no environment variable of 128 KiB or more, and the sidecar's configuration is one. */
const CONFIGURATION_BYTES = 120 * 1024;

const parsePlugin = parseWith(pluginKind.schema);

/**
 * @param plugins what is there under the name in `spec.plugin`: one or none
 * @param connections all of the namespace
 */
export function acceptTool(
  tool: WrittenTool,
  plugins: readonly KubeObject[],
  connections: readonly KubeObject[],
  { modelGateway }: Pick<Operator, 'modelGateway'>,
): Acceptance {
  const { spec } = tool;
  if (spec.usesModel && !modelGateway) {
    const why =
      'The Tool asks a model, and the cluster has no model gateway: a cluster admin sets model.url of the chart.';
    return refuse(NO_MODEL_GATEWAY, why);
  }
  const credentials = credentialsOf(tool, connections);
  if (spec.plugin !== undefined) {
    const plugin = plugins.find(({ metadata }) => metadata.name === spec.plugin);
    if (!plugin) return refuse(PLUGIN_MISSING, `There is no Plugin ${spec.plugin}.`);
    const owner = tool.metadata.ownerReferences?.find(({ controller }) => controller === true);
    // Its image and pull secrets are lent to Tools of its own only.
    if (owner?.uid === undefined || owner.uid !== plugin.metadata.uid) {
      return refuse(PLUGIN_NOT_OWNER, `Plugin ${spec.plugin} did not make this Tool.`);
    }
    if (spec.mcp !== undefined) return acceptCommand(tool, spec.mcp, plugin, credentials);
  }
  const parameter = parameterOf(spec.url ?? '');
  if (parameter !== undefined) {
    const why = `\`url\` takes its host from params.${parameter}: that needs a Connection for this tool with a parameter of this name, and connections of this version of the operator have none. Write the host itself.`;
    return refuse(PARAMETER_MISSING, why);
  }
  if (spec.url !== undefined) {
    return accept(tool, { kind: 'remote', url: spec.url, headers: ownHeaders(tool, credentials) }, credentials);
  }
  if (spec.image === undefined) {
    const field = ['package', 'mcp'].find((name) => Object.hasOwn(spec, name)) ?? 'source';
    return refuse(SOURCE_NOT_SUPPORTED, `This version of the operator does not run a tool from \`${field}\` yet.`);
  }
  const { reference, command, args = [], pullSecrets = [], workingDir } = spec.image;
  const argv = [...command, ...args];
  return accept(tool, { kind: 'process', image: reference, pullSecrets, argv, workingDir }, credentials);
}

/** Without those that are bound at the server's host, by a Connection or the Tool itself: what is bound always wins. */
function ownHeaders(tool: WrittenTool, credentials: Credentials): Readonly<Record<string, string>> {
  const lost = lostHeaders(tool, credentials);
  return Object.fromEntries(Object.entries(tool.spec.headers ?? {}).filter(([name]) => !lost.includes(name)));
}

function lostHeaders({ spec }: WrittenTool, { bindings }: Credentials): readonly string[] {
  const server = addressOf(spec.url ?? '');
  const bound = bindings.filter(
    ({ host, port, in: where }) => where === 'header' && host === server?.host && port === server.port,
  );
  // One that names the very secret that is bound there says the same.
  const loses = ([header, value]: [string, string]) =>
    bound.some(
      ({ name, secret }) =>
        name.toLowerCase() === header.toLowerCase() && !value.includes('$'.concat('{', secret, '}')),
    );
  return Object.entries(spec.headers ?? {})
    .filter(loses)
    .map(([name]) => name);
}

function acceptCommand(
  tool: WrittenTool,
  argv: readonly string[],
  plugin: KubeObject,
  credentials: Credentials,
): Acceptance {
  const parsed = parsePlugin(plugin);
  const source = parsed.ok ? parsed.value.spec.source : undefined;
  if (!source) return refuse(PLUGIN_WITHOUT_IMAGE, `Plugin ${plugin.metadata.name} states no image.`);
  const { image, pullSecrets = [] } = source;
  return accept(tool, { kind: 'process', image, pullSecrets, argv, workingDir: undefined }, credentials);
}

function accept(tool: WrittenTool, source: Source, credentials: Credentials): Acceptance {
  const bytes = new TextEncoder().encode(sidecarConfig(tool, source, credentials)).length;
  if (bytes > CONFIGURATION_BYTES) {
    return refuse(
      CONFIGURATION_TOO_LARGE,
      `Command, arguments, environment, headers and bindings come to ${bytes} bytes; at most ${CONFIGURATION_BYTES} can be given.`,
    );
  }
  const notes = [byTag(source), outOfReach(tool, credentials), notSent(tool, credentials)].filter(
    (note) => note !== '',
  );
  return { ok: true, source, credentials, fact: holds('Accepted', ACCEPTED, notes.join(' ')) };
}

function byTag(source: Source): string {
  return source.kind === 'remote' || source.image.includes('@sha256:')
    ? ''
    : 'The image is named by a tag, which may come to mean another image; a digest does not.';
}

function outOfReach(tool: WrittenTool, { bindings }: Credentials): string {
  const hosts = unreachable(tool, bindings);
  return hosts.length === 0 ? '' : `Secrets are bound to hosts that its hosts do not name: ${nameSome(hosts)}.`;
}

function notSent(tool: WrittenTool, credentials: Credentials): string {
  const lost = lostHeaders(tool, credentials);
  return lost.length === 0
    ? ''
    : `Headers that are not sent as written, since a secret is bound there: ${nameSome(lost)}.`;
}

function refuse(reason: string, message: string): Acceptance {
  return { ok: false, fact: stalls('Accepted', reason, message) };
}

export function timeoutMsOf(tool: WrittenTool): number {
  return parseDuration(tool.spec.timeout) ?? DEFAULT_TIMEOUT_MS;
}

/** The sidecar's configuration as text. Fields and variables have a fixed order: other bytes would roll every pod. */
export function sidecarConfig(tool: WrittenTool, source: Source, credentials: Credentials): string {
  const { secrets, bindings } = credentials;
  const hosts = hostsOf(tool);
  const config: SidecarConfig = {
    namespace: tool.metadata.namespace ?? '',
    tool: tool.metadata.name,
    argv: source.kind === 'process' ? source.argv : [],
    env: sorted(tool.spec.env ?? {}),
    ...(source.kind === 'process' && source.workingDir !== undefined ? { cwd: source.workingDir } : {}),
    timeoutMs: timeoutMsOf(tool),
    concurrency: tool.spec.concurrency,
    maxMessageBytes: MESSAGE_BYTES,
    ...(source.kind === 'remote' ? { remote: { url: source.url, headers: sorted(source.headers) } } : {}),
    ...(secrets.length > 0 ? { secrets: secrets.map(({ name, file }) => ({ name, file })) } : {}),
    ...(bindings.length > 0 ? { bindings } : {}),
    ...(hosts.length > 0 ? { hosts } : {}),
    ...(tool.spec.usesModel ? { usesModel: true } : {}),
  };
  return JSON.stringify(config);
}

/** A map with its keys in order. */
export function sorted<T>(map: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}
