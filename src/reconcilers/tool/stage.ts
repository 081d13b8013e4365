/** Which of a Tool's children are wanted, and which are left as they are, while one version follows another. */
import { affinityOf } from '../../api/tool.ts';
import type { ChildRef, KubeObject, Observed } from '../../engine/contract.ts';
import { resourceKey } from '../../engine/contract.ts';
import type { Operator } from '../operator.ts';
import { DAEMON_SET, DEPLOYMENT, DISRUPTION_BUDGET, SERVICE } from '../resources.ts';
import { toolWalls } from './children.ts';
import type { SnapshotDecision } from './decideSnapshot.ts';
import { rolloutOf } from './installed.ts';
import { findListing, type ListingRole, listingObjects, partsOf, refsOf } from './listings.ts';
import type { PodTemplate } from './pod.ts';
import { probeDeployment } from './probe.ts';
import { type givenListing, probeOf, storedOf, templateOf, workloadsOf } from './sensors.ts';
import { readPending, type Snapshot } from './snapshot.ts';
import type { StoredTool } from './tool.ts';

export interface StageInput {
  readonly observed: Observed<StoredTool>;
  readonly operator: Operator;
  /** Of what is written now. */
  readonly template: PodTemplate;
  readonly children: readonly KubeObject[];
  readonly decision: SnapshotDecision;
  /** As it is recorded, or was found kept where the record was lost. */
  readonly snapshot: Snapshot | undefined;
  readonly given: ReturnType<typeof givenListing>;
}

export interface Staged {
  readonly children: readonly KubeObject[];
  readonly keep: readonly ChildRef[];
}

export function stage(input: StageInput): Staged {
  const { observed, operator, template, children, decision } = input;
  const listings = keptListings(input);
  if (decision.serve === 'written') {
    return { children: [...children, ...listings.children], keep: [...former(input), ...listings.keep] };
  }
  const probe = decision.probe ? [probeDeployment(observed.parent, template)] : [];
  const serving = [SERVICE, DISRUPTION_BUDGET, DAEMON_SET, DEPLOYMENT]
    .flatMap((resource) => observed.children[resourceKey(resource)] ?? [])
    .filter((child) => child !== probeOf(observed));
  return {
    children: [...toolWalls(observed.parent, operator), ...probe, ...listings.children],
    keep: [...serving.map(refTo), ...listings.keep],
  };
}

/**
 * A Tool that moves between one pod a node and pods anywhere keeps its former workload until the new one takes calls. (Gateways look for
 * pods as the Tool is written now, so those on nodes without one of the former pods still wait.)
 */
function former({ observed, children }: StageInput): readonly ChildRef[] {
  const kind = affinityOf(observed.parent.spec) === 'node' ? DAEMON_SET.kind : DEPLOYMENT.kind;
  const workloads = workloadsOf(observed);
  const next = workloads.find((workload) => workload.kind === kind);
  const wanted = children.find((child) => child.kind === kind);
  if (next && hasFollowed(next, wanted)) return [];
  return workloads.filter((workload) => workload.kind !== kind).map(refTo);
}

function hasFollowed(workload: KubeObject, wanted: KubeObject | undefined): boolean {
  const { done, ready } = rolloutOf(workload);
  return done && ready > 0 && templateOf(workload) === templateOf(wanted);
}

/** The listings that status speaks of: left as they are where they are there, else made from what is at hand. */
function keptListings({ observed, snapshot, given }: StageInput): Staged {
  const { parent } = observed;
  const stored = storedOf(observed);
  const roles: readonly (readonly [ListingRole, string | undefined])[] = [
    ['snapshot', snapshot?.hash],
    ['pending', readPending(parent)?.hash],
  ];
  const children: KubeObject[] = [];
  const keep: ChildRef[] = [];
  for (const [role, hash] of roles) {
    if (hash === undefined) continue;
    const kept = findListing(stored, hash, role);
    const other = findListing(stored, hash);
    if (kept) keep.push(...refsOf(kept));
    else if (other) children.push(...listingObjects(parent, role, hash, partsOf(other)));
    else if (given.state === 'given' && given.listing.hash === hash) {
      children.push(...listingObjects(parent, role, hash, given.listing.parts ?? []));
    }
  }
  return { children, keep };
}

function refTo({ apiVersion, kind, metadata: { name, namespace } }: KubeObject): ChildRef {
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}
