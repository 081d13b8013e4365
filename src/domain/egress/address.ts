/**
 * What an address is, whoever asks: a closed set of names, of which only `public` may be dialled without more. Pure; knows
 * nothing of this cluster (`judgeAddress.ts` does).
 */
import ipaddr from 'ipaddr.js';
import { type Address, type Cidr, contains, parseAddress, parseCidr } from './cidr.ts';

export type AddressClass =
  /** Global unicast: for IPv6 only within 2000::/3. */
  | 'public'
  /** RFC 1918, and unique local addresses of IPv6. */
  | 'private'
  /** Carriers' shared space, 100.64.0.0/10. */
  | 'shared'
  | 'loopback'
  /** 0.0.0.0/8 and ::, which Linux takes for this host. */
  | 'this-host'
  | 'link-local'
  /** A cloud's metadata service, wherever it is: some are in public and in private space. */
  | 'metadata'
  | 'multicast'
  /** Documentation, benchmarks, broadcast, protocol assignments and whatever else is not for traffic. */
  | 'reserved'
  /** IPv6 that carries an IPv4 address (mapped, compatible, translated, NAT64, 6to4, Teredo), be that public or not. */
  | 'embedded-ipv4'
  /** An interface identifier that carries an IPv4 address, in whatever network. */
  | 'isatap'
  | 'zoned'
  | 'not-an-address';

/** Azure, Alibaba, Oracle (old), AWS and EKS (IPv6), Google (IPv6), Scaleway (IPv6); IPv4's usual ones are link-local. */
const METADATA: readonly Cidr[] = [
  '169.254.169.254/32',
  '169.254.170.2/32',
  '169.254.170.23/32',
  '168.63.129.16/32',
  '100.100.100.200/32',
  '192.0.0.192/32',
  'fd00:ec2::254/128',
  'fd00:ec2::23/128',
  'fd20:ce::254/128',
  'fd00:42::42/128',
].map(known);

const GLOBAL_UNICAST_V6 = known('2000::/3');
const EMBEDDED_V4 = [
  '::/96',
  '::ffff:0:0/96',
  '::ffff:0:0:0/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '2002::/16',
  '2001::/32',
].map(known);

export function classifyAddress(text: string): AddressClass {
  const address = parseAddress(text);
  if (address === undefined) return text.includes('%') ? 'zoned' : 'not-an-address';
  return classOf(address);
}

export function classOf(address: Address): AddressClass {
  if (METADATA.some((range) => contains(range, address))) return 'metadata';
  const range: string = ipaddr.parse(address.text).range();
  switch (range) {
    case 'unspecified':
      return 'this-host';
    case 'loopback':
      return 'loopback';
    case 'linkLocal':
      return 'link-local';
    case 'multicast':
      return 'multicast';
    case 'private':
    case 'uniqueLocal':
      return isIsatap(address) ? 'isatap' : 'private';
    case 'carrierGradeNat':
      return 'shared';
  }
  if (EMBEDDED_V4.some((each) => contains(each, address))) return 'embedded-ipv4';
  // Whatever the library has a name for, or will have one day, is not for traffic.
  if (range !== 'unicast') return 'reserved';
  if (address.family === 4) return 'public';
  if (!contains(GLOBAL_UNICAST_V6, address)) return 'reserved';
  return isIsatap(address) ? 'isatap' : 'public';
}

/** RFC 5214: 00-00-5E-FE before the IPv4 address, with any universal and group bits. */
function isIsatap({ family, value }: Address): boolean {
  return family === 6 && ((value >> 32n) & 0xfcff_ffffn) === 0x5efen;
}

function known(text: string): Cidr {
  const range = parseCidr(text);
  if (typeof range === 'string') throw new Error(`${text}: ${range}`);
  return range;
}
