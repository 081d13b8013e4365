/** A call as the tool is given it: what a gateway ordered with it was read, and of our own keys those go on that are the tool's. Pure. */
import type { Snapshot } from '../domain/snapshot/snapshotListing.ts';
import type { ToolCall } from '../mcp/handler.ts';
import type { JsonObject } from '../mcp/wire/jsonrpc.ts';
import { passableMeta } from '../mcp/wire/meta.ts';

export interface SidecarCall extends ToolCall {
  /** Hash of the definition that was decided on. */
  readonly definition?: string;
  /** Milliseconds since 1970; nothing reaches the tool later. */
  readonly startBy?: number;
  /** Keys of ours that the tool is to see. */
  readonly told?: JsonObject;
}

export function toolMeta({ meta, told }: SidecarCall): JsonObject {
  return { ...passableMeta(meta), ...told };
}

export function isExpired({ startBy }: SidecarCall, now: number): boolean {
  return startBy !== undefined && now > startBy;
}

/** Whether the function is listed now with another definition than was decided on, or not at all. */
export function hasOtherDefinition({ name, definition }: SidecarCall, snapshot: Snapshot | undefined): boolean {
  if (definition === undefined) return false;
  return snapshot?.functions.find((each) => each.name === name)?.hash !== definition;
}
