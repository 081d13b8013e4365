/** Tool: from its spec to a sandboxed workload, and from what pods and sidecars say to its conditions. */
import { affinityOf, PROBLEMS_MAX } from '../../api/tool.ts';
import { LABEL_TOOL, TRUST_CONFIG_MAP, toolId, toolResourceName } from '../../domain/naming.ts';
import { differenceByName } from '../../domain/snapshot/difference.ts';
import type { Fact, KubeObject, Observed, Outcome, Reconciler } from '../../engine/contract.ts';
import { pending } from '../facts.ts';
import { at, conditionOf, textAt } from '../live.ts';
import type { Operator } from '../operator.ts';
import { CONFIG_MAP, CONNECTION, NETWORK_POLICY, PLUGIN, POD, TOOL } from '../resources.ts';
import { TOOL_OWNS, toolChildren } from './children.ts';
import { connected, secretStatus } from './connected.ts';
import { type Credentials, secretTroubles } from './credentials.ts';
import { decideSnapshot, type SnapshotDecision } from './decideSnapshot.ts';
import { installed, rolloutOf } from './installed.ts';
import { listed, listingStatus } from './listed.ts';
import { TEMPLATE_ANNOTATION, toolLabels } from './pod.ts';
import { CONNECTING, NOT_ACCEPTED } from './reasons.ts';
import { runsOf } from './runs.ts';
import { sandboxed } from './sandboxed.ts';
import {
  type AskSidecar,
  answerOf,
  currentPods,
  currentTemplate,
  LISTING,
  TROUBLE,
  toolSensors,
  workloadOf,
} from './sensors.ts';
import { hashesOf, readPending, readReplaced, readSnapshot, SNAPSHOT_RECORDS } from './snapshot.ts';
import { acceptTool } from './source.ts';
import { parseTool, type StoredTool } from './tool.ts';
import { wideningPolicies } from './widening.ts';

const TEMPLATE_PATH = ['spec', 'template', 'metadata', 'annotations', TEMPLATE_ANNOTATION];
const CONDITIONS = ['Accepted', 'Connected', 'Installed', 'Sandboxed', 'Listed', 'SnapshotCurrent'] as const;

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
      connections: { resource: CONNECTION, select: ({ metadata }) => namespaceOf(metadata) },
      policies: { resource: NETWORK_POLICY, select: ({ metadata }) => namespaceOf(metadata) },
      trust: { resource: CONFIG_MAP, select: ({ metadata }) => ({ ...namespaceOf(metadata), name: TRUST_CONFIG_MAP }) },
    },
    sensors,
    conditions: CONDITIONS,
    records: SNAPSHOT_RECORDS,
    reconcile: (observed) => {
      const { parent, reads } = observed;
      const acceptance = acceptTool(parent, reads['plugin'] ?? [], reads['connections'] ?? []);
      // What ran before goes on: the mistake may be a moment's, and stopping the tool mends nothing.
      if (!acceptance.ok) return { do: 'hold', facts: refused(observed, acceptance.fact) };
      const { source, credentials, fact } = acceptance;
      const children = toolChildren(parent, source, credentials, operator);
      const seen = { observed, sensors, credentials, current: runsAs(observed, children) };
      const { fact: snapshotFact, ...snapshot } = snapshotOf(seen, runsOf(parent, source, credentials));
      return {
        do: 'converge',
        children,
        facts: {
          conditions: [fact, ...judged(seen, snapshotFact)],
          status: { ...whatItIs(observed), ...listingOf(observed, sensors), ...snapshot, ...credentialsStatus(seen) },
        },
      };
    },
  };
}

interface Seen {
  readonly observed: Observed<StoredTool>;
  readonly sensors: Sensors;
  readonly credentials: Credentials;
  /** The workload that is there has the template that should be. */
  readonly current: boolean;
}

function runsAs(observed: Observed<StoredTool>, children: readonly KubeObject[]): boolean {
  const template = children.flatMap((child) => textAt(child, ...TEMPLATE_PATH) ?? [])[0];
  return template !== undefined && template === currentTemplate(observed);
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
    status: { ...whatItIs(observed), ...records(observed) },
  };
}

/** Of the snapshot, as it is stored. */
function records({ parent }: Observed<StoredTool>): Record<string, unknown> {
  const known = { snapshot: readSnapshot(parent), pending: readPending(parent), replaced: readReplaced(parent) };
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
}

function snapshotOf({ observed, sensors, current }: Seen, runs: string): SnapshotDecision {
  const { parent } = observed;
  const { listing } = answers(observed, sensors);
  const said = current && listing.state === 'ok' ? listing.value.listing : undefined;
  return decideSnapshot({
    namespace: parent.metadata.namespace ?? '',
    tool: parent.metadata.name,
    snapshot: readSnapshot(parent),
    pending: readPending(parent),
    runs,
    listed: said && (hashesOf(said) ?? 'empty'),
    approvalOf: () => undefined,
    differenceOf: differenceByName,
  });
}

function answers(observed: Observed<StoredTool>, sensors: Sensors) {
  const of = (name: string) => {
    const sensor = sensors.find((candidate) => candidate.name === name);
    return sensor ? answerOf(observed, sensor) : ({ state: 'none' } as const);
  };
  return { listing: of(LISTING), trouble: of(TROUBLE) };
}

function judged({ observed, sensors, credentials, current }: Seen, snapshot: Fact): readonly Fact[] {
  const { parent, reads } = observed;
  const pods = currentPods(observed);
  const { listing, trouble } = answers(observed, sensors);
  const own = toolResourceName(parent.metadata.name);
  const widening = wideningPolicies(reads['policies'] ?? [], own, toolLabels(parent));
  const secrets = secretTroubles(credentials, [trouble]);
  return [
    connected({ credentials, remote: parent.spec.url !== undefined, current, listing, trouble }),
    installed({ workload: workloadOf(observed), pods, trouble, secrets, trust: reads['trust']?.[0] }),
    sandboxed([listing, trouble], widening),
    listed(pods, listing, secrets),
    snapshot,
  ].map((fact) => (stillHolds(observed, fact, sensors) ? formerVerdict(observed, fact) : fact));
}

/** Which Connections' credentials the pods have, and which secrets they miss; nothing while nobody was asked. */
function credentialsStatus({ observed, sensors, credentials, current }: Seen): Record<string, unknown> {
  const { listing, trouble } = answers(observed, sensors);
  const asked = listing.state === 'ok' || trouble.state === 'ok';
  if (!current || !asked) {
    const fact = pending('Connected', CONNECTING, '');
    if (!current || !stillHolds(observed, fact, sensors)) return {};
  }
  const { connections } = credentials;
  const secrets = secretStatus(credentials, [listing, trouble]);
  return {
    ...(connections.length > 0 ? { connections: connections.slice(0, PROBLEMS_MAX) } : {}),
    ...(secrets.length > 0 ? { secrets } : {}),
  };
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
