/**
 * What is asked of sidecars: a pod that takes calls for its listing, one that does not for why, the pod of a new version for both, and
 * whichever of them lists what is not kept yet for its whole listing.
 */
import { affinityOf } from '../../api/tool.ts';
import type { SidecarStatus } from '../../domain/config/sidecar.ts';
import { probeResourceName } from '../../domain/naming.ts';
import { packListing, readListing } from '../../domain/snapshot/packListing.ts';
import { hashDigits, writtenHash } from '../../domain/snapshot/snapshotHash.ts';
import { type KubeObject, type Observed, resourceKey, type Sensed, type Sensor } from '../../engine/contract.ts';
import { textAt } from '../live.ts';
import { DAEMON_SET, DEPLOYMENT, TOOL_LISTING } from '../resources.ts';
import { findListing, type StoredListing, storedListings } from './listings.ts';
import { TEMPLATE_ANNOTATION } from './pod.ts';
import { readPod, type ToolPod } from './pods.ts';
import { readSidecarStatus } from './sidecarStatus.ts';
import { readSnapshot } from './snapshot.ts';
import type { StoredTool } from './tool.ts';

/** One pod's sidecar. Whoever asks must prove that it is this pod and no other that has its address now. */
export interface SidecarAddress {
  readonly namespace: string;
  readonly tool: string;
  readonly podUid: string;
  readonly address: string;
}

/** Sends a GET with the controller's identity; answers the body as JSON. */
export type AskSidecar = (
  sidecar: SidecarAddress,
  path: '/status' | '/listing',
  signal: AbortSignal,
) => Promise<unknown>;

export const LISTING = 'listing';
export const TROUBLE = 'trouble';
/** What the pod of a new version says. */
export const PROBE = 'probe';
/** A whole listing. */
export const DEFINITIONS = 'definitions';

/** A whole listing that a sidecar gave. */
export interface GivenListing {
  /** `sha256:` and 64 hex digits. */
  readonly hash: string;
  /** Base64, as `packListing` makes it; undefined: too large to be kept. */
  readonly parts: readonly string[] | undefined;
}

interface Question {
  readonly sidecar: SidecarAddress;
  readonly hash: string;
}

const EVERY_MS = 30_000;
const TROUBLE_EVERY_MS = 10_000;
const PROBE_EVERY_MS = 5_000;
/** Of a whole listing, which is asked for until it is there: after a failure, such as of a sidecar that has no such answer yet. */
const DEFINITIONS_EVERY_MS = 600_000;
const TIMEOUT_MS = 8_000;
const DEFINITIONS_TIMEOUT_MS = 20_000;

type ToolSensor = Sensor<StoredTool, SidecarStatus>;

export interface ToolSensors {
  readonly listing: ToolSensor;
  readonly trouble: ToolSensor;
  readonly probe: ToolSensor;
  readonly definitions: Sensor<StoredTool, GivenListing>;
}

export function toolSensors(ask: AskSidecar): ToolSensors {
  const run = async (input: unknown, signal: AbortSignal): Promise<SidecarStatus> => {
    const status = readSidecarStatus(await ask(input as SidecarAddress, '/status', signal));
    if (!status) throw new Error('The sidecar answered something that is no status.');
    return status;
  };
  const sensor = (name: string, everyMs: number, subject: Subject): ToolSensor => ({
    name,
    everyMs,
    timeoutMs: TIMEOUT_MS,
    subject,
    run,
  });
  const listing = sensor(LISTING, EVERY_MS, (observed) =>
    subjectAmong(
      observed,
      currentPods(observed).filter(({ ready }) => ready),
    ),
  );
  const trouble = sensor(TROUBLE, TROUBLE_EVERY_MS, (observed) =>
    subjectAmong(
      observed,
      currentPods(observed).filter(({ ready }) => !ready),
    ),
  );
  const probe = sensor(PROBE, PROBE_EVERY_MS, (observed) => subjectAmong(observed, probePods(observed)));
  return {
    listing,
    trouble,
    probe,
    definitions: {
      name: DEFINITIONS,
      everyMs: DEFINITIONS_EVERY_MS,
      timeoutMs: DEFINITIONS_TIMEOUT_MS,
      subject: (observed) => definitionsWanted(observed, probe, listing),
      run: async (input, signal) => {
        const { sidecar, hash } = input as Question;
        const answer = await ask(sidecar, '/listing', signal);
        const listed = readListing(answer, (found) => found === hashDigits(hash));
        if (!listed) throw new Error('The sidecar answered with another listing than it had said.');
        return { hash, parts: packListing(listed) };
      },
    },
  };
}

type Subject = ToolSensor['subject'];

/** The first pod: its uid is random, so the first by uid is any, and always the same one. */
function subjectAmong(observed: Observed<StoredTool>, pods: readonly ToolPod[]) {
  const pod = pods
    .filter((candidate) => candidate.answers && candidate.address !== undefined)
    .sort((a, b) => (a.uid < b.uid ? -1 : 1))[0];
  if (!pod) return undefined;
  const { name, namespace = '' } = observed.parent.metadata;
  const input: SidecarAddress = { namespace, tool: name, podUid: pod.uid, address: pod.address ?? '' };
  return { key: `${pod.template}/${pod.uid}`, input };
}

