/** What the controller must be allowed to do, from what its reconcilers declare: the chart's ClusterRole is compared with this. */
import { type KubeObject, type Reconciler, type Resource, resourceKey } from './contract.ts';

export interface PolicyRule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

export const EVENTS: Resource = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  plural: 'events',
  namespaced: true,
};

export const LEASES: Resource = {
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  plural: 'leases',
  namespaced: true,
};

/** Watched where a reconciler declares it. */
export const NAMESPACES: Resource = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false };

/**
 * A reconciler whatever its parent's type. The engine hands `reconcile`, `select` and `subject` nothing but what this very
 * reconciler's `parse` gave, which is what makes the casts to `never` right.
 */
export type AnyReconciler = Omit<Reconciler<never>, 'parse'> & {
  readonly parse: (
    raw: KubeObject,
  ) => { readonly ok: true; readonly value: KubeObject } | { readonly ok: false; readonly problem: string };
};

/** One rule for each resource, sorted by group and resource, verbs sorted. */
export function rulesFor(reconcilers: readonly AnyReconciler[]): readonly PolicyRule[] {
  const verbs = new Map<string, Set<string>>();
  const allow = (resource: Resource, given: readonly string[], subresource?: string) => {
    const plural = subresource === undefined ? resource.plural : `${resource.plural}/${subresource}`;
    const key = `${groupOf(resource)}|${plural}`;
    const held = verbs.get(key) ?? new Set<string>();
    verbs.set(key, held);
    for (const verb of given) held.add(verb);
  };
  for (const reconciler of reconcilers) {
    allow(reconciler.resource, ['list', 'watch']);
    if (reconciler.conditions.length > 0) allow(reconciler.resource, ['patch'], 'status');
    // An apply that creates asks for both; `get` confirms what a view shows before something is made that relies on it.
    for (const owned of reconciler.owns) allow(owned, ['get', 'list', 'watch', 'create', 'patch', 'delete']);
    for (const read of Object.values(reconciler.reads)) allow(read.resource, ['list', 'watch']);
  }
  if (reconcilers.some((reconciler) => reconciler.conditions.length > 0)) allow(EVENTS, ['create']);
  return [...verbs]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, held]) => {
      const [group = '', plural = ''] = key.split('|');
      return { apiGroups: [group], resources: [plural], verbs: [...held].sort() };
    });
}

/** For a Role in the controller's own namespace: its Lease. */
export function leaderRules(
  leaseName: string,
): readonly (PolicyRule & { readonly resourceNames?: readonly string[] })[] {
  const common = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  return [
    // A name cannot restrict `create`.
    { ...common, verbs: ['create'] },
    { ...common, resourceNames: [leaseName], verbs: ['get', 'update'] },
  ];
}

/** Every kind that the engine watches for these reconcilers, each once. */
export function watchesFor(reconcilers: readonly AnyReconciler[]): readonly Resource[] {
  const all = reconcilers.flatMap((reconciler) => [
    reconciler.resource,
    ...reconciler.owns,
    ...Object.values(reconciler.reads).map((read) => read.resource),
  ]);
  return [...new Map(all.map((resource) => [resourceKey(resource), resource])).values()];
}

function groupOf(resource: Resource): string {
  const [group, version] = resource.apiVersion.split('/');
  return version === undefined ? '' : (group ?? '');
}
