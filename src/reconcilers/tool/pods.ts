/** What a tool's pods say of themselves, as far as the Tool's conditions need it. */
import type { KubeObject } from '../../engine/contract.ts';
import { at, conditionOf, countAt, recordsAt, textAt } from '../live.ts';
import { RUNS_ANNOTATION, TEMPLATE_ANNOTATION } from './pod.ts';
import { CANNOT_START, CRASHING, EVICTED, IMAGE_UNAVAILABLE, UNSCHEDULABLE } from './reasons.ts';

export interface ToolPod {
  readonly name: string;
  readonly uid: string;
  readonly node: string | undefined;
  readonly address: string | undefined;
  readonly template: string | undefined;
  /** Which version of the Tool. */
  readonly runs: string | undefined;
  readonly ready: boolean;
  readonly leaving: boolean;
  /** Its containers run no more, and never will. */
  readonly ended: boolean;
  /** Its sidecar runs, so it can be asked. */
  readonly answers: boolean;
  /** Why it does not come up, where Kubernetes knows. */
  readonly failure: Failure | undefined;
}

export interface Failure {
  readonly reason: string;
  readonly message: string;
}

export function readPod(pod: KubeObject): ToolPod {
  // Alone in its pod it is an ordinary container.
  const sidecar = ['initContainerStatuses', 'containerStatuses']
    .flatMap((field) => recordsAt(pod, 'status', field))
    .find(({ name }) => name === 'sidecar');
  const ready = conditionOf(pod, 'Ready')?.['status'] === 'True';
  return {
    name: pod.metadata.name,
    uid: pod.metadata.uid ?? '',
    node: textAt(pod, 'spec', 'nodeName'),
    address: textAt(pod, 'status', 'podIP'),
    template: pod.metadata.annotations?.[TEMPLATE_ANNOTATION],
    runs: pod.metadata.annotations?.[RUNS_ANNOTATION],
    ready,
    leaving: pod.metadata.deletionTimestamp !== undefined,
    ended: ['Failed', 'Succeeded'].includes(textAt(pod, 'status', 'phase') ?? ''),
    answers: at(sidecar, 'state', 'running') !== undefined,
    failure: ready ? undefined : failureOf(pod),
  };
}

const IMAGE_REASONS = [
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
];
const START_REASONS = [
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'PreCreateHookError',
  'PreStartHookError',
];

function failureOf(pod: KubeObject): Failure | undefined {
  const because = textAt(pod, 'status', 'message') ?? textAt(pod, 'status', 'reason') ?? '';
  if (textAt(pod, 'status', 'phase') === 'Failed') return { reason: EVICTED, message: because };
  const scheduled = conditionOf(pod, 'PodScheduled');
  if (scheduled?.['status'] === 'False') {
    return { reason: UNSCHEDULABLE, message: textAt(scheduled, 'message') ?? 'no node was found' };
  }
  const containers = [
    ...recordsAt(pod, 'status', 'initContainerStatuses'),
    ...recordsAt(pod, 'status', 'containerStatuses'),
  ];
  return containers.map(failureOfContainer).find((failure) => failure !== undefined);
}

function failureOfContainer(container: Record<string, unknown>): Failure | undefined {
  const name = textAt(container, 'name') ?? '';
  const waiting = textAt(container, 'state', 'waiting', 'reason');
  const message = `container ${name}: ${textAt(container, 'state', 'waiting', 'message') ?? waiting ?? ''}`;
  if (waiting !== undefined && IMAGE_REASONS.includes(waiting)) return { reason: IMAGE_UNAVAILABLE, message };
  if (waiting !== undefined && START_REASONS.includes(waiting)) return { reason: CANNOT_START, message };
  const ended = at(container, 'lastState', 'terminated') ?? at(container, 'state', 'terminated');
  const why = textAt(ended, 'reason');
  if (why === 'OOMKilled') {
    return { reason: CRASHING, message: `container ${name} was ended since it passed its limit of memory` };
  }
  if (waiting !== 'CrashLoopBackOff') return undefined;
  const said = textAt(ended, 'message');
  const how = `ended with exit code ${countAt(ended, 'exitCode')}${said === undefined ? '' : `: ${said}`}`;
  return { reason: CRASHING, message: `container ${name} ${how}` };
}
