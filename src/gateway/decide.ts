/**
 * The one decision about a function: may this caller have it run, now, here? Listings, calls and the endpoint of a single
 * tool all ask this function, so that they cannot differ. Pure; the reasons are a closed set. Refuse beats wait beats run.
 */
import type { FunctionKind } from '../domain/config/sidecar.ts';
import { functionKind } from '../domain/snapshot/functionKind.ts';
import { isObject } from '../mcp/wire/jsonrpc.ts';
import { type CompiledAgent, type Grants, isGranted } from './catalog/agent.ts';
import type { Route } from './catalog/route.ts';
import type { CompiledTool } from './catalog/tool.ts';
import type { ListedFunction, Listing } from './listing/listing.ts';

export interface Question {
  /** Undefined: no Agent names the caller. */
  readonly grants: Grants | undefined;
  /** The Agents of those grants, by name. */
  readonly agents: readonly CompiledAgent[];
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
export type ToldReason =
  | 'tool-broken'
  | 'other-node'
  | 'held-back'
  /** A Stop names the tool, its plugin, the agent, the namespace or the cluster. */
  | 'stopped'
  /** The function is not as its approved snapshot says. */
  | 'not-approved'
  /** A rule of a ToolPolicy or ClusterToolPolicy, or its verdict for this kind of function. */
  | 'policy'
  /** Only functions that read are for a shadow Agent. */
  | 'shadow'
  /** Nothing was heard of the API server for too long: a Stop could have been missed. */
  | 'api-silent'
  /** Nobody can be asked yet, and somebody has to be. */
  | 'needs-a-person';
/** Reasons that may pass in a moment. */
export type WaitReason = 'not-listed' | 'no-pod' | 'no-snapshot';

/** What a call goes on under, whether it runs or a person decides first. */
export interface Terms {
  readonly tool: CompiledTool;
  /** Its `hash` is that of the definition which was decided on. */
  readonly listed: ListedFunction;
  readonly routes: readonly Route[];
  /** The Agent by whose grant it is called: the first by name, where there are several. */
  readonly agent: CompiledAgent;
  /** From the annotations with the Tool's overrides. */
  readonly kind: FunctionKind;
  /** Whether it reaches out of the owner's systems; always for a remote tool. */
  readonly openWorld: boolean;
  /** Its server says that calling twice does what calling once does. */
  readonly idempotent: boolean;
  /** Its server keeps the call's idempotency key: said in the approved listing or on the Tool. */
  readonly honoursKey: boolean;
  /** Hash of what the policies said, and of the policies. */
  readonly policyHash: string;
  /** Of the job, when it was decided: `outside` once it read outside text. */
  readonly labels: readonly string[];
}

export interface Deciders {
  readonly roles?: readonly string[];
  readonly groups?: readonly string[];
  readonly notStarter?: boolean;
}

/** Which rule said so, and why, in its author's words. */
export interface RuleSaid {
  readonly rule?: string;
  readonly because?: string;
}

export type Decision =
  | (Terms & { readonly do: 'run' })
  /** A person must decide first. `reason` is a word for programs. */
  | (Terms & RuleSaid & { readonly do: 'ask'; readonly reason: string; readonly deciders?: Deciders })
  | { readonly do: 'wait'; readonly tool: CompiledTool; readonly reason: WaitReason }
  | { readonly do: 'refuse'; readonly hidden: true; readonly reason: HiddenReason }
  | (RuleSaid & { readonly do: 'refuse'; readonly hidden: false; readonly reason: ToldReason });

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
  const agent = question.agents.find((each) => isGranted(each.grants, toolId, functionName));
  if (agent === undefined) return hide('not-granted');
  const { annotations } = listed.definition;
  const hints = isObject(annotations) ? annotations : {};
  return {
    do: 'run',
    tool,
    listed,
    routes,
    agent,
    kind: functionKind(annotations),
    openWorld: hints['openWorldHint'] !== false,
    idempotent: hints['idempotentHint'] === true,
    honoursKey: listed.honoursKey,
    policyHash: '',
    labels: [],
  };
}

function hide(reason: HiddenReason): Decision {
  return { do: 'refuse', hidden: true, reason };
}

function tell(reason: ToldReason): Decision {
  return { do: 'refuse', hidden: false, reason };
}
