/** Stop: makes nothing; gateways read it. It says what it stops, and whether that is there at all. */
import { type Stop, stop } from '../../api/stop.ts';
import type { Fact, KubeObject, Reconciler, Selection } from '../../engine/contract.ts';
import { holds, stalls } from '../facts.ts';
import type { Operator } from '../operator.ts';
import { parseWith, type Stored } from '../parse.ts';
import { AGENT, PLUGIN, STOP, TOOL } from '../resources.ts';
import { IN_FORCE, NOT_HERE, NOT_THERE } from './reasons.ts';

export type StoredStop = Stored<Stop>;

const NAMED = { tool: TOOL, plugin: PLUGIN, agent: AGENT } as const;

export function stopReconciler(operator: Operator): Reconciler<StoredStop> {
  const named = (target: keyof typeof NAMED) => ({
    resource: NAMED[target],
    select: ({ metadata, spec }: StoredStop): Selection | undefined => {
      const name = spec[target];
      return name === undefined ? undefined : { namespace: metadata.namespace ?? '', name };
    },
  });
  return {
    resource: STOP,
    parse: parseWith(stop.schema),
    owns: [],
    reads: { tool: named('tool'), plugin: named('plugin'), agent: named('agent') },
    sensors: [],
    conditions: ['InForce'],
    reconcile: ({ parent, reads }) => ({
      do: 'converge',
      children: [],
      facts: { conditions: [inForce(parent, operator, reads)] },
    }),
  };
}

function inForce(
  { metadata, spec }: StoredStop,
  operator: Operator,
  reads: Readonly<Record<string, readonly KubeObject[]>>,
): Fact {
  if (spec.cluster && metadata.namespace !== operator.namespace) {
    return stalls('InForce', NOT_HERE, `A Stop of the cluster counts in namespace ${operator.namespace} only.`);
  }
  const target = (['tool', 'plugin', 'agent'] as const).find((name) => spec[name] !== undefined);
  if (target === undefined) {
    return holds('InForce', IN_FORCE, spec.cluster ? 'No call is made in the cluster.' : 'No call is made here.');
  }
  const { kind } = NAMED[target];
  // A stop by a wrong name stops nothing, and whoever made it must not think that it does.
  if (!reads[target]?.length) return stalls('InForce', NOT_THERE, `There is no ${kind} ${spec[target]} here.`);
  return holds('InForce', IN_FORCE, `No call of ${kind} ${spec[target]} is made.`);
}
