/**
 * What egress knows of the cluster, as seen through watches: the hosts of each Tool, and the addresses that are the cluster's own.
 * Each object is compiled by itself. Knows nothing of how it is filled.
 */
import { type Cidr, parseAddress, parseCidr, single } from '../domain/egress/cidr.ts';
import type { EgressPolicy, ToolIdentity } from '../domain/egress/decideConnect.ts';
import type { Networks } from '../domain/egress/judgeAddress.ts';
import type { KubeObject } from '../engine/contract.ts';
import { compileToolHosts, type ToolHosts } from './toolHosts.ts';

export type EgressKind = 'Tool' | 'Node' | 'EndpointSlice' | 'ServiceCIDR';

export interface EgressCatalog {
  readonly put: (kind: EgressKind, object: KubeObject) => void;
  readonly remove: (kind: EgressKind, object: KubeObject) => void;
  readonly policy: EgressPolicy;
  readonly problems: (tool: ToolIdentity) => readonly string[];
  readonly networks: () => Networks;
  /** Why nothing may be decided yet: a set was not seen whole, or what every cluster has was not there. [I1] */
  readonly notReady: () => string | undefined;
  /** Called after a change of what is decided. Returns how to stop. */
  readonly onChange: (listener: () => void) => () => void;
}

/** Ranges that are known beforehand; what is learned comes to them. */
export interface CatalogOptions {
  readonly fixed: Networks;
  /** Whether every set was seen whole. */
  readonly synced: () => boolean;
}

export function createEgressCatalog({ fixed, synced }: CatalogOptions): EgressCatalog {
  const tools = new Map<string, ToolHosts>();
  const nodes = new Map<string, { addresses: readonly Cidr[]; pods: readonly Cidr[] }>();
  const api = new Map<string, readonly Cidr[]>();
  const services = new Map<string, readonly Cidr[]>();
  const listeners = new Set<() => void>();
  let networks: Networks | undefined;

  const change = (kind: EgressKind, object: KubeObject, present: boolean): void => {
    const key = `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
    switch (kind) {
      case 'Tool':
        replace(tools, key, present ? compileToolHosts(object) : undefined);
        break;
      case 'Node':
        replace(
          nodes,
          key,
          present ? { addresses: addressesOfNode(object), pods: podRangesOfNode(object) } : undefined,
        );
        break;
      case 'EndpointSlice':
        replace(api, key, present ? addressesOfSlice(object) : undefined);
        break;
      case 'ServiceCIDR':
        replace(services, key, present ? rangesOfServiceCidr(object) : undefined);
    }
    networks = undefined;
    for (const listener of [...listeners]) listener();
  };

  const all = (): Networks => {
    networks ??= {
      self: fixed.self,
      never: fixed.never,
      allow: fixed.allow,
      nodes: [...fixed.nodes, ...[...nodes.values()].flatMap(({ addresses }) => addresses)],
      pods: [...fixed.pods, ...[...nodes.values()].flatMap(({ pods }) => pods)],
      api: [...fixed.api, ...[...api.values()].flat()],
      services: [...fixed.services, ...[...services.values()].flat()],
    };
    return networks;
  };

  const notReady = (): string | undefined => {
    if (!synced()) return 'the cluster’s objects are not all seen yet';
    const { nodes: own, api: endpoints, services: ranges } = all();
    if (own.length === 0) return 'no address of a node is known';
    if (endpoints.length === 0) return 'no address of the API server is known';
    if (ranges.length === 0) return 'no range of Services is known: no ServiceCIDR is there; set egress.serviceCIDRs';
    return undefined;
  };

  const hostsOf = ({ namespace, tool }: ToolIdentity) => tools.get(`${namespace}/${tool}`);
  return {
    put: (kind, object) => change(kind, object, true),
    remove: (kind, object) => change(kind, object, false),
    policy: {
      hosts: (tool) => hostsOf(tool)?.patterns ?? [],
      held(tool) {
        if (notReady() !== undefined) return 'not-ready';
        const hosts = hostsOf(tool);
        if (hosts === undefined) return 'no-such-tool';
        return hosts.broken ? 'tool-broken' : undefined;
      },
      usesModel: (tool) => hostsOf(tool)?.usesModel ?? false,
    },
    problems: (tool) => hostsOf(tool)?.problems ?? [],
    networks: all,
    notReady,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function addressesOfNode(node: KubeObject): readonly Cidr[] {
  const { addresses } = fieldsOf(node['status']);
  // Host names are among them, and are no addresses.
  return itemsOf(addresses).flatMap((entry) => addressRange(fieldsOf(entry)['address']));
}

function podRangesOfNode(node: KubeObject): readonly Cidr[] {
  const { podCIDRs, podCIDR } = fieldsOf(node['spec']);
  return [...itemsOf(podCIDRs), podCIDR].flatMap(range);
}

function addressesOfSlice(slice: KubeObject): readonly Cidr[] {
  return itemsOf(slice['endpoints']).flatMap((endpoint) =>
    itemsOf(fieldsOf(endpoint)['addresses']).flatMap(addressRange),
  );
}

function rangesOfServiceCidr(object: KubeObject): readonly Cidr[] {
  return itemsOf(fieldsOf(object['spec'])['cidrs']).flatMap(range);
}

function addressRange(value: unknown): readonly Cidr[] {
  const address = typeof value === 'string' ? parseAddress(value) : undefined;
  return address === undefined ? [] : [single(address)];
}

function range(value: unknown): readonly Cidr[] {
  const read = typeof value === 'string' ? parseCidr(value) : 'not-a-cidr';
  return typeof read === 'string' ? [] : [read];
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function replace<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
