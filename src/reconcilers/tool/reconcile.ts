/** Tool: from its spec to a sandboxed workload, and from what pods and sidecars say to its conditions. */
import { affinityOf, PROBLEMS_MAX } from '../../api/tool.ts';
import { LABEL_TOOL, probeLabel, TRUST_CONFIG_MAP, toolId, toolResourceName } from '../../domain/naming.ts';
import type { Fact, Observed, Outcome, Reconciler } from '../../engine/contract.ts';
import { pending } from '../facts.ts';
import { at, conditionOf, textAt } from '../live.ts';
import type { Operator } from '../operator.ts';
import {
  CLUSTER_TOOL_POLICY,
  CONFIG_MAP,
  CONNECTION,
  NETWORK_POLICY,
  PLUGIN,
  POD,
  SNAPSHOT_APPROVAL,
  TOOL,
  TOOL_POLICY,
} from '../resources.ts';
import { acceptsNewVersions, approvalOf } from './approved.ts';
import { TOOL_OWNS, toolChildren } from './children.ts';
import { connected, secretStatus } from './connected.ts';
import { type Credentials, secretTroubles } from './credentials.ts';
import { decideSnapshot, type SnapshotDecision } from './decideSnapshot.ts';
import { differenceOf } from './differenceOf.ts';
import { installed, rolloutOf } from './installed.ts';
import { listed, listingStatus } from './listed.ts';
import { approvedListing } from './listings.ts';
import { podTemplate, RUNS_ANNOTATION, TEMPLATE_ANNOTATION, toolLabels } from './pod.ts';
import { probedOf } from './probed.ts';
import { CONNECTING, NOT_ACCEPTED } from './reasons.ts';
import { runsOf } from './runs.ts';
import { sandboxed } from './sandboxed.ts';
import {
  type AskSidecar,
  answerOf,
  currentPods,
  currentTemplate,
  givenListing,
  servingPods,
  storedOf,
  type ToolSensors,
  toolSensors,
  workloadOf,
  workloadsOf,
} from './sensors.ts';
import { hashesOf, readPending, readReplaced, readSnapshot, SNAPSHOT_RECORDS, type Snapshot } from './snapshot.ts';
import { acceptTool, type Source } from './source.ts';
import { stage } from './stage.ts';
import { parseTool, type StoredTool } from './tool.ts';
import { wideningPolicies } from './widening.ts';

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
      probes: {
        resource: POD,
        select: ({ metadata }) => ({ ...namespaceOf(metadata), labels: { [LABEL_TOOL]: probeLabel(metadata.name) } }),
      },
      connections: { resource: CONNECTION, select: ({ metadata }) => namespaceOf(metadata) },
      policies: { resource: NETWORK_POLICY, select: ({ metadata }) => namespaceOf(metadata) },
      trust: { resource: CONFIG_MAP, select: ({ metadata }) => ({ ...namespaceOf(metadata), name: TRUST_CONFIG_MAP }) },
      approvals: { resource: SNAPSHOT_APPROVAL, select: ({ metadata }) => namespaceOf(metadata) },
      toolPolicies: { resource: TOOL_POLICY, select: ({ metadata }) => namespaceOf(metadata) },
      clusterToolPolicies: { resource: CLUSTER_TOOL_POLICY, select: () => ({}) },
    },
    sensors: [sensors.listing, sensors.trouble, sensors.probe, sensors.definitions],
    conditions: CONDITIONS,
    records: SNAPSHOT_RECORDS,
    reconcile: (observed) => {
      const { parent, reads } = observed;
      const acceptance = acceptTool(parent, reads['plugin'] ?? [], reads['connections'] ?? [], operator);
      // What ran before goes on: the mistake may be a moment's, and stopping the tool mends nothing.
      if (!acceptance.ok) return { do: 'hold', facts: refused(observed, acceptance.fact) };
      const { source, credentials, fact } = acceptance;
      const template = podTemplate(parent, source, credentials, operator);
      const written = template.metadata.annotations[TEMPLATE_ANNOTATION] ?? '';
      const seen = { observed, sensors, source, credentials, written, current: written === currentTemplate(observed) };
      const decision = snapshotOf(seen);
      const staged = stage({
        observed,
        operator,
        template,
        children: toolChildren(parent, source, credentials, operator),
        decision,
        snapshot: snapshotIn(observed),
        given: givenListing(observed, sensors),
      });
      return {
        do: 'converge',
        ...staged,
        facts: {
          conditions: [fact, ...judged(seen, decision.fact)],
          status: {
            ...whatItIs(observed),
            ...listingOf(observed, sensors),
            ...decision.record,
            ...credentialsStatus(seen),
          },
        },
      };
    },
  };
}