/** The first of them that lists what is not kept: a new version before what serves, since its pod goes again. */
function definitionsWanted(observed: Observed<StoredTool>, probe: ToolSensor, listing: ToolSensor) {
  const stored = storedOf(observed);
  const snapshot = readSnapshot(observed.parent);
  for (const sensor of [probe, listing]) {
    const answer = answerOf(observed, sensor);
    const said = answer.state === 'ok' ? answer.value.listing : undefined;
    const hash = said && said.functions.length > 0 ? writtenHash(said.hash) : undefined;
    const subject = sensor.subject(observed);
    if (hash === undefined || subject === undefined || findListing(stored, hash) !== undefined) continue;
    // One that differs in nothing is kept from the pods that serve.
    if (sensor === probe && hash === snapshot?.hash) continue;
    const input: Question = { sidecar: subject.input as SidecarAddress, hash };
    return { key: `${subject.key}/${hash}`, input };
  }
  return undefined;
}

export function storedOf({ children }: Observed<StoredTool>): readonly StoredListing[] {
  return storedListings(children[resourceKey(TOOL_LISTING)] ?? []);
}

/** The workloads that serve: of the kind that is written now first, of the other while that one still runs. */
export function workloadsOf({ parent, children }: Observed<StoredTool>): readonly KubeObject[] {
  const kinds = affinityOf(parent.spec) === 'node' ? [DAEMON_SET, DEPLOYMENT] : [DEPLOYMENT, DAEMON_SET];
  const probe = probeResourceName(parent.metadata.name);
  return kinds.flatMap((resource) => children[resourceKey(resource)] ?? []).filter((x) => x.metadata.name !== probe);
}

/** The workload that is there; undefined before the first one. */
export function workloadOf(observed: Observed<StoredTool>): KubeObject | undefined {
  return workloadsOf(observed)[0];
}

/** That of the new version. */
export function probeOf({ parent, children }: Observed<StoredTool>): KubeObject | undefined {
  const name = probeResourceName(parent.metadata.name);
  return (children[resourceKey(DEPLOYMENT)] ?? []).find(({ metadata }) => metadata.name === name);
}

/** Pods that serve, of whatever template, but for those on their way out. */
export function servingPods({ reads }: Observed<StoredTool>): readonly ToolPod[] {
  return (reads['pods'] ?? []).map(readPod).filter((pod) => !pod.leaving && !pod.ended);
}

/** Pods of the workload's template, but for those on their way out. */
export function currentPods(observed: Observed<StoredTool>): readonly ToolPod[] {
  const template = currentTemplate(observed);
  return (observed.reads['pods'] ?? []).map(readPod).filter((pod) => !pod.leaving && pod.template === template);
}

/** Of the new version that is tried now. */
export function probePods(observed: Observed<StoredTool>): readonly ToolPod[] {
  const template = templateOf(probeOf(observed));
  return (observed.reads['probes'] ?? [])
    .map(readPod)
    .filter((pod) => !pod.leaving && template !== undefined && pod.template === template);
}

export function currentTemplate(observed: Observed<StoredTool>): string | undefined {
  return templateOf(workloadOf(observed));
}

export function templateOf(workload: KubeObject | undefined): string | undefined {
  return textAt(workload, 'spec', 'template', 'metadata', 'annotations', TEMPLATE_ANNOTATION);
}

/** What a pod of the current template answered last, if that is still to the point. */
export function answerOf(observed: Observed<StoredTool>, sensor: ToolSensor): Sensed<SidecarStatus> {
  const sensed = (observed.sensed[sensor.name] ?? { state: 'none' }) as Sensed<SidecarStatus>;
  const subject = sensor.subject(observed);
  if (sensed.state === 'none' || subject === undefined) return { state: 'none' };
  // Any pod of the template lists the same; another pod's trouble is its own.
  const sameTemplate = sensed.key.split('/')[0] === subject.key.split('/')[0];
  const toThePoint = sensor.name === LISTING && sensed.state === 'ok' ? sameTemplate : sensed.key === subject.key;
  return toThePoint ? sensed : { state: 'none' };
}

/** The whole listing, where one is asked for: what came of it, if that is still to the point. */
export function givenListing(
  observed: Observed<StoredTool>,
  { definitions }: ToolSensors,
): { readonly state: 'not asked' | 'asking' | 'failed' } | { readonly state: 'given'; readonly listing: GivenListing } {
  const sensed = (observed.sensed[DEFINITIONS] ?? { state: 'none' }) as Sensed<GivenListing>;
  const subject = definitions.subject(observed);
  if (subject === undefined) return { state: 'not asked' };
  if (sensed.state === 'none' || sensed.key !== subject.key) return { state: 'asking' };
  return sensed.state === 'ok' ? { state: 'given', listing: sensed.value } : { state: 'failed' };
}
