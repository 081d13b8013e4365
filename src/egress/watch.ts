/** Fills egress' catalog from the API server: Tools of all namespaces, and what tells which addresses are the cluster's own. */
import { API_GROUP_VERSION } from '../domain/naming.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { Log } from '../engine/log.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Reflector, startReflector } from '../kube/reflector.ts';
import type { EgressCatalog, EgressKind } from './catalog.ts';

export interface Watching {
  /** Whether every set was seen whole: absence means nothing before. */
  readonly synced: () => boolean;
  readonly ended: Promise<void>;
}

export interface WatchOptions {
  readonly client: KubeClient;
  readonly catalog: EgressCatalog;
  /** Ranges of Services are known by a setting, so that no ServiceCIDR is asked for. */
  readonly servicesKnown: boolean;
  readonly signal: AbortSignal;
  readonly log: Log;
}

const TOOL: Resource = { apiVersion: API_GROUP_VERSION, kind: 'Tool', plural: 'tools', namespaced: true };
const NODE: Resource = { apiVersion: 'v1', kind: 'Node', plural: 'nodes', namespaced: false };
const SLICE: Resource = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
};
const SERVICE_CIDR: Resource = {
  apiVersion: 'networking.k8s.io/v1',
  kind: 'ServiceCIDR',
  plural: 'servicecidrs',
  namespaced: false,
};

export function watchEgress(options: WatchOptions): Watching {
  const { client, signal, log } = options;
  const follow = (
    kind: EgressKind,
    resource: Resource,
    more: { namespace?: string; labelSelector?: string; slim?: (object: KubeObject) => KubeObject } = {},
  ): Reflector =>
    startReflector({
      client,
      resource,
      ...more,
      signal,
      log,
      onChange: (change) => {
        if (change.type === 'deleted') options.catalog.remove(kind, change.object);
        else options.catalog.put(kind, change.object);
      },
    });
  const reflectors = [
    follow('Tool', TOOL, { slim: slimTool }),
    follow('Node', NODE, { slim: slimNode }),
    follow('EndpointSlice', SLICE, { namespace: 'default', labelSelector: 'kubernetes.io/service-name=kubernetes' }),
    ...(options.servicesKnown ? [] : [follow('ServiceCIDR', SERVICE_CIDR)]),
  ];
  return {
    synced: () => reflectors.every((reflector) => reflector.store.synced()),
    ended: Promise.all(reflectors.map((reflector) => reflector.ended)).then(() => {}),
  };
}

/** Where it may go is all that counts; an unreadable spec is kept as it is, to be found unreadable. */
function slimTool(tool: KubeObject): KubeObject {
  const { spec } = tool as { spec?: unknown };
  if (typeof spec !== 'object' || spec === null || Array.isArray(spec)) return bare(tool, { spec });
  const counts = ['hosts', 'url', 'usesModel'].filter((name) => Object.hasOwn(spec, name));
  const said = spec as Readonly<Record<string, unknown>>;
  return bare(tool, { spec: Object.fromEntries(counts.map((name) => [name, said[name]])) });
}

/** Images and conditions are most of a node. */
function slimNode(node: KubeObject): KubeObject {
  const { spec, status } = node as {
    spec?: { podCIDR?: unknown; podCIDRs?: unknown };
    status?: { addresses?: unknown };
  };
  return bare(node, {
    spec: { podCIDR: spec?.podCIDR, podCIDRs: spec?.podCIDRs },
    status: { addresses: status?.addresses },
  });
}

function bare({ apiVersion, kind, metadata }: KubeObject, rest: object): KubeObject {
  const { name, namespace, uid, resourceVersion } = metadata;
  return {
    apiVersion,
    kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
    },
    ...rest,
  };
}
