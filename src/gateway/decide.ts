/**
 * The one decision about a function: may this caller have it run, now, here? Listings, calls and the endpoint of a single
 * tool all ask this function, so that they cannot differ. Pure; the reasons are a closed set. Refuse beats wait beats run.
 */
import { type Grants, isGranted } from './catalog/agent.ts';
import type { Route } from './catalog/route.ts';
import type { CompiledTool } from './catalog/tool.ts';
import type { ListedFunction, Listing } from './listing/listing.ts';

export interface Question {
  /** Undefined: no Agent names the caller. */
  readonly grants: Grants | undefined;
  /** As the caller wrote it, whatever exists. */
  readonly toolId: string;
  readonly functionName: string;
  /** The tool of that id in the caller's namespace. */
  readonly tool: CompiledTool | undefined;
  /** What the tool's server lists; undefined before it was first listed. */
  readonly listing: Listing | undefined;
  readonly routes: readonly Route[];
  readonly callerNode: string | undefined;
  readonly ownNode: string;
}

/** Reasons that a caller must not tell apart: whatever it was not granted does not exist for it. */
export type HiddenReason = 'no-agent' | 'not-granted' | 'no-such-tool' | 'no-such-function';
/** Reasons that are told: the caller was granted the function. */
export type ToldReason = 'tool-broken' | 'other-node' | 'held-back';
/** Reasons that may pass in a moment. */
export type WaitReason = 'not-listed' | 'no-pod';

export type Decision =
  | {
      readonly do: 'run';
      readonly tool: CompiledTool;
      readonly listed: ListedFunction;
      readonly routes: readonly Route[];
    }
  | { readonly do: 'wait'; readonly tool: CompiledTool; readonly reason: WaitReason }
  | { readonly do: 'refuse'; readonly hidden: true; readonly reason: HiddenReason }
  | { readonly do: 'refuse'; readonly hidden: false; readonly reason: ToldReason };

export function decide(question: Question): Decision {
  const { grants, toolId, functionName, tool, listing, routes } = question;
  if (grants === undefined) return hide('no-agent');
  if (!isGranted(grants, toolId, functionName)) return hide('not-granted');
  if (tool === undefined) return hide('no-such-tool');
  if (tool.broken !== undefined) return tell('tool-broken');
  if (listing?.heldBack.has(functionName)) return tell('held-back');
  const listed = listing?.functions.get(functionName);
  if (listing !== undefined && listed === undefined) return hide('no-such-function');
  // A `node` tool touches the caller's machine, so the pod of another node is the wrong one.
  if (tool.affinity === 'node' && question.callerNode !== question.ownNode) return tell('other-node');
  if (routes.length === 0) return { do: 'wait', tool, reason: 'no-pod' };
  if (listed === undefined) return { do: 'wait', tool, reason: 'not-listed' };
  return { do: 'run', tool, listed, routes };
}

function hide(reason: HiddenReason): Decision {
  return { do: 'refuse', hidden: true, reason };
}

function tell(reason: ToldReason): Decision {
  return { do: 'refuse', hidden: false, reason };
}
