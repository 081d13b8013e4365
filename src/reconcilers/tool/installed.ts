/** The condition Installed: whether every pod of the Tool, as it is written now, takes calls. */
import type { SidecarStatus } from '../../domain/config/sidecar.ts';
import type { Fact, KubeObject, Sensed } from '../../engine/contract.ts';
import { fails, holds, pending, stalls } from '../facts.ts';
import { conditionOf, countAt, textAt } from '../live.ts';
import { reasonOf } from './connected.ts';
import { describeTroubles, type SecretTrouble } from './credentials.ts';
import type { ToolPod } from './pods.ts';
import {
  INSTALLING,
  NO_ELIGIBLE_NODE,
  PODS_REFUSED,
  ROLLED_OUT,
  ROLLING_OUT,
  SERVER_FAILS,
  TRUST_FOREIGN,
  WAITING_FOR_TRUST,
} from './reasons.ts';

const TYPE = 'Installed';

export interface Rollout {
  readonly desired: number;
  readonly ready: number;
  readonly done: boolean;
}

/** How far a DaemonSet or Deployment is. */
export function rolloutOf(workload: KubeObject): Rollout {
  const isDaemonSet = workload.kind === 'DaemonSet';
  const count = (field: string) => countAt(workload, 'status', field);
  const desired = isDaemonSet ? count('desiredNumberScheduled') : countAt(workload, 'spec', 'replicas');
  const ready = count(isDaemonSet ? 'numberReady' : 'readyReplicas');
  const updated = count(isDaemonSet ? 'updatedNumberScheduled' : 'updatedReplicas');
  const available = count(isDaemonSet ? 'numberAvailable' : 'availableReplicas');
  const seen = count('observedGeneration') >= (workload.metadata.generation ?? 0);
  const noOld = isDaemonSet || count('replicas') === updated;
  return { desired, ready, done: seen && noOld && updated >= desired && available >= desired && ready >= desired };
}

export interface InstalledInput {
  readonly workload: KubeObject | undefined;
  /** Of the current template. */
  readonly pods: readonly ToolPod[];
  /** What a pod that takes no calls says. */
  readonly trouble: Sensed<SidecarStatus>;
  /** What the same pod says is wrong with secrets. */
  readonly secrets: readonly SecretTrouble[];
  /** The ConfigMap that the pods mount, whosever it is. */
  readonly trust: KubeObject | undefined;
}

export function installed({ workload, pods, trouble, secrets, trust }: InstalledInput): Fact {
  if (!workload) return pending(TYPE, INSTALLING, 'The workload is being made.');
  const rollout = rolloutOf(workload);
  const { desired, ready } = rollout;
  const seen = countAt(workload, 'status', 'observedGeneration') >= (workload.metadata.generation ?? 0);
  if (!seen) return pending(TYPE, INSTALLING, 'Kubernetes has not looked at the workload yet.');
  if (desired === 0 && workload.kind === 'DaemonSet') {
    return fails(TYPE, NO_ELIGIBLE_NODE, 'No node matches the node selector, or every one that does has a taint.');
  }
  if (rollout.done) return holds(TYPE, ROLLED_OUT, `${ready} of ${desired} pods take calls.`);
  const count = `${ready} of ${desired} pods take calls.`;
  if (trust && !trust.metadata.ownerReferences?.some(({ kind, controller }) => kind === 'Namespace' && controller)) {
    return stalls(TYPE, TRUST_FOREIGN, `${count} The ConfigMap ${trust.metadata.name} is not the operator's.`);
  }
  const failing = pods.find(({ failure }) => failure !== undefined);
  if (failing?.failure) {
    return fails(TYPE, failing.failure.reason, `${count} ${where(failing)}: ${failing.failure.message}`);
  }
  const refused = conditionOf(workload, 'ReplicaFailure');
  if (refused?.['status'] === 'True') {
    return fails(TYPE, PODS_REFUSED, `${count} ${textAt(refused, 'message') ?? ''}`);
  }
  if (!trust) return pending(TYPE, WAITING_FOR_TRUST, `${count} The operator's CA is not in this namespace yet.`);
  if (secrets.length > 0) return fails(TYPE, reasonOf(secrets), `${count} ${describeTroubles(secrets)}`);
  return fromTrouble(count, pods, trouble) ?? pending(TYPE, ROLLING_OUT, `${count}${withoutPod(workload)}`);
}

/** A DaemonSet's status does not say why a pod could not be made; its events do, which the controller does not read. */
function withoutPod(workload: KubeObject): string {
  if (workload.kind !== 'DaemonSet') return '';
  const nodes =
    countAt(workload, 'status', 'desiredNumberScheduled') - countAt(workload, 'status', 'currentNumberScheduled');
  if (nodes <= 0) return '';
  const { name, namespace } = workload.metadata;
  const events = `kubectl describe daemonset ${name} -n ${namespace}`;
  return ` ${nodes} ${nodes === 1 ? 'node has' : 'nodes have'} no pod yet. If that stays, a quota or Pod Security may refuse it: see the events of ${events}.`;
}

function fromTrouble(count: string, pods: readonly ToolPod[], trouble: Sensed<SidecarStatus>): Fact | undefined {
  if (trouble.state !== 'ok') return undefined;
  const { phase, problem, podUid, sandbox } = trouble.value;
  const pod = pods.find(({ uid }) => uid === podUid);
  if (problem === undefined || !pod) return undefined;
  const message = `${count} ${where(pod)}: ${problem}`;
  // Before its walls were seen to hold, nothing of it was started that could fail.
  const failed = phase === 'Down' && sandbox.holds;
  return failed ? fails(TYPE, SERVER_FAILS, message) : pending(TYPE, ROLLING_OUT, message);
}

function where({ name, node }: ToolPod): string {
  return node === undefined ? `Pod ${name}` : `Pod ${name} on node ${node}`;
}
