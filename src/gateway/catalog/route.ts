/** Which pods take a tool's calls, from pods (of this node) and EndpointSlices. Pure; what cannot be read is no route. */
import { isIP } from 'node:net';
import { LABEL_TOOL, TOOL_RESOURCE_PREFIX } from '../../domain/naming.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { isObject } from '../../mcp/wire/jsonrpc.ts';

/** A pod that takes calls. Its address proves nothing: the pod's certificate names tool and pod uid. */
export interface Route {
  readonly podUid: string;
  readonly address: string;
  readonly node: string;
}

export interface ToolRoutes {
  readonly namespace: string;
  readonly tool: string;
  readonly routes: readonly Route[];
  /** Those and the pods that take no calls now, or will not again: one may still know what became of a call. */
  readonly pods: readonly Route[];
}

/** The route of a tool's pod: none unless it is ready and stays. Undefined for a pod that is no tool's. */
export function routesOfPod(pod: KubeObject): ToolRoutes | undefined {
  const { namespace, labels, uid, deletionTimestamp } = pod.metadata;
  const tool = labels?.[LABEL_TOOL];
  if (namespace === undefined || tool === undefined || uid === undefined) return undefined;
  const status = isObject(pod['status']) ? pod['status'] : {};
  const spec = isObject(pod['spec']) ? pod['spec'] : {};
  const address = status['podIP'];
  const node = spec['nodeName'];
  const ready = objects(status['conditions']).some(
    (condition) => condition['type'] === 'Ready' && condition['status'] === 'True',
  );
  const placed = typeof address === 'string' && typeof node === 'string';
  const pods = placed ? [{ podUid: uid, address, node }] : [];
  return { namespace, tool, routes: ready && deletionTimestamp === undefined ? pods : [], pods };
}

const SERVICE_NAME = 'kubernetes.io/service-name';

/** The routes of a slice of a tool's Service; undefined for a slice of any other. */
export function routesOfSlice(slice: KubeObject): ToolRoutes | undefined {
  const { namespace, labels, deletionTimestamp } = slice.metadata;
  const service = labels?.[SERVICE_NAME];
  if (namespace === undefined || !service?.startsWith(TOOL_RESOURCE_PREFIX)) return undefined;
  const tool = service.slice(TOOL_RESOURCE_PREFIX.length);
  const endpoints = deletionTimestamp === undefined ? objects(slice['endpoints']) : [];
  const placed = endpoints.flatMap((endpoint) => {
    const route = routeOf(endpoint, namespace);
    return route === undefined ? [] : [{ route, usable: isUsable(endpoint) }];
  });
  return {
    namespace,
    tool,
    routes: placed.filter(({ usable }) => usable).map(({ route }) => route),
    pods: placed.map(({ route }) => route),
  };
}

function routeOf(endpoint: Record<string, unknown>, namespace: string): Route | undefined {
  const target = isObject(endpoint['targetRef']) ? endpoint['targetRef'] : {};
  const [address] = Array.isArray(endpoint['addresses']) ? endpoint['addresses'] : [];
  const podUid = target['uid'];
  const node = endpoint['nodeName'];
  if (target['kind'] !== 'Pod' || (target['namespace'] ?? namespace) !== namespace) return undefined;
  // A slice may also hold host names, which nobody here resolves.
  if (typeof podUid !== 'string' || typeof address !== 'string' || isIP(address) === 0) return undefined;
  return { podUid, address, node: typeof node === 'string' ? node : '' };
}

function isUsable(endpoint: Record<string, unknown>): boolean {
  const conditions = isObject(endpoint['conditions']) ? endpoint['conditions'] : {};
  // An unset `ready` is to be read as true (discovery.k8s.io/v1).
  return conditions['ready'] !== false && conditions['terminating'] !== true;
}

function objects(value: unknown): readonly Record<string, unknown>[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}
