/** The sidecar's configuration, read once and strictly: what is written wrong ends the process with a sentence. */
import type { SidecarConfig } from '../domain/config/sidecar.ts';

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
  if (!Array.isArray(argv) || argv.length === 0 || !argv.every((each) => typeof each === 'string')) {
    throw new SettingsError('OZ0_SIDECAR: argv must be a list of strings that is not empty');
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
    timeoutMs: whole('timeoutMs', timeoutMs, 2 ** 31 - 1),
    concurrency: whole('concurrency', concurrency, 10_000),
    maxMessageBytes: whole('maxMessageBytes', maxMessageBytes, 256 * 1024 * 1024),
  };
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
