/**
 * Order of two resourceVersions of one kind: negative when `a` is older, 0 when equal, positive when newer; undefined when
 * it cannot be told. Decimal versions are comparable since Kubernetes 1.35 (KEP-5504) and were in fact before.
 */
export function compareVersions(a: string | undefined, b: string | undefined): number | undefined {
  if (a === undefined || b === undefined) return undefined;
  if (a === b) return 0;
  if (!isDecimal(a) || !isDecimal(b)) return undefined;
  if (a.length !== b.length) return a.length - b.length;
  return a < b ? -1 : 1;
}

/** No leading zero, as the server prints them; so longer is larger. */
function isDecimal(version: string): boolean {
  return /^[1-9][0-9]*$/.test(version);
}
