/** Protocol revisions and their two eras. Revisions are ISO dates, so comparing text compares time. */

export const MODERN_VERSION = '2026-07-28';
export const MODERN_VERSIONS: readonly string[] = [MODERN_VERSION];

/** Revisions with `initialize` and sessions over Streamable HTTP, newest first. */
export const LEGACY_VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26'] as const;
export const LATEST_LEGACY_VERSION = LEGACY_VERSIONS[0];

const DATE = /^\d{4}-\d{2}-\d{2}$/;

/** Whether a revision is of the stateless era, also one that we do not speak yet. */
export function isModern(version: string): boolean {
  return DATE.test(version) && version >= MODERN_VERSION;
}

export function isLegacyVersion(version: string): boolean {
  return (LEGACY_VERSIONS as readonly string[]).includes(version);
}

/** What `initialize` answers: the revision asked for where we speak it, else our newest; the client may then leave. */
export function negotiateLegacy(requested: string | undefined): string {
  return requested !== undefined && isLegacyVersion(requested) ? requested : LATEST_LEGACY_VERSION;
}
