/**
 * Namespace: keeps the ConfigMap `oz0` (whom to trust, and where the way out is) wherever there is a Tool or an Agent. It writes no
 * status: namespaces are not ours, and what is missing shows in the Tools that wait for it.
 */
import { TRUST_CONFIG_MAP } from '../../domain/naming.ts';
import type { KubeObject, Outcome, Read, Reconciler } from '../../engine/contract.ts';
import { recordsAt, textAt } from '../live.ts';
import { MANAGED_BY, type Operator } from '../operator.ts';
import { AGENT, CONFIG_MAP, NAMESPACE, SERVICE, TOOL } from '../resources.ts';

/** ConfigMap of the operator's namespace in which edge publishes the CA bundle. */
export const PUBLISHED_TRUST = 'oz0-trust';
/** ConfigMap of the operator's namespace with further CAs that sidecars trust for upstream hosts, where the admin gives some. */
export const UPSTREAM_CA = 'oz0-upstream-ca';

export function trustReconciler(operator: Operator): Reconciler {
  const named = (resource: Read<KubeObject>['resource'], namespace: string, name: string): Read<KubeObject> => ({
    resource,
    select: () => ({ namespace, name }),
  });
  return {
    resource: NAMESPACE,
    parse: (raw) => ({ ok: true, value: raw }),
    owns: [CONFIG_MAP],
    reads: {
      tools: { resource: TOOL, select: ({ metadata }) => ({ namespace: metadata.name }) },
      agents: { resource: AGENT, select: ({ metadata }) => ({ namespace: metadata.name }) },
      published: named(CONFIG_MAP, operator.namespace, PUBLISHED_TRUST),
      upstream: named(CONFIG_MAP, operator.namespace, UPSTREAM_CA),
      egress: named(SERVICE, operator.namespace, 'oz0-egress'),
      edge: named(SERVICE, operator.namespace, 'oz0-edge'),
      apiServer: named(SERVICE, 'default', 'kubernetes'),
    },
    sensors: [],
    conditions: [],
    reconcile: ({ parent, reads }) => {
      const read = (name: string) => reads[name]?.[0];
      if (!reads['tools']?.length && !reads['agents']?.length) return outcome([]);
      const authority = textAt(read('published'), 'data', 'ca.crt');
      const [egress, edge, apiServer] = [read('egress'), read('edge'), read('apiServer')].map(addressOf);
      if (!authority || !egress || !edge || !apiServer) return { do: 'hold', facts: { conditions: [] } };
      const upstream = textAt(read('upstream'), 'data', 'ca.crt');
      const data = {
        'ca.crt': authority,
        egress,
        'egress-name': `oz0-egress.${operator.namespace}.svc`,
        'sandbox.json': JSON.stringify({ closed: [apiServer, edge], open: egress }),
        'trust-domain': operator.trustDomain,
        ...(upstream ? { 'upstream-ca.crt': upstream } : {}),
      };
      const metadata = { name: TRUST_CONFIG_MAP, namespace: parent.metadata.name, labels: { ...MANAGED_BY } };
      return outcome([{ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }]);
    },
  };
}

function outcome(children: readonly KubeObject[]): Outcome {
  return { do: 'converge', children, facts: { conditions: [] } };
}

/** A Service's own address and its port of TLS; undefined while it has none. */
function addressOf(service: KubeObject | undefined): string | undefined {
  const address = textAt(service, 'spec', 'clusterIP');
  if (address === undefined || address === '' || address === 'None') return undefined;
  const ports = recordsAt(service, 'spec', 'ports').map(({ port }) => port);
  const port = ports.includes(443) ? 443 : ports[0];
  if (typeof port !== 'number') return undefined;
  return address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`;
}
