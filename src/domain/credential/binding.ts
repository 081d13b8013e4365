/** A secret that is bound to a host, as it stands at this moment: its placeholder, and its value unless it has none. Pure. */
import type { SecretBinding } from '../config/sidecar.ts';
import type { Secret } from './secret.ts';

export interface LiveBinding {
  readonly binding: SecretBinding;
  readonly placeholder: string;
  /** Undefined: missing, empty or malformed now. Requests with its placeholder are then refused. */
  readonly value: Secret | undefined;
}

const VALUE = '$'.concat('{value}');

/** `Bearer ${value}` with a value in it. */
export function filled(format: string, value: string): string {
  return format.split(VALUE).join(value);
}

/**
 * What is wrong with a binding, for the log and for whoever wrote it.
 * @returns undefined when nothing is
 */
export function bindingProblem(binding: SecretBinding): string | undefined {
  const { host, port, name, format } = binding;
  if (!isHostName(host)) return `not an exact host name in A-label form: ${host.slice(0, 100)}`;
  if (!Number.isInteger(port) || port < 1 || port > 65_535) return `not a port: ${port}`;
  if (format.split(VALUE).length !== 2) return `the format must hold ${VALUE} once`;
  if (!/^[\x20-\x7e]+$/.test(format) || format.trim() !== format) return 'the format must be visible ASCII';
  if (binding.in === 'query') return /^[A-Za-z0-9._~-]{1,64}$/.test(name) ? undefined : 'not a plain query parameter';
  if (!/^[A-Za-z0-9-]{1,128}$/.test(name)) return 'not a plain header name';
  return FORBIDDEN_SLOTS.has(name.toLowerCase()) ? `no secret goes into ${name}` : undefined;
}

/** Lower-case A-labels with at least one dot; no address, no wildcard, no dot at the end. */
export function isHostName(text: string): boolean {
  if (text.length > 253 || !/\.[a-z][a-z0-9-]*$/.test(text)) return false;
  return text.split('.').every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label));
}

/** C06: what the transport itself writes. */
const FORBIDDEN_SLOTS: ReadonlySet<string> = new Set([
  'host',
  'connection',
  'content-length',
  'content-type',
  'content-encoding',
  'transfer-encoding',
  'accept',
  'accept-encoding',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'range',
  'te',
  'trailer',
  'upgrade',
  'mcp-session-id',
]);
