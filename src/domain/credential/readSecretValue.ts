/** What may be a secret's value, judged when its file is read, not when a call needs it. Pure. */
import type { SecretProblem } from '../config/sidecar.ts';
import { Secret } from './secret.ts';

/** Below this, taking a value out of answers would tear apart what only looks like it. */
export const SHORTEST_BOUND_VALUE = 8;
/** C06: one header is at most 4 KB. */
export const LONGEST_BOUND_VALUE = 4_096;
/** An environment variable of this size still starts a process (the kernel's limit is 128 KiB). */
export const LONGEST_ENVIRONMENT_VALUE = 65_536;

export type SecretReading =
  | { readonly kind: 'value'; readonly secret: Secret }
  | { readonly kind: 'problem'; readonly problem: SecretProblem };

/**
 * The value of a secret that goes into a header or a query: visible ASCII, spaces inside only. A newline at the end is an
 * editor's, and is taken off.
 */
export function readBoundValue(bytes: Uint8Array | undefined): SecretReading {
  if (bytes === undefined) return problem('missing');
  if (bytes.length > LONGEST_BOUND_VALUE + 2) return problem('malformed');
  const text = Buffer.from(bytes)
    .toString('latin1')
    .replace(/\r?\n$/, '');
  if (text.trim() === '') return problem('empty');
  if (text.length < SHORTEST_BOUND_VALUE || text.length > LONGEST_BOUND_VALUE) return problem('malformed');
  if (!/^[\x20-\x7e]+$/.test(text) || text.startsWith(' ') || text.endsWith(' ')) return problem('malformed');
  return { kind: 'value', secret: new Secret(text) };
}

/** The value of a secret that the tool gets as an environment variable: any text without NUL, exactly as it is stored. */
export function readEnvironmentValue(bytes: Uint8Array | undefined): SecretReading {
  if (bytes === undefined) return problem('missing');
  if (bytes.length > LONGEST_ENVIRONMENT_VALUE) return problem('malformed');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return problem('malformed');
  }
  if (text.trim() === '') return problem('empty');
  return text.includes('\0') ? problem('malformed') : { kind: 'value', secret: new Secret(text) };
}

function problem(of: SecretProblem): SecretReading {
  return { kind: 'problem', problem: of };
}
