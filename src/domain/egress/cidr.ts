/** Addresses and ranges as numbers, read strictly: one exact spelling each family, no shorthand, no zone. Pure. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';

export interface Address {
  /** The one spelling in which it is written, compared and dialled. */
  readonly text: string;
  readonly family: 4 | 6;
  readonly value: bigint;
}

export interface Cidr {
  readonly text: string;
  readonly family: 4 | 6;
  /** Its first address. */
  readonly value: bigint;
  readonly bits: number;
}

/**
 * Undefined for what is no address, has a zone, or is a shorthand (`127.1`): those only `ipaddr.js` would read, and read
 * otherwise than the system does.
 */
export function parseAddress(text: string): Address | undefined {
  if (isIP(text) === 0 || text.includes('%')) return undefined;
  const address = ipaddr.parse(text);
  const value = address.toByteArray().reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n);
  return { text: address.toString(), family: address.kind() === 'ipv4' ? 4 : 6, value };
}

export type CidrProblem =
  /** Not `<address>/<bits>`. */
  | 'not-a-cidr'
  /** Bits of the address beyond the prefix are set: it is unclear what was meant. */
  | 'host-bits-set';

export function parseCidr(text: string): Cidr | CidrProblem {
  const [, start = '', bitsText = ''] = /^([0-9A-Fa-f.:]+)\/(0|[1-9][0-9]{0,2})$/.exec(text) ?? [];
  const address = parseAddress(start);
  const bits = Number(bitsText);
  if (address === undefined || bits > widthOf(address.family)) return 'not-a-cidr';
  const host = BigInt(widthOf(address.family) - bits);
  if ((address.value >> host) << host !== address.value) return 'host-bits-set';
  return { text: `${address.text}/${bits}`, family: address.family, value: address.value, bits };
}

/** The range that holds this address alone. */
export function single(address: Address): Cidr {
  const bits = widthOf(address.family);
  return { text: `${address.text}/${bits}`, family: address.family, value: address.value, bits };
}

export function contains(range: Cidr, address: Address): boolean {
  if (range.family !== address.family) return false;
  const host = BigInt(widthOf(range.family) - range.bits);
  return range.value >> host === address.value >> host;
}

/** Whether every address of `inner` is in `outer`. */
export function covers(outer: Cidr, inner: Cidr): boolean {
  return outer.bits <= inner.bits && contains(outer, { text: '', family: inner.family, value: inner.value });
}

function widthOf(family: 4 | 6): 32 | 128 {
  return family === 4 ? 32 : 128;
}

/** Whether two spellings are of one address; an IPv6 socket says `::ffff:1.2.3.4` of what it reached over IPv4. */
export function isSameAddress(a: string, b: string): boolean {
  const [first, second] = [a, b].map((text) => parseAddress(text.replace(/^::ffff:(?=[0-9.]+$)/, '')));
  return first !== undefined && first.text === second?.text;
}
