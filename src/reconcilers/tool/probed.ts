/** What became of the pod in which a new version is tried. */
import type { KubeObject, Observed } from '../../engine/contract.ts';
import { conditionOf, textAt } from '../live.ts';
import type { Probed } from './decideSnapshot.ts';
import { findListing } from './listings.ts';
import { answerOf, givenListing, probeOf, probePods, storedOf, type ToolSensors, templateOf } from './sensors.ts';
import { type Hashes, hashesOf } from './snapshot.ts';
import type { StoredTool } from './tool.ts';

/** @param template of the version that is written now */
export function probedOf(observed: Observed<StoredTool>, sensors: ToolSensors, template: string | undefined): Probed {
  const probe = probeOf(observed);
  if (!probe || templateOf(probe) !== template) return { state: 'none' };
  const pods = probePods(observed);
  const answer = answerOf(observed, sensors.probe);
  const ready = pods.some((pod) => pod.ready && answer.state === 'ok' && pod.uid === answer.value.podUid);
  if (answer.state === 'ok' && ready && answer.value.phase === 'Ready') {
    const hashes = hashesOf(answer.value.listing);
    if (!hashes) return { state: 'failing', message: 'It lists no function.' };
    return { state: 'listed', hashes, settled: isSettled(observed, sensors, hashes) };
  }
  const failure = pods.find((pod) => pod.failure !== undefined)?.failure ?? refusalOf(probe);
  if (failure) return { state: 'failing', message: failure.message };
  if (answer.state === 'ok' && answer.value.phase === 'Down' && answer.value.sandbox.holds && answer.value.problem) {
    return { state: 'failing', message: answer.value.problem };
  }
  return { state: 'none' };
}

function refusalOf(workload: KubeObject): { readonly message: string } | undefined {
  const refused = conditionOf(workload, 'ReplicaFailure');
  return refused?.['status'] === 'True' ? { message: textAt(refused, 'message') ?? '' } : undefined;
}

/** Its whole listing is kept, or cannot be had. */
function isSettled(observed: Observed<StoredTool>, sensors: ToolSensors, { hash }: Hashes): boolean {
  if (findListing(storedOf(observed), hash) !== undefined) return true;
  const given = givenListing(observed, sensors);
  return given.state === 'given' ? given.listing.parts === undefined : given.state !== 'asking';
}
