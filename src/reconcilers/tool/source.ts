/** From a Tool, and the Plugin that owns it, to what its pods run; or why not. */
import { parseDuration } from '../../api/duration.ts';
import { plugin as pluginKind } from '../../api/plugin.ts';
import type { SidecarConfig } from '../../domain/config/sidecar.ts';
import type { Fact, KubeObject } from '../../engine/contract.ts';
import { holds, stalls } from '../facts.ts';
import { parseWith } from '../parse.ts';
import {
  ACCEPTED,
  CONFIGURATION_TOO_LARGE,
  PLUGIN_MISSING,
  PLUGIN_NOT_OWNER,
  PLUGIN_WITHOUT_IMAGE,
  SOURCE_NOT_SUPPORTED,
} from './reasons.ts';
import type { WrittenTool } from './tool.ts';

export interface Source {
  readonly image: string;
  readonly pullSecrets: readonly string[];
  readonly argv: readonly string[];
  readonly workingDir: string | undefined;
}

export type Acceptance =
  | { readonly ok: true; readonly source: Source; readonly fact: Fact }
  | { readonly ok: false; readonly fact: Fact };

const DEFAULT_TIMEOUT_MS = 60_000;
const MESSAGE_BYTES = 4 * 1024 * 1024;
/** Linux gives a process no environment variable of 128 KiB or more, and the sidecar's configuration is one. */
const CONFIGURATION_BYTES = 120 * 1024;

const parsePlugin = parseWith(pluginKind.schema);

/** @param plugins what is there under the name in `spec.plugin`: one or none */
export function acceptTool(tool: WrittenTool, plugins: readonly KubeObject[]): Acceptance {
  const { spec } = tool;
  if (spec.plugin !== undefined) {
    const plugin = plugins.find(({ metadata }) => metadata.name === spec.plugin);
    if (!plugin) return refuse(PLUGIN_MISSING, `There is no Plugin ${spec.plugin}.`);
    const owner = tool.metadata.ownerReferences?.find(({ controller }) => controller === true);
    // Its image and pull secrets are lent to Tools of its own only.
    if (owner?.uid === undefined || owner.uid !== plugin.metadata.uid) {
      return refuse(PLUGIN_NOT_OWNER, `Plugin ${spec.plugin} did not make this Tool.`);
    }
    if (spec.mcp !== undefined) return acceptCommand(tool, spec.mcp, plugin);
  }
  if (spec.image === undefined) {
    const field = ['package', 'url', 'mcp'].find((name) => Object.hasOwn(spec, name)) ?? 'source';
    return refuse(SOURCE_NOT_SUPPORTED, `This version of the operator does not run a tool from \`${field}\` yet.`);
  }
  const { reference, command, args = [], pullSecrets = [], workingDir } = spec.image;
  return accept(tool, { image: reference, pullSecrets, argv: [...command, ...args], workingDir });
}

function acceptCommand(tool: WrittenTool, argv: readonly string[], plugin: KubeObject): Acceptance {
  const parsed = parsePlugin(plugin);
  const source = parsed.ok ? parsed.value.spec.source : undefined;
  if (!source) return refuse(PLUGIN_WITHOUT_IMAGE, `Plugin ${plugin.metadata.name} states no image.`);
  return accept(tool, { image: source.image, pullSecrets: source.pullSecrets ?? [], argv, workingDir: undefined });
}

function accept(tool: WrittenTool, source: Source): Acceptance {
  const bytes = new TextEncoder().encode(sidecarConfig(tool, source)).length;
  if (bytes > CONFIGURATION_BYTES) {
    return refuse(
      CONFIGURATION_TOO_LARGE,
      `Command, arguments and environment come to ${bytes} bytes; at most ${CONFIGURATION_BYTES} can be given.`,
    );
  }
  const byTag = source.image.includes('@sha256:')
    ? ''
    : 'The image is named by a tag, which may come to mean another image; a digest does not.';
  return { ok: true, source, fact: holds('Accepted', ACCEPTED, byTag) };
}

function refuse(reason: string, message: string): Acceptance {
  return { ok: false, fact: stalls('Accepted', reason, message) };
}

export function timeoutMsOf(tool: WrittenTool): number {
  return parseDuration(tool.spec.timeout) ?? DEFAULT_TIMEOUT_MS;
}

/** The sidecar's configuration as text. Fields and variables have a fixed order: other bytes would roll every pod. */
export function sidecarConfig(tool: WrittenTool, source: Source): string {
  const config: SidecarConfig = {
    namespace: tool.metadata.namespace ?? '',
    tool: tool.metadata.name,
    argv: source.argv,
    env: sorted(tool.spec.env ?? {}),
    ...(source.workingDir === undefined ? {} : { cwd: source.workingDir }),
    timeoutMs: timeoutMsOf(tool),
    concurrency: tool.spec.concurrency,
    maxMessageBytes: MESSAGE_BYTES,
  };
  return JSON.stringify(config);
}

/** A map with its keys in order. */
export function sorted<T>(map: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1)));
}
