/**
 * What is configured, as seen through watches: agents, tools and their routes, each object compiled by itself. Tells its
 * listeners which namespace changed. Knows nothing of how it is filled; whether it is whole is its filler's affair.
 */
import { toolName } from '../../domain/naming.ts';
import { type CompiledPolicy, compilePolicy } from '../../domain/policy/compilePolicy.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { type Access, type CompiledAgent, compileAgent, unionGrants } from './agent.ts';
import { type Route, routesOfPod, routesOfSlice, type ToolRoutes } from './route.ts';
import { type CompiledStop, compileStop, isStopped } from './stop.ts';
import { type CompiledTool, compileTool } from './tool.ts';

export type CatalogKind = 'Agent' | 'Tool' | 'Pod' | 'EndpointSlice' | 'ToolPolicy' | 'ClusterToolPolicy' | 'Stop';

/** Told to listeners instead of a namespace where a change is for all of them. */
export const EVERY_NAMESPACE = '';

export interface Policies {
  readonly namespace: readonly CompiledPolicy[];
  readonly cluster: readonly CompiledPolicy[];
  /** What a namespace puts at the start of texts that people read. */
  readonly aiLabel: string | undefined;
  /** There is such a mark, and it cannot be read: what should carry it must not be sent. */
  readonly aiLabelBroken: boolean;
}

export interface Catalog {
  readonly put: (kind: CatalogKind, object: KubeObject) => void;
  readonly remove: (kind: CatalogKind, object: KubeObject) => void;
  /** What a ServiceAccount may do; undefined where no Agent names it. */
  readonly access: (namespace: string, serviceAccount: string) => Access | undefined;
  /** By id, within a namespace: another's tools do not exist. */
  readonly tool: (namespace: string, id: string) => CompiledTool | undefined;
  readonly tools: () => readonly CompiledTool[];
  /** Pods of this node for a `node` tool, endpoints anywhere for an `any` tool. */
  readonly routes: (tool: CompiledTool) => readonly Route[];
  /** A pod of a tool, also one that takes no calls now; undefined where there is none of that uid any more. */
  readonly locate: (tool: CompiledTool, podUid: string) => Route | undefined;
  /** Those that govern a namespace's calls. The same object as long as they do not change. */
  readonly policies: (namespace: string) => Policies;
  /** The Stop that is for a call of this tool by this account, if any is. */
  readonly stopFor: (namespace: string, serviceAccount: string, toolId: string) => CompiledStop | undefined;
  readonly hasStops: () => boolean;
  /** Called after a change, with the namespace. Returns how to stop. */
  readonly onChange: (listener: (namespace: string) => void) => () => void;
}

export interface CatalogOptions {
  /** The one namespace in which a Stop may mean the whole cluster. */
  readonly operatorNamespace?: string;
  /** Told once for each object and problem; what an object that cannot be read governs is denied. */
  readonly onProblem?: (kind: CatalogKind, namespace: string, name: string, problem: string) => void;
}

