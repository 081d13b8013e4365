/**
 * Fills the catalog from the API server: agents, tools, policies and stops of all namespaces, this node's tool pods, tools'
 * endpoints.
 */
import { API_GROUP_VERSION, LABEL_TOOL } from '../domain/naming.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { Log } from '../engine/log.ts';
import type { KubeClient } from '../kube/client.ts';
import { type Reflector, startReflector } from '../kube/reflector.ts';
import type { Catalog, CatalogKind } from './catalog/catalog.ts';

export interface Watching {
  /** Whether every set was seen whole: absence means nothing before. */
  readonly synced: () => boolean;
  /**
   * Asks for the Stops there are, beside the watch: one that broke without a sign would hide them for a minute and more.
   * Resolves once it was answered.
   */
  readonly askForStops: (signal: AbortSignal) => Promise<void>;
  readonly ended: Promise<void>;
}

export interface WatchOptions {
  readonly client: KubeClient;
  readonly catalog: Catalog;
  readonly ownNode: string;
  readonly signal: AbortSignal;
  readonly log: Log;
}

const POD: Resource = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
const AGENT: Resource = { apiVersion: API_GROUP_VERSION, kind: 'Agent', plural: 'agents', namespaced: true };
const TOOL: Resource = { apiVersion: API_GROUP_VERSION, kind: 'Tool', plural: 'tools', namespaced: true };
const TOOL_POLICY: Resource = {
  apiVersion: API_GROUP_VERSION,
  kind: 'ToolPolicy',
  plural: 'toolpolicies',
  namespaced: true,
};
const CLUSTER_TOOL_POLICY: Resource = {
  apiVersion: API_GROUP_VERSION,
  kind: 'ClusterToolPolicy',
  plural: 'clustertoolpolicies',
  namespaced: false,
};
const STOP: Resource = { apiVersion: API_GROUP_VERSION, kind: 'Stop', plural: 'stops', namespaced: true };
/** There are few; whoever made more is told of the rest by the watch. */
const STOPS_PAGE = 500;
const SLICE: Resource = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
};

export function watchCatalog(options: WatchOptions): Watching {
  const { client, catalog, ownNode, signal, log } = options;
  const follow = (
    kind: CatalogKind,
    resource: Resource,
    select: { labelSelector?: string; fieldSelector?: string } = {},
  ): Reflector =>
    startReflector({
      client,
      resource,
      ...select,
      signal,
      log,
      onChange: (change) => {
        if (change.type === 'deleted') catalog.remove(kind, change.object);
        else catalog.put(kind, change.object);
      },
      ...(kind === 'Pod' ? { slim: slimPod } : {}),
    });
  const stops = follow('Stop', STOP);
  const reflectors = [
    stops,
    follow('ClusterToolPolicy', CLUSTER_TOOL_POLICY),
    follow('ToolPolicy', TOOL_POLICY),
    follow('Agent', AGENT),
    follow('Tool', TOOL),
    follow('Pod', POD, { labelSelector: LABEL_TOOL, fieldSelector: `spec.nodeName=${ownNode}` }),
    // Slices carry the labels of their Service, which only the controller may set so.
    follow('EndpointSlice', SLICE, { labelSelector: LABEL_TOOL }),
  ];
  /** Those that the watch did not tell of. */
  const unwatched = new Map<string, KubeObject>();
  const askForStops = async (asked: AbortSignal): Promise<void> => {
    const page = await client.listPage({ resource: STOP }, { limit: STOPS_PAGE }, { signal: asked });
    const seen = new Map(page.items.map((stop) => [`${stop.metadata.namespace}/${stop.metadata.name}`, stop]));
    for (const [key, stop] of unwatched) {
      if (seen.has(key)) continue;
      unwatched.delete(key);
      catalog.remove('Stop', stop);
    }
    for (const [key, stop] of seen) {
      const { name, namespace, uid } = stop.metadata;
      if (stops.store.get(name, namespace)?.metadata.uid === uid) unwatched.delete(key);
      else if (unwatched.get(key)?.metadata.uid !== uid) {
        unwatched.set(key, stop);
        catalog.put('Stop', stop);
      }
    }
  };
  return {
    askForStops,
    synced: () => reflectors.every((reflector) => reflector.store.synced()),
    ended: Promise.all(reflectors.map((reflector) => reflector.ended)).then(() => {}),
  };
}

/** A pod's route needs its address, node and readiness; the rest of it is most of its size. */
function slimPod(pod: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, labels, deletionTimestamp } = pod.metadata;
  const spec = pod['spec'] as { nodeName?: unknown } | undefined;
  const status = pod['status'] as { podIP?: unknown; conditions?: unknown } | undefined;
  return {
    apiVersion: pod.apiVersion,
    kind: pod.kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(uid === undefined ? {} : { uid }),
      ...(resourceVersion === undefined ? {} : { resourceVersion }),
      ...(labels === undefined ? {} : { labels }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec: { nodeName: spec?.nodeName },
    status: { podIP: status?.podIP, conditions: status?.conditions },
  };
}
