/** What is asked of sidecars: a pod that takes calls for its listing, and one that does not for why. */
import type { SidecarStatus } from '../../domain/config/sidecar.ts';
import { type KubeObject, type Observed, resourceKey, type Sensed, type Sensor } from '../../engine/contract.ts';
import { textAt } from '../live.ts';
import { DAEMON_SET, DEPLOYMENT } from '../resources.ts';
import { TEMPLATE_ANNOTATION } from './pod.ts';
import { readPod, type ToolPod } from './pods.ts';
import { readSidecarStatus } from './sidecarStatus.ts';
import type { StoredTool } from './tool.ts';

/** One pod's sidecar. Whoever asks must prove that it is this pod and no other that has its address now. */
export interface SidecarAddress {
  readonly namespace: string;
  readonly tool: string;
  readonly podUid: string;
  readonly address: string;
}

/** Sends `GET /status` with the controller's identity; answers the body as JSON. */
export type AskSidecar = (sidecar: SidecarAddress, signal: AbortSignal) => Promise<unknown>;

export const LISTING = 'listing';
export const TROUBLE = 'trouble';

const EVERY_MS = 30_000;
const TROUBLE_EVERY_MS = 10_000;
const TIMEOUT_MS = 8_000;

export function toolSensors(ask: AskSidecar): readonly Sensor<StoredTool, SidecarStatus>[] {
  const run = async (input: unknown, signal: AbortSignal): Promise<SidecarStatus> => {
    const status = readSidecarStatus(await ask(input as SidecarAddress, signal));
    if (!status) throw new Error('The sidecar answered something that is no status.');
    return status;
  };
  return [
    { name: LISTING, everyMs: EVERY_MS, timeoutMs: TIMEOUT_MS, subject: subjectOf((pod) => pod.ready), run },
    { name: TROUBLE, everyMs: TROUBLE_EVERY_MS, timeoutMs: TIMEOUT_MS, subject: subjectOf((pod) => !pod.ready), run },
  ];
}

type Subject = Sensor<StoredTool>['subject'];

/** The first pod of the template that is written now; its uid is random, so the first by uid is any, and always the same one. */
function subjectOf(wanted: (pod: ToolPod) => boolean): Subject {
  return (observed) => {
    const pod = currentPods(observed)
      .filter((candidate) => wanted(candidate) && candidate.answers && candidate.address !== undefined)
      .sort((a, b) => (a.uid < b.uid ? -1 : 1))[0];
    if (!pod) return undefined;
    const { name, namespace = '' } = observed.parent.metadata;
    const input: SidecarAddress = { namespace, tool: name, podUid: pod.uid, address: pod.address ?? '' };
    return { key: `${pod.template}/${pod.uid}`, input };
  };
}

/** The workload that is there; undefined before the first one. */
export function workloadOf({ children }: Observed<StoredTool>): KubeObject | undefined {
  return [DAEMON_SET, DEPLOYMENT].flatMap((resource) => children[resourceKey(resource)] ?? [])[0];
}

/** Pods of the workload's template, but for those on their way out. */
export function currentPods(observed: Observed<StoredTool>): readonly ToolPod[] {
  const template = currentTemplate(observed);
  return (observed.reads['pods'] ?? []).map(readPod).filter((pod) => !pod.leaving && pod.template === template);
}

export function currentTemplate(observed: Observed<StoredTool>): string | undefined {
  return textAt(workloadOf(observed), 'spec', 'template', 'metadata', 'annotations', TEMPLATE_ANNOTATION);
}

/** What a pod of the current template answered last, if that is still to the point. */
export function answerOf(observed: Observed<StoredTool>, sensor: Sensor<StoredTool>): Sensed<SidecarStatus> {
  const sensed = (observed.sensed[sensor.name] ?? { state: 'none' }) as Sensed<SidecarStatus>;
  const subject = sensor.subject(observed);
  if (sensed.state === 'none' || subject === undefined) return { state: 'none' };
  // Any pod of the template lists the same; another pod's trouble is its own.
  const sameTemplate = sensed.key.split('/')[0] === subject.key.split('/')[0];
  const toThePoint = sensor.name === LISTING && sensed.state === 'ok' ? sameTemplate : sensed.key === subject.key;
  return toThePoint ? sensed : { state: 'none' };
}
