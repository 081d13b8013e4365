/** Kubernetes' quantities, as far as the kinds take them: no sign and no exponent, so that nobody misreads one. */

const QUANTITY = /^([0-9]{1,16})(?:[.]([0-9]{1,9}))?(m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?$/;

/** Powers of ten and of two behind the suffixes. */
const SUFFIXES: Readonly<Record<string, bigint>> = {
  k: 10n ** 3n,
  M: 10n ** 6n,
  G: 10n ** 9n,
  T: 10n ** 12n,
  P: 10n ** 15n,
  E: 10n ** 18n,
  Ki: 2n ** 10n,
  Mi: 2n ** 20n,
  Gi: 2n ** 30n,
  Ti: 2n ** 40n,
  Pi: 2n ** 50n,
  Ei: 2n ** 60n,
};

/** Cores, more than 0 and no finer than a thousandth: `50m`, `2`, `1.5`. */
export const CORES = /^([1-9][0-9]{0,6}m?|[1-9][0-9]{0,3}[.][0-9]{1,3}|0[.]([1-9][0-9]{0,2}|0[1-9][0-9]?|00[1-9]))$/;

/** Bytes, more than 0: `64Mi`, `1.5Gi`, `1000000`. */
export const BYTES =
  /^([1-9][0-9]{0,15}|([1-9][0-9]{0,8}([.][0-9]{1,3})?|0[.][0-9]{0,2}[1-9])(k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))$/;

/** A quantity in billionths, exactly, or undefined for what is none: `50m` → 50000000n. */
export function parseQuantity(value: string | number): bigint | undefined {
  const match = QUANTITY.exec(String(value));
  if (!match) return undefined;
  const [, whole = '0', fraction = '', suffix = ''] = match;
  const billionths = BigInt(whole) * 10n ** 9n + BigInt(fraction.padEnd(9, '0'));
  return suffix === 'm' ? billionths / 1000n : billionths * (SUFFIXES[suffix] ?? 1n);
}
