/**
 * Whether an address may be dialled for a tool: what it is by itself, what it is in this cluster, and what the admin opened.
 * Pure. Refusals that nothing overrides come first.
 */
import { type AddressClass, classOf } from './address.ts';
import type { AllowNetRule } from './allowNet.ts';
import { type Address, type Cidr, contains, parseAddress } from './cidr.ts';

/** What this cluster makes of an address; these win over what it is by itself. */
export type ClusterClass =
  /** An address of this process's own machine or pod. */
  | 'self'
  /** The admin named it (`never`). */
  | 'never'
  | 'cluster-node'
  | 'cluster-api'
  | 'cluster-service'
  | 'cluster-pod';

export type NetworkClass = AddressClass | ClusterClass;

export interface Networks {
  readonly self: readonly Cidr[];
  readonly never: readonly Cidr[];
  readonly nodes: readonly Cidr[];
  readonly api: readonly Cidr[];
  readonly services: readonly Cidr[];
  readonly pods: readonly Cidr[];
  /** `connect-allow-net`; empty opens nothing. */
  readonly allow: readonly AllowNetRule[];
}

export const NO_NETWORKS: Networks = { self: [], never: [], nodes: [], api: [], services: [], pods: [], allow: [] };

export interface Destination {
  /** Of the tool. */
  readonly namespace: string;
  readonly port: number;
}

export type AddressVerdict =
  /** `address` is the spelling to dial; `opened`: only because of a rule of `connect-allow-net`. */
  | { readonly kind: 'dial'; readonly address: string; readonly class: NetworkClass; readonly opened: boolean }
  | { readonly kind: 'refuse'; readonly class: NetworkClass };

export function judgeAddress(text: string, destination: Destination, networks: Networks): AddressVerdict {
  const address = parseAddress(text);
  if (address === undefined) {
    return { kind: 'refuse', class: text.includes('%') ? 'zoned' : 'not-an-address' };
  }
  const what = inCluster(address, networks) ?? classOf(address);
  switch (what) {
    case 'public':
      return { kind: 'dial', address: address.text, class: what, opened: false };
    case 'private':
    case 'shared':
      return opened(address, destination, networks.allow)
        ? { kind: 'dial', address: address.text, class: what, opened: true }
        : { kind: 'refuse', class: what };
    case 'cluster-pod': {
      // In a pods' range, but metadata or the like all the same.
      const itself = classOf(address);
      if (itself !== 'public' && itself !== 'private' && itself !== 'shared') return { kind: 'refuse', class: itself };
      const narrow = networks.allow.filter((rule) => rule.narrow);
      return opened(address, destination, narrow)
        ? { kind: 'dial', address: address.text, class: what, opened: true }
        : { kind: 'refuse', class: what };
    }
    default:
      return { kind: 'refuse', class: what };
  }
}

function inCluster(address: Address, networks: Networks): ClusterClass | undefined {
  const within = (ranges: readonly Cidr[]) => ranges.some((range) => contains(range, address));
  if (within(networks.self)) return 'self';
  if (within(networks.never)) return 'never';
  if (within(networks.api)) return 'cluster-api';
  if (within(networks.nodes)) return 'cluster-node';
  if (within(networks.services)) return 'cluster-service';
  return within(networks.pods) ? 'cluster-pod' : undefined;
}

function opened(address: Address, { namespace, port }: Destination, rules: readonly AllowNetRule[]): boolean {
  return rules.some(
    ({ cidr, namespaces, ports }) =>
      contains(cidr, address) &&
      (namespaces === undefined || namespaces.includes(namespace)) &&
      (ports === undefined || ports.includes(port)),
  );
}
