/** Tool: from its spec to a sandboxed workload, and from what pods and sidecars say to its conditions. */
import { affinityOf } from '../../api/tool.ts';
import { LABEL_TOOL, TRUST_CONFIG_MAP, toolId, toolResourceName } from '../../domain/naming.ts';
import type { Fact, Observed, Outcome, Reconciler } from '../../engine/contract.ts';
import { pending } from '../facts.ts';
import { at, conditionOf, textAt } from '../live.ts';
import type { Operator } from '../operator.ts';
import { CONFIG_MAP, NETWORK_POLICY, PLUGIN, POD, TOOL } from '../resources.ts';
import { TOOL_OWNS, toolChildren } from './children.ts';
import { installed, rolloutOf } from './installed.ts';
import { listed, listingStatus } from './listed.ts';
import { toolLabels } from './pod.ts';
import { NOT_ACCEPTED } from './reasons.ts';
import { sandboxed } from './sandboxed.ts';
import { type AskSidecar, answerOf, currentPods, LISTING, TROUBLE, toolSensors, workloadOf } from './sensors.ts';
import { acceptTool } from './source.ts';
import { parseTool, type StoredTool } from './tool.ts';
import { wideningPolicies } from './widening.ts';

const CONDITIONS = ['Accepted', 'Installed', 'Sandboxed', 'Listed'] as const;

export function toolReconciler(operator: Operator, ask: AskSidecar): Reconciler<StoredTool> {
  const sensors = toolSensors(ask);
  return {
    resource: TOOL,
    parse: parseTool,
    owns: TOOL_OWNS,
    reads: {
      plugin: {
        resource: PLUGIN,
        select: ({ metadata, spec }) =>
          spec.plugin === undefined ? undefined : { ...namespaceOf(metadata), name: spec.plugin },
      },
      pods: {
        resource: POD,
        select: ({ metadata }) => ({ ...namespaceOf(metadata), labels: { [LABEL_TOOL]: metadata.name } }),
      },
      policies: { resource: NETWORK_POLICY, select: ({ metadata }) => namespaceOf(metadata) },
      trust: { resource: CONFIG_MAP, select: ({ metadata }) => ({ ...namespaceOf(metadata), name: TRUST_CONFIG_MAP }) },
    },
    sensors,
    conditions: CONDITIONS,
    reconcile: (observed) => {
      const acceptance = acceptTool(observed.parent, observed.reads['plugin'] ?? []);
      // What ran before goes on: the mistake may be a moment's, and stopping the tool mends nothing.
      if (!acceptance.ok) return { do: 'hold', facts: refused(observed, acceptance.fact) };
      return {
        do: 'converge',
        children: toolChildren(observed.parent, acceptance.source, operator),
        facts: {
          conditions: [acceptance.fact, ...judged(observed, sensors)],
          status: { ...whatItIs(observed), ...listingOf(observed, sensors) },
        },
      };
    },
  };
}

type Sensors = ReturnType<typeof toolSensors>;

function namespaceOf({ namespace = '' }: { readonly namespace?: string }) {
  return { namespace };
}

function refused(observed: Observed<StoredTool>, accepted: Fact): Outcome['facts'] {
  const others = CONDITIONS.filter((type) => type !== accepted.type);
  return {
    conditions: [
      accepted,
      ...others.map((type) => pending(type, NOT_ACCEPTED, 'Not judged, since the Tool was not accepted.')),
    ],
    status: whatItIs(observed),
  };
}

function answers(observed: Observed<StoredTool>, sensors: Sensors) {
  const of = (name: string) => {
    const sensor = sensors.find((candidate) => candidate.name === name);
    return sensor ? answerOf(observed, sensor) : ({ state: 'none' } as const);
  };
  return { listing: of(LISTING), trouble: of(TROUBLE) };
}

function judged(observed: Observed<StoredTool>, sensors: Sensors): readonly Fact[] {
  const { parent, reads } = observed;
  const pods = currentPods(observed);
  const { listing, trouble } = answers(observed, sensors);
  const own = toolResourceName(parent.metadata.name);
  const widening = wideningPolicies(reads['policies'] ?? [], own, toolLabels(parent));
  return [
    installed({ workload: workloadOf(observed), pods, trouble, trust: reads['trust']?.[0] }),
    sandboxed([listing, trouble], widening),
    listed(pods, listing),
  ].map((fact) => (stillHolds(observed, fact, sensors) ? formerVerdict(observed, fact) : fact));
}

/**
 * A new leader has asked nobody yet. What the last one saw of this very generation stands until a pod was asked, or every Tool would
 * be unready for a moment at each change of leader.
 */
function stillHolds(observed: Observed<StoredTool>, fact: Fact, sensors: Sensors): boolean {
  if (fact.status !== 'Unknown' || fact.type === 'Installed') return false;
  if (answers(observed, sensors).listing.state !== 'none' || !currentPods(observed).some(({ ready }) => ready))
    return false;
  const former = conditionOf(observed.parent, fact.type);
  return former?.['status'] === 'True' && former['observedGeneration'] === observed.parent.metadata.generation;
}

function formerVerdict(observed: Observed<StoredTool>, fact: Fact): Fact {
  const former = conditionOf(observed.parent, fact.type);
  return {
    type: fact.type,
    status: 'True',
    reason: textAt(former, 'reason') ?? fact.reason,
    message: textAt(former, 'message') ?? '',
  };
}

function listingOf(observed: Observed<StoredTool>, sensors: Sensors): Record<string, unknown> {
  const fact = listed(currentPods(observed), answers(observed, sensors).listing);
  const listing = stillHolds(observed, fact, sensors)
    ? at(observed.parent, 'status', 'listing')
    : fact.status === 'True'
      ? listingStatus(answers(observed, sensors).listing)
      : undefined;
  return listing === undefined ? {} : { listing };
}

function whatItIs(observed: Observed<StoredTool>): Record<string, unknown> {
  const { metadata, spec } = observed.parent;
  const workload = workloadOf(observed);
  const rollout = workload && rolloutOf(workload);
  return {
    id: toolId(metadata.name),
    source: (['image', 'mcp', 'package', 'url'] as const).find((source) => spec[source] !== undefined) ?? 'image',
    affinity: affinityOf(spec),
    ...(rollout ? { pods: { ready: rollout.ready, desired: rollout.desired } } : {}),
  };
}
