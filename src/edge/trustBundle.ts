/** Publishes the authority's certificate as the ConfigMap `oz0-trust`, from which all parts learn whom to trust. */
import { ApiError } from '../engine/api-error.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { KubeClient } from '../kube/client.ts';

export const TRUST_BUNDLE = 'oz0-trust';
export const CONFIG_MAPS: Resource = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };

/** Writes only where it differs. @throws ApiError; another replica's write at the same time is none */
export async function publishTrustBundle(
  client: KubeClient,
  namespace: string,
  certificatePem: string,
  signal: AbortSignal,
): Promise<'written' | 'unchanged'> {
  const ref = { resource: CONFIG_MAPS, namespace, name: TRUST_BUNDLE };
  const data = { 'ca.crt': certificatePem };
  try {
    const present = await client.get(ref, { signal });
    if (bundleOf(present) === certificatePem) return 'unchanged';
    await client.replace(CONFIG_MAPS, { ...present, data }, { signal });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // Another replica writes the same: the next round sees it.
    if (error.code === 'conflict') return 'unchanged';
    if (error.code !== 'notFound') throw error;
    const bundle = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: TRUST_BUNDLE, namespace }, data };
    await client.create(CONFIG_MAPS, bundle, { signal }).catch((problem) => {
      if (!(problem instanceof ApiError) || problem.code !== 'exists') throw problem;
    });
  }
  return 'written';
}

function bundleOf(object: KubeObject): unknown {
  const { data } = object;
  return typeof data === 'object' && data !== null ? (data as Readonly<Record<string, unknown>>)['ca.crt'] : undefined;
}
