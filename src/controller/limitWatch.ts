/** Watches no more than the controller may: of ConfigMaps those that are the operator's, by name. */
import { TRUST_CONFIG_MAP } from '../domain/naming.ts';
import { resourceKey } from '../engine/contract.ts';
import type { WatchDoor } from '../engine/door.ts';
import { CONFIG_MAP } from '../reconcilers/resources.ts';
import { PUBLISHED_TRUST, UPSTREAM_CA } from '../reconcilers/trust/reconcile.ts';

/**
 * For ConfigMaps three watches that look like one: `oz0` of every namespace, and in the operator's what edge publishes and the admin's
 * own CAs. Its version is that of the first, the only ones that the controller writes.
 */
export function limitConfigMaps(watch: WatchDoor, operatorNamespace: string): WatchDoor {
  return (request) => {
    if (resourceKey(request.resource) !== resourceKey(CONFIG_MAP)) return watch(request);
    const own = [PUBLISHED_TRUST, UPSTREAM_CA];
    let unsynced = 1 + own.length;
    const onSynced = () => {
      unsynced -= 1;
      if (unsynced === 0) request.onSynced();
    };
    const tenants = watch({ ...request, fieldSelector: `metadata.name=${TRUST_CONFIG_MAP}`, onSynced });
    const ours = own.map((name) =>
      watch({ ...request, namespace: operatorNamespace, fieldSelector: `metadata.name=${name}`, onSynced }),
    );
    const all = [tenants, ...ours];
    return {
      get: (name, namespace) => all.map((view) => view.get(name, namespace)).find((object) => object !== undefined),
      list: (namespace) => all.flatMap((view) => view.list(namespace)),
      synced: () => all.every((view) => view.synced()),
      version: tenants.version,
    };
  };
}
