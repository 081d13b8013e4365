/** Whether tool pods ask for a user namespace of their own (`hostUsers: false`). */
import type { KubeObject } from '../engine/contract.ts';
import type { UserNamespaceMode } from './settings.ts';

/**
 * A node whose runtime says that it has none would start no tool pod at all. A node that says nothing is taken to have them: they are
 * a part of every Kubernetes that the operator supports.
 * @param nodes undefined: they could not be looked at
 */
export function decideUserNamespaces(mode: UserNamespaceMode, nodes: readonly KubeObject[] | undefined): boolean {
  if (mode !== 'prefer') return mode === 'require';
  return !(nodes ?? []).some(lacksUserNamespaces);
}

function lacksUserNamespaces(node: KubeObject): boolean {
  const { runtimeHandlers } = (node['status'] ?? {}) as { readonly runtimeHandlers?: unknown };
  if (!Array.isArray(runtimeHandlers)) return false;
  const handlers = runtimeHandlers as readonly { readonly name?: string; readonly features?: object }[];
  // The one without a name is the default.
  const features = handlers.find(({ name }) => (name ?? '') === '')?.features;
  return features !== undefined && 'userNamespaces' in features && features.userNamespaces === false;
}
