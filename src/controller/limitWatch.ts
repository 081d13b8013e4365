/** Watches no more than the controller may: of ConfigMaps the two that are the operator's, by name. */
import { TRUST_CONFIG_MAP } from '../domain/naming.ts';
import { resourceKey } from '../engine/contract.ts';
import type { WatchDoor } from '../engine/door.ts';
import { CONFIG_MAP } from '../reconcilers/resources.ts';
import { PUBLISHED_TRUST } from '../reconcilers/trust/reconcile.ts';

/**
 * For ConfigMaps two watches that look like one: `oz0` of every namespace, and what edge publishes in the operator's. Its version is
 * that of the first, the only ones that the controller writes.
 */
export function limitConfigMaps(watch: WatchDoor, operatorNamespace: string): WatchDoor {
  return (request) => {
    if (resourceKey(request.resource) !== resourceKey(CONFIG_MAP)) return watch(request);
    let unsynced = 2;
    const onSynced = () => {
      unsynced -= 1;
      if (unsynced === 0) request.onSynced();
    };
    const tenants = watch({ ...request, fieldSelector: `metadata.name=${TRUST_CONFIG_MAP}`, onSynced });
    const published = watch({
      ...request,
      namespace: operatorNamespace,
      fieldSelector: `metadata.name=${PUBLISHED_TRUST}`,
      onSynced,
    });
    return {
      get: (name, namespace) => tenants.get(name, namespace) ?? published.get(name, namespace),
      list: (namespace) => [...tenants.list(namespace), ...published.list(namespace)],
      synced: () => tenants.synced() && published.synced(),
      version: tenants.version,
    };
  };
}