interface Seen {
  readonly observed: Observed<StoredTool>;
  readonly sensors: ToolSensors;
  readonly source: Source;
  readonly credentials: Credentials;
  /** Hash of the template that is written now. */
  readonly written: string;
  /** The workload that is there has it. */
  readonly current: boolean;
}

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
function records(observed: Observed<StoredTool>): Record<string, unknown> {
  const { parent } = observed;
  const known = { snapshot: snapshotIn(observed), pending: readPending(parent), replaced: readReplaced(parent) };
  return Object.fromEntries(Object.entries(known).filter(([, value]) => value !== undefined));
}

/**
 * The record; where status was lost, the approved listing as it was kept beside the Tool. Of which version that was nobody knows any more,
 * so what is written now is tried first. With neither, the next listing is a first one.
 */
function snapshotIn(observed: Observed<StoredTool>): Snapshot | undefined {
  const recorded = readSnapshot(observed.parent);
  if (recorded) return recorded;
  const kept = approvedListing(storedOf(observed));
  return kept && { ...kept, from: 'FirstListing' };
}

function snapshotOf(seen: Seen): SnapshotDecision {
  const { observed, sensors, current, written } = seen;
  const { parent, reads } = observed;
  const { listing } = answers(observed, sensors);
  const said = current && listing.state === 'ok' ? listing.value.listing : undefined;
  const snapshot = snapshotIn(observed);
  return decideSnapshot({
    namespace: parent.metadata.namespace ?? '',
    tool: parent.metadata.name,
    snapshot,
    pending: readPending(parent),
    replaced: readReplaced(parent),
    runs: runsOf(parent, seen.source, seen.credentials),
    listed: said && (hashesOf(said) ?? 'empty'),
    probed: probedOf(observed, sensors, written),
    formerRun: formerRun(observed, snapshot?.runs),
    serves: workloadOf(observed) !== undefined,
    approvalOf: (hash) => approvalOf(reads['approvals'] ?? [], parent.metadata.name, hash),
    acceptsNew: acceptsNewVersions(reads['toolPolicies'] ?? [], reads['clusterToolPolicies'] ?? []),
    differenceOf: differenceOf(storedOf(observed), givenListing(observed, sensors)),
  });
}

/** Something still runs another version than this. */
function formerRun(observed: Observed<StoredTool>, runs: string | undefined): boolean {
  const path = ['spec', 'template', 'metadata', 'annotations', RUNS_ANNOTATION];
  return (
    servingPods(observed).some((pod) => pod.runs !== runs) ||
    workloadsOf(observed).some((workload) => textAt(workload, ...path) !== runs)
  );
}

function answers(observed: Observed<StoredTool>, { listing, trouble }: ToolSensors) {
  return { listing: answerOf(observed, listing), trouble: answerOf(observed, trouble) };
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
function stillHolds(observed: Observed<StoredTool>, fact: Fact, sensors: ToolSensors): boolean {
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

function listingOf(observed: Observed<StoredTool>, sensors: ToolSensors): Record<string, unknown> {
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