export function createCatalog(options: CatalogOptions = {}): Catalog {
  const policies = new Map<string, Map<string, CompiledPolicy>>();
  const policiesKept = new Map<string, Policies>();
  const stops = new Map<string, CompiledStop>();
  const agents = new Map<string, Map<string, CompiledAgent>>();
  const tools = new Map<string, CompiledTool>();
  const pods = new Map<string, ToolRoutes>();
  const slices = new Map<string, ToolRoutes>();
  const listeners = new Set<(namespace: string) => void>();
  const accessKept = new Map<string, Access>();
  const routesKept = new Map<string, readonly Route[]>();

  const collect = (from: ReadonlyMap<string, ToolRoutes>, tool: CompiledTool): readonly Route[] => {
    // By pod: an endpoint may be in two slices while one replaces the other.
    const byPod = new Map<string, Route>();
    for (const entry of from.values()) {
      if (entry.namespace !== tool.namespace || entry.tool !== tool.name) continue;
      for (const route of entry.routes) byPod.set(route.podUid, route);
    }
    return [...byPod.values()].sort((a, b) => (a.podUid < b.podUid ? -1 : 1));
  };

  const told = new Map<string, string>();
  const tell = (kind: CatalogKind, namespace: string, name: string, problem: string | undefined): void => {
    const about = `${kind} ${namespace}/${name}`;
    if (problem === told.get(about)) return;
    replace(told, about, problem);
    if (problem !== undefined) options.onProblem?.(kind, namespace, name, problem);
  };

  const change = (kind: CatalogKind, object: KubeObject, present: boolean): void => {
    const { namespace = '', name } = object.metadata;
    const key = `${namespace}/${name}`;
    let problem: string | undefined;
    switch (kind) {
      case 'Agent': {
        const compiled = present ? compileAgent(object) : undefined;
        const known = agents.get(namespace) ?? new Map<string, CompiledAgent>();
        if (compiled === undefined) known.delete(name);
        else known.set(name, compiled);
        agents.set(namespace, known);
        if (present && compiled === undefined && object.metadata.deletionTimestamp === undefined) {
          problem = 'it cannot be read, so it grants nothing';
        }
        accessKept.clear();
        break;
      }
      case 'Tool':
        replace(tools, key, present ? compileTool(object, tools.get(key)) : undefined);
        problem = problemOfTool(tools.get(key));
        routesKept.delete(key);
        break;
      case 'ToolPolicy':
      case 'ClusterToolPolicy': {
        const ofSide = policies.get(namespace) ?? new Map<string, CompiledPolicy>();
        const compiled = present ? compilePolicy(kind, object) : undefined;
        replace(ofSide, name, compiled);
        problem = problemOfPolicy(compiled);
        policies.set(namespace, ofSide);
        policiesKept.clear();
        break;
      }
      case 'Stop':
        replace(stops, key, present ? compileStop(object, options.operatorNamespace) : undefined);
        problem = stops.get(key)?.problem;
        break;
      default: {
        const kept = kind === 'Pod' ? pods : slices;
        const routes = kind === 'Pod' ? routesOfPod(object) : routesOfSlice(object);
        replace(kept, key, present ? routes : undefined);
        if (routes !== undefined) routesKept.delete(`${routes.namespace}/${routes.tool}`);
      }
    }
    tell(kind, namespace, name, problem);
    const about = kind === 'Stop' && namespace === options.operatorNamespace ? EVERY_NAMESPACE : namespace;
    for (const listener of [...listeners]) listener(about);
  };

  const access: Catalog['access'] = (namespace, serviceAccount) => {
    const key = `${namespace}/${serviceAccount}`;
    const kept = accessKept.get(key);
    if (kept !== undefined) return kept;
    const named = [...(agents.get(namespace)?.values() ?? [])]
      .filter((agent) => agent.serviceAccounts.includes(serviceAccount))
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    // Only who is known is kept, so that callers nobody knows take no memory.
    if (named.length === 0) return undefined;
    const found = { agents: named, grants: unionGrants(named.map((agent) => agent.grants)) };
    accessKept.set(key, found);
    return found;
  };
  const toolOf: Catalog['tool'] = (namespace, id) => {
    const tool = tools.get(`${namespace}/${toolName(id)}`);
    // An id spelt with `-` names no tool.
    return tool?.id === id ? tool : undefined;
  };

  return {
    put: (kind, object) => change(kind, object, true),
    remove: (kind, object) => change(kind, object, false),
    access,
    tool: toolOf,
    policies: (namespace) => {
      let kept = policiesKept.get(namespace);
      if (kept === undefined) {
        const own = [...(policies.get(namespace) ?? new Map<string, CompiledPolicy>()).values()].sort((a, b) =>
          a.name < b.name ? -1 : 1,
        );
        kept = {
          namespace: own,
          cluster: [...(policies.get(EVERY_NAMESPACE)?.values() ?? [])],
          aiLabel: own.find(({ aiLabel }) => aiLabel !== undefined)?.aiLabel,
          aiLabelBroken: own.some(({ aiLabelBroken }) => aiLabelBroken),
        };
        policiesKept.set(namespace, kept);
      }
      return kept;
    },
    stopFor: (namespace, serviceAccount, toolId) => {
      const tool = stops.size === 0 ? undefined : toolOf(namespace, toolId);
      if (tool === undefined) return undefined;
      const named = access(namespace, serviceAccount)?.agents ?? [];
      for (const stop of stops.values()) if (isStopped(stop, tool, named)) return stop;
      return undefined;
    },
    hasStops: () => stops.size > 0,
    tools: () => [...tools.values()],
    routes: (tool) => {
      const key = `${tool.namespace}/${tool.name}`;
      let routes = routesKept.get(key);
      if (routes === undefined) {
        routes = collect(tool.affinity === 'node' ? pods : slices, tool);
        routesKept.set(key, routes);
      }
      return routes;
    },
    locate: (tool, podUid) => {
      for (const entry of (tool.affinity === 'node' ? pods : slices).values()) {
        if (entry.namespace !== tool.namespace || entry.tool !== tool.name) continue;
        const found = entry.pods.find((pod) => pod.podUid === podUid);
        if (found !== undefined) return found;
      }
      return undefined;
    },
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

function problemOfTool(tool: CompiledTool | undefined): string | undefined {
  if (tool === undefined || tool.broken !== undefined) return tool?.broken;
  const held = [...tool.overrides.byName].flatMap(([name, { problem }]) =>
    problem === undefined ? [] : [`functions.${name}.${problem}`],
  );
  return held.length === 0 ? undefined : held.join('; ').slice(0, MAX_PROBLEM_CHARS);
}

function problemOfPolicy(policy: CompiledPolicy | undefined): string | undefined {
  if (policy === undefined || policy.problems.length === 0) return policy?.broken;
  return policy.problems
    .map(({ field, message }) => `${field}: ${message}`)
    .join('; ')
    .slice(0, MAX_PROBLEM_CHARS);
}

const MAX_PROBLEM_CHARS = 1_000;

function replace<T>(map: Map<string, T>, key: string, value: T | undefined): void {
  if (value === undefined) map.delete(key);
  else map.set(key, value);
}
