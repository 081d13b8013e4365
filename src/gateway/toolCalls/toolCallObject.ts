/** A ToolCall between its object at the API server and what decisions about it need. Pure; what cannot be read is none. */
import { createHash } from 'node:crypto';
import { readStored } from '../../api/judge.ts';
import { type ToolCallSpec, type ToolCallStatus, toolCall } from '../../api/toolCall.ts';
import { type Call, type Change, type Claim, changed, claimed } from '../../domain/calls/call.ts';
import { API_GROUP_VERSION } from '../../domain/naming.ts';
import { canonicalJson } from '../../domain/snapshot/canonical.ts';
import type { KubeObject, Resource } from '../../engine/contract.ts';
import type { JsonObject } from '../../mcp/wire/jsonrpc.ts';
import type { Route } from '../catalog/route.ts';

export const TOOL_CALL: Resource = {
  apiVersion: API_GROUP_VERSION,
  kind: 'ToolCall',
  plural: 'toolcalls',
  namespaced: true,
};

/** On each ToolCall: the node of the gateway that was asked, which is the first to look after it. */
export const LABEL_NODE = 'oz0.ai/node';

/** Selects what may still need somebody; what has ended for good is left out. */
export const OPEN_CALLS = ['Succeeded', 'Failed', 'Refused', 'Stopped', 'Expired']
  .map((phase) => `status.phase!=${phase}`)
  .join(',');

/** What is on record, with the object that says so. */
export interface Recorded {
  readonly object: KubeObject;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly spec: ToolCallSpec;
  readonly status: ToolCallStatus;
  readonly call: Call;
}

/** Reasons of `Failed` that are the tool's answer; any other says that nothing was made. */
const ANSWERED: ReadonlySet<string> = new Set(['tool-error', 'answered']);

/** Undefined for an object that cannot be read, and for one that is being deleted: nothing is done for it. */
export function readToolCall(object: KubeObject): Recorded | undefined {
  const { name, namespace, uid, deletionTimestamp } = object.metadata;
  if (namespace === undefined || uid === undefined || deletionTimestamp !== undefined) return undefined;
  const read = readStored(toolCall.schema, object);
  if (!read.ok) return undefined;
  const { spec, status = {} } = read.value;
  return { object, namespace, name, uid, spec, status, call: callOf(uid, spec, status) };
}

function callOf(uid: string, spec: ToolCallSpec, status: ToolCallStatus): Call {
  const { sender, notAfter, decision, answer } = spec;
  const phase = status.phase ?? (sender === undefined ? 'Waiting' : 'Sending');
  const by = status.claim ?? (sender === undefined || notAfter === undefined ? undefined : { ...sender, notAfter });
  const place = status.toolPod ?? spec.toolPod;
  const reason = status.reason ?? '';
  return {
    phase,
    reason,
    what: whatOf(spec.tool, spec.function, spec.argumentsHash),
    attempt: status.attempts ?? (sender === undefined ? 0 : 1),
    ...(by === undefined ? {} : { claim: { holder: by.pod, nonce: by.nonce, notAfterMs: Date.parse(by.notAfter) } }),
    ...(place === undefined ? {} : { place }),
    // A copy of an object that somebody decided on decides nothing.
    ...(decision?.uid === uid ? { decision: decision.verdict } : {}),
    ...(answer?.uid === uid ? { answer: answer.outcome } : {}),
    again: status.again ?? false,
    notMade: phase === 'Failed' && !ANSWERED.has(reason),
    expiresAtMs: Date.parse(spec.expiresAt),
  };
}

export function whatOf(tool: string, functionName: string, hash: string): string {
  return `${tool}.${functionName} ${hash}`;
}

/** Undefined for arguments that are nested too deeply to be written down. */
export function argumentsHash(args: JsonObject): string | undefined {
  try {
    return sha256(canonicalJson(args));
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

export function sha256(text: string): string {
  return `sha256:${createHash('sha256').update(text).digest('hex')}`;
}

/** A hash of ours as the API writes it. */
export function prefixed(hash: string): string {
  return hash.startsWith('sha256:') ? hash : `sha256:${hash}`;
}

export function newToolCall(namespace: string, name: string, node: string, spec: ToolCallSpec): KubeObject {
  return {
    apiVersion: TOOL_CALL.apiVersion,
    kind: TOOL_CALL.kind,
    metadata: { name, namespace, labels: { [LABEL_NODE]: nodeLabel(node) } },
    spec,
  };
}

/** A node's name may be longer than a label's value. */
export function nodeLabel(node: string): string {
  return node.length <= 63 ? node : createHash('sha256').update(node).digest('hex').slice(0, 40);
}

export interface Claiming {
  readonly claim: Claim;
  /** Of the gateway. */
  readonly node: string;
  /** The pod that the attempt goes to; undefined: none, since it will be refused. */
  readonly place: Route | undefined;
}

/** The object as it is to be written with a claim; the status only. */
export function withClaim(recorded: Recorded, { claim, node, place }: Claiming, nowMs: number): KubeObject {
  const call = claimed(recorded.call, claim, place?.podUid);
  return withStatus(recorded, {
    ...statusOf(recorded, call),
    reason: call.reason,
    claim: { pod: claim.holder, nonce: claim.nonce, node, notAfter: isoOf(claim.notAfterMs) },
    ...placed(place),
    startedAt: isoOf(nowMs),
  });
}

/** With its phase written out. */
export function withPhase(recorded: Recorded): KubeObject {
  return withStatus(recorded, statusOf(recorded, recorded.call));
}

export function withPlace(recorded: Recorded, place: Route): KubeObject {
  return withStatus(recorded, { ...statusOf(recorded, recorded.call), ...placed(place) });
}

function placed(place: Route | undefined): Pick<ToolCallStatus, 'toolPod' | 'node'> {
  if (place === undefined) return {};
  return { toolPod: place.podUid, ...(place.node === '' ? {} : { node: place.node }) };
}

export function withChange(recorded: Recorded, change: Change, nowMs: number, message: string): KubeObject {
  const call = changed(recorded.call, change);
  const open = call.phase === 'Waiting' || call.phase === 'Sending';
  const { message: _message, ...status } = statusOf(recorded, call);
  return withStatus(recorded, {
    ...status,
    ...(message === '' ? {} : { message: message.slice(0, 1_024) }),
    ...(open ? {} : { endedAt: isoOf(nowMs) }),
  });
}

/** What an object without a status says by its spec is written out, so that whoever reads the status has all. */
function statusOf({ status }: Recorded, call: Call): ToolCallStatus {
  const { endedAt: _endedAt, ...rest } = status;
  return {
    ...rest,
    phase: call.phase,
    ...(call.reason === '' ? {} : { reason: call.reason.slice(0, 128) }),
    attempts: call.attempt,
    again: call.again,
    ...(call.place === undefined ? {} : { toolPod: call.place }),
  };
}

function withStatus({ object }: Recorded, status: ToolCallStatus): KubeObject {
  return { ...object, status };
}

/** To the second, as Kubernetes writes times; up, so that nothing ends earlier than was said. */
export function isoOf(ms: number): string {
  return new Date(Math.ceil(ms / 1_000) * 1_000).toISOString().replace('.000Z', 'Z');
}
