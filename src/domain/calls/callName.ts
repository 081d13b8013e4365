/** The names by which one call is known: to the API server, and to the tool. Pure. */
import { createHash } from 'node:crypto';

/** A ToolCall's name: the same for each delivery of one call of one agent, and for no other. */
export function callName(agentUid: string, callId: string): string {
  return `c-${digest('call', agentUid, callId).slice(0, 40)}`;
}

/**
 * The idempotency key of a call: the same on all its attempts, whichever gateway makes them; no two agents share one, since an
 * agent's uid is in it. Says nothing of the id that it is made from.
 */
export function idempotencyKey(agentUid: string, callId: string): string {
  return digest('key', agentUid, callId).slice(0, 40);
}

/** Parted by what no part holds, so that two lists of parts never read alike. */
function digest(...parts: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(parts)).digest('hex');
}
