/** The hash of a listing or a function as people and objects write it: `sha256:` and 64 hex digits. Sidecars and gateways say the digits alone. */

const DIGITS = /^[0-9a-f]{64}$/;
const PREFIX = 'sha256:';

/** `sha256:<digits>`; undefined for what is no hash. Takes either form. */
export function writtenHash(hash: string): string | undefined {
  const digits = hashDigits(hash);
  return DIGITS.test(digits) ? `${PREFIX}${digits}` : undefined;
}

/** The digits alone, of either form. */
export function hashDigits(hash: string): string {
  return hash.startsWith(PREFIX) ? hash.slice(PREFIX.length) : hash;
}
