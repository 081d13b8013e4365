/** The sidecar's configuration, read once and strictly: what is written wrong ends the process with a sentence. */
import type { RemoteServer, SecretBinding, SidecarConfig } from '../domain/config/sidecar.ts';

export class SettingsError extends Error {
  readonly code = 'OZ0_SETTINGS';
}

/** @throws SettingsError naming the field */
export function readSettings(json: string | undefined): SidecarConfig {
  if (!json) throw new SettingsError('OZ0_SIDECAR is not set');
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw new SettingsError('OZ0_SIDECAR is not JSON');
  }
  if (!isRecord(value)) throw new SettingsError('OZ0_SIDECAR is not an object');
  const { namespace, tool, argv, env, cwd, timeoutMs, concurrency, maxMessageBytes } = value;
  const remote = readRemote(value['remote']);
  if (!Array.isArray(argv) || !argv.every((each) => typeof each === 'string')) {
    throw new SettingsError('OZ0_SIDECAR: argv must be a list of strings');
  }
  if ((argv.length === 0) !== (remote !== undefined)) {
    throw new SettingsError('OZ0_SIDECAR: either argv or remote must say what the tool is');
  }
  if (!isRecord(env) || !Object.values(env).every((each) => typeof each === 'string')) {
    throw new SettingsError('OZ0_SIDECAR: env must be an object of strings');
  }
  if (cwd !== undefined && typeof cwd !== 'string') throw new SettingsError('OZ0_SIDECAR: cwd must be a string');
  return {
    namespace: text('namespace', namespace),
    tool: text('tool', tool),
    argv,
    env: env as Readonly<Record<string, string>>,
    ...(cwd === undefined ? {} : { cwd }),
    ...(remote === undefined ? {} : { remote }),
    secrets: records('secrets', value['secrets']).map((each) => ({
      name: text('secrets.name', each['name']),
      file: text('secrets.file', each['file']),
    })),
    bindings: records('bindings', value['bindings']).map(readBinding),
    hosts: strings('hosts', value['hosts']),
    ...(value['usesModel'] === true ? { usesModel: true } : {}),
    timeoutMs: whole('timeoutMs', timeoutMs, 2 ** 31 - 1),
    concurrency: whole('concurrency', concurrency, 10_000),
    maxMessageBytes: whole('maxMessageBytes', maxMessageBytes, 256 * 1024 * 1024),
  };
}

function readRemote(value: unknown): RemoteServer | undefined {
  if (value === undefined) return undefined;
  if (!isRecord(value)) throw new SettingsError('OZ0_SIDECAR: remote must be an object');
  const { headers = {} } = value;
  if (!isRecord(headers) || !Object.values(headers).every((each) => typeof each === 'string')) {
    throw new SettingsError('OZ0_SIDECAR: remote.headers must be an object of strings');
  }
  const url = text('remote.url', value['url']);
  if (!URL.canParse(url)) throw new SettingsError('OZ0_SIDECAR: remote.url must be a URL');
  return { url, headers: headers as Readonly<Record<string, string>> };
}

function readBinding(value: Readonly<Record<string, unknown>>): SecretBinding {
  const place = value['in'];
  if (place !== 'header' && place !== 'query') throw new SettingsError('OZ0_SIDECAR: bindings.in is header or query');
  return {
    secret: text('bindings.secret', value['secret']),
    host: text('bindings.host', value['host']),
    port: whole('bindings.port', value['port'], 65_535),
    in: place,
    name: text('bindings.name', value['name']),
    format: text('bindings.format', value['format']),
    websocket: value['websocket'] === true,
  };
}

function records(name: string, value: unknown): readonly Readonly<Record<string, unknown>>[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || !value.every(isRecord)) {
    throw new SettingsError(`OZ0_SIDECAR: ${name} must be a list of objects`);
  }
  return value;
}

function strings(name: string, value: unknown): readonly string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value) || !value.every((each) => typeof each === 'string')) {
    throw new SettingsError(`OZ0_SIDECAR: ${name} must be a list of strings`);
  }
  return value;
}

function text(name: string, value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new SettingsError(`OZ0_SIDECAR: ${name} must be a string`);
  return value;
}

function whole(name: string, value: unknown, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1 || value > most) {
    throw new SettingsError(`OZ0_SIDECAR: ${name} must be a whole number from 1 to ${most}`);
  }
  return value;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
