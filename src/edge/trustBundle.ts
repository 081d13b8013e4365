/** Publishes the authorities' certificates as the ConfigMap `oz0-trust`, from which all parts learn whom to trust. */
import { ApiError } from '../engine/api-error.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { KubeClient } from '../kube/client.ts';

export const TRUST_BUNDLE = 'oz0-trust';
/** Says what is going on with the authority, while something is. */
const NOTE = 'oz0.ai/rotation';
export const CONFIG_MAPS: Resource = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };

/**
 * Writes only where it differs.
 * @param note said beside it, for people; unset: nothing is said
 * @throws ApiError, also for another replica's write at the same time: what is published is then not known
 */
export async function publishTrustBundle(
  client: KubeClient,
  namespace: string,
  bundlePem: string,
  signal: AbortSignal,
  note?: string,
): Promise<'written' | 'unchanged'> {
  const ref = { resource: CONFIG_MAPS, namespace, name: TRUST_BUNDLE };
  const data = { 'ca.crt': bundlePem };
  const annotations = note === undefined ? {} : { [NOTE]: note };
  try {
    const present = await client.get(ref, { signal });
    const { [NOTE]: said, ...others } = present.metadata.annotations ?? {};
    if (bundleOf(present) === bundlePem && said === note) return 'unchanged';
    const metadata = { ...present.metadata, annotations: { ...others, ...annotations } };
    await client.replace(CONFIG_MAPS, { ...present, metadata, data }, { signal });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.code !== 'notFound') throw error;
    const bundle = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: TRUST_BUNDLE, namespace, annotations },
      data,
    };
    try {
      await client.create(CONFIG_MAPS, bundle, { signal });
    } catch (problem) {
      if (!(problem instanceof ApiError) || problem.code !== 'exists') throw problem;
      // Another replica was first, perhaps with another bundle.
      return publishTrustBundle(client, namespace, bundlePem, signal, note);
    }
  }
  return 'written';
}

function bundleOf(object: KubeObject): unknown {
  const { data } = object;
  return typeof data === 'object' && data !== null ? (data as Readonly<Record<string, unknown>>)['ca.crt'] : undefined;
}
