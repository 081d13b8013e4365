/** A cluster of a few objects, which keeps what was written. */
import type { KubeObject } from '../../engine/contract.ts';
import type { Cluster } from '../cluster.ts';

export function holding(...objects: readonly KubeObject[]): Cluster & { readonly written: KubeObject[] } {
  const written: KubeObject[] = [];
  const keep = async (_kind: string, object: KubeObject): Promise<KubeObject> => {
    written.push(object);
    return object;
  };
  return {
    namespace: 'acme',
    get: async (kind, name) => {
      const found = objects.find((object) => object.kind === kind && object.metadata.name === name);
      if (found === undefined) throw new Error(`no ${kind} ${name}`);
      return found;
    },
    list: async (kind) => objects.filter((object) => object.kind === kind),
    create: keep,
    replace: keep,
    whoAmI: async () => 'jane',
    close: async () => {},
    written,
  };
}
