/**
 * `_meta`: the protocol's own keys, ours, and what a hop may pass on of what another wrote.
 * Keys under `ai.oz0/` carry our parts' word to each other, so one that an agent or a tool's server wrote is dropped.
 */
import { isObject, type JsonObject, type RequestId } from './jsonrpc.ts';

const PROTOCOL_PREFIX = 'io.modelcontextprotocol/';
export const META_VERSION = `${PROTOCOL_PREFIX}protocolVersion`;
export const META_CLIENT_INFO = `${PROTOCOL_PREFIX}clientInfo`;
export const META_CLIENT_CAPABILITIES = `${PROTOCOL_PREFIX}clientCapabilities`;
export const META_SERVER_INFO = `${PROTOCOL_PREFIX}serverInfo`;
export const META_SUBSCRIPTION = `${PROTOCOL_PREFIX}subscriptionId`;
export const META_PROGRESS_TOKEN = 'progressToken';

const OWN_PREFIX = 'ai.oz0/';
/** `not-started` (nothing reached the tool) or `unknown` (nobody can say whether it acted). */
export const META_OUTCOME = `${OWN_PREFIX}outcome`;
/** From an agent: its own id of a call, by which one that is delivered again is known. To it: by which to deliver it again. */
export const META_CALL_ID = `${OWN_PREFIX}call-id`;
/** To an agent: by which kind of failure its job fails. */
export const META_FAILURE = `${OWN_PREFIX}failure`;
/** Why, beside an outcome: a word of a closed set. */
export const META_REASON = `${OWN_PREFIX}reason`;
/** To a sidecar: which attempt of which call this is, and until when it may start; see `callOrders.ts`. */
export const META_CALL = `${OWN_PREFIX}call`;
/** On a call, to the tool itself: calls with the same key are one. */
export const META_IDEMPOTENCY_KEY = `${OWN_PREFIX}idempotency-key`;
/** On a listing: granted tools that could not be listed now. */
export const META_MISSING = `${OWN_PREFIX}missing`;
/** On a function that a server lists: it keeps idempotency keys. */
export const META_HONOURS_KEY = `${OWN_PREFIX}honours-idempotency-key`;
/** On a listing of a tool's sidecar: hex hash of all of it. */
export const META_LISTING = `${OWN_PREFIX}listing`;
/** On a function that is listed: the schema that its Tool says its structured results have. */
export const META_OUTPUT_SCHEMA = `${OWN_PREFIX}output-schema`;
/** On a call: the agent's name for the job that it is a part of, and who started that. */
export const META_JOB_ID = `${OWN_PREFIX}job-id`;
export const META_STARTED_BY = `${OWN_PREFIX}job-started-by`;
/** On a call to a tool's sidecar: hex hash of the definition that was decided on. */
export const META_DEFINITION = `${OWN_PREFIX}definition`;
/** On a call to a tool: what its namespace puts at the start of texts that people read. */
export const META_AI_LABEL = `${OWN_PREFIX}ai-label`;
/** On an error: the Stop, or the rule, that refused. */
export const META_BY = `${OWN_PREFIX}by`;

/** `_meta` of a request's params, where it is an object. */
export function requestMeta(params: JsonObject | undefined): JsonObject | undefined {
  const meta = params?.['_meta'];
  return isObject(meta) ? meta : undefined;
}

/** The progress token of a request, where it asks for progress. */
export function progressToken(meta: JsonObject | undefined): RequestId | undefined {
  const token = meta?.[META_PROGRESS_TOKEN];
  return typeof token === 'string' || typeof token === 'number' ? token : undefined;
}

/**
 * What of the other side's `_meta` goes on: not the keys that describe one hop (version, capabilities, progress token),
 * not ours. Trace context and keys of others pass.
 */
export function passableMeta(meta: JsonObject | undefined): JsonObject {
  const passed: Record<string, unknown> = {};
  if (meta === undefined) return passed;
  for (const key of Object.keys(meta)) if (isPassable(key)) passed[key] = meta[key];
  return passed;
}

function isPassable(key: string): boolean {
  // Compared without case: a reader down the line may be lenient where we are not.
  const lower = key.toLowerCase();
  return !lower.startsWith(OWN_PREFIX) && !lower.startsWith(PROTOCOL_PREFIX) && key !== META_PROGRESS_TOKEN;
}

export interface Envelope {
  readonly version: string;
  readonly capabilities: JsonObject;
}

/** Whether a request claims the stateless era: its `_meta` names a protocol version, well-formed or not. */
export function claimsModern(params: JsonObject | undefined): boolean {
  const meta = requestMeta(params);
  return meta !== undefined && META_VERSION in meta;
}

/** What every request of 2026-07-28 must carry, or the first problem with it. */
export function readEnvelope(
  meta: JsonObject,
): { readonly ok: true; readonly envelope: Envelope } | { readonly ok: false; readonly problem: string } {
  const version = meta[META_VERSION];
  if (typeof version !== 'string') return { ok: false, problem: `${META_VERSION} must be a string` };
  const capabilities = meta[META_CLIENT_CAPABILITIES];
  if (!isObject(capabilities)) return { ok: false, problem: `${META_CLIENT_CAPABILITIES} must be an object` };
  const info = meta[META_CLIENT_INFO];
  if (
    info !== undefined &&
    (!isObject(info) || typeof info['name'] !== 'string' || typeof info['version'] !== 'string')
  )
    return { ok: false, problem: `${META_CLIENT_INFO} needs a name and a version` };
  const token = meta[META_PROGRESS_TOKEN];
  if (token !== undefined && typeof token !== 'string' && !Number.isSafeInteger(token))
    return { ok: false, problem: `${META_PROGRESS_TOKEN} must be a string or an integer` };
  return { ok: true, envelope: { version, capabilities } };
}
