/**
 * The one decision about a function: may this caller have it run, now, here? Listings, calls and the endpoint of a single
 * tool all ask this function, so that they cannot differ. Pure; the reasons are a closed set. Refuse beats wait beats run.
 */
import type { FunctionKind } from '../domain/config/sidecar.ts';
import type { Deciders } from '../domain/policy/compilePolicy.ts';
import { decidePolicy, type PolicyDecision } from '../domain/policy/decidePolicy.ts';
import type { JsonObject } from '../mcp/wire/jsonrpc.ts';
import { type CompiledAgent, type Grants, isGranted } from './catalog/agent.ts';
import type { Policies } from './catalog/catalog.ts';
import { type PolicyOfFunction, policyFor } from './catalog/policyFor.ts';
import type { Route } from './catalog/route.ts';
import type { CompiledStop } from './catalog/stop.ts';
import type { Approved, CompiledTool } from './catalog/tool.ts';
import type { Job } from './job.ts';
import type { ListedFunction, Listing } from './listing/listing.ts';
import { type DescribedFunction, describeFunction } from './overrides/described.ts';

export interface Question {
  /** Undefined: no Agent names the caller. */
  readonly grants: Grants | undefined;
  /** The Agents of those grants, by name. */
  readonly agents: readonly CompiledAgent[];
  readonly serviceAccount: string;
  /** As the caller wrote it, whatever exists. */
  readonly toolId: string;
  readonly functionName: string;
  /** The tool of that id in the caller's namespace. */
  readonly tool: CompiledTool | undefined;
  /** The Stop that is for this call. */
  readonly stop: CompiledStop | undefined;
  /** What the tool's server lists; undefined before it was first listed. */
  readonly listing: Listing | undefined;
  readonly routes: readonly Route[];
  readonly policies: Policies;
  /** Nothing was heard of the API server for too long. */
  readonly apiSilent: boolean;
  /** Undefined for a listing, which is of no call. */
  readonly call: AskedCall | undefined;
  readonly callerNode: string | undefined;
  readonly ownNode: string;
}

/** What the policy may look at, beside the function. */
export interface AskedCall {
  readonly args: JsonObject;
  readonly job: Job;
  readonly labels: readonly string[];
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
  /** A policy, or a rule of one, cannot be read, and this is what it governs. */
  | 'policy-broken'
  /** It would wait for a person, and there is nobody who could decide. */
  | 'nobody'
  /** Only functions that read are for a shadow Agent. */
  | 'shadow'
  /** Nothing was heard of the API server for too long: a Stop could have been missed. */
  | 'api-silent'
  /** The text that people will read, where the namespace's mark should be, is none. */
  | 'no-place-for-label'
  /** What a person approved is not what would be made now. */
  | 'changed'
  /** A person has to allow it, and did not. */
  | 'needs-a-person';
/** Reasons that may pass in a moment. */
export type WaitReason = 'not-listed' | 'no-pod' | 'no-snapshot';

/** What a call goes on under, whether it runs or a person decides first. */
export interface Terms {
  readonly tool: CompiledTool;
  /** Its `hash` is that of the definition which was decided on. */
  readonly listed: ListedFunction;
  /** The same with what the Tool says of it. */
  readonly described: DescribedFunction;
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
  /** What the namespace puts at the start of texts that people read. */
  readonly aiLabel: string | undefined;
  /** There is such a mark, and nobody can read it. */
  readonly aiLabelBroken: boolean;
  /** Of the job, when it was decided: `outside` once it read outside text. */
  readonly labels: readonly string[];
}

/** Which rule said so, and why, in its author's words. */
export interface RuleSaid {
  readonly rule?: string;
  readonly because?: string;
}

export type Decision =
  | (Terms & { readonly do: 'run' })
  /** A person must decide first, who meets each of the deciders. */
  | (Terms & RuleSaid & { readonly do: 'ask'; readonly deciders: readonly Deciders[] })
  | { readonly do: 'wait'; readonly tool: CompiledTool; readonly reason: WaitReason }
  | { readonly do: 'refuse'; readonly hidden: true; readonly reason: HiddenReason }
  | (RuleSaid & { readonly do: 'refuse'; readonly hidden: false; readonly reason: ToldReason });

export function decide(question: Question): Decision {
  const { grants, toolId, functionName, tool, listing, routes, call } = question;
  if (grants === undefined) return hide('no-agent');
  if (!isGranted(grants, toolId, functionName)) return hide('not-granted');
  if (tool === undefined) return hide('no-such-tool');
  // One is the rule, and grants what all grant.
  const agents =
    question.agents.length === 1
      ? question.agents
      : question.agents.filter((each) => isGranted(each.grants, toolId, functionName));
  const [agent] = agents;
  if (agent === undefined) return hide('not-granted');
  if (tool.broken !== undefined) return tell('tool-broken');
  if (question.stop !== undefined) return tell('stopped', saidBy(question.stop));
  if (listing?.heldBack.has(functionName)) return tell('held-back');
  const listed = listing?.functions.get(functionName);
  if (listing !== undefined && listed === undefined) return hide('no-such-function');
  // A `node` tool touches the caller's machine, so the pod of another node is the wrong one.
  if (tool.affinity === 'node' && question.callerNode !== question.ownNode) return tell('other-node');
  if (listed === undefined) return { do: 'wait', tool, reason: routes.length === 0 ? 'no-pod' : 'not-listed' };
  if (tool.approved === undefined) return { do: 'wait', tool, reason: 'no-snapshot' };
  if (!isApproved(tool.approved, listing?.hash, listed.hash)) return tell('not-approved');
  const described = describeFunction(tool, listed);
  if (described.override?.problem !== undefined) return tell('held-back');

  const { kind } = described;
  const policy = policyFor(tool, listed.name, described, question.policies);
  const verdict = judge(policy, agents, question);
  if (verdict.do === 'refuse') return tell(verdict.reason, saidBy(verdict));
  // Listings are of what may be called, not of what can be at this moment.
  if (question.apiSilent && kind !== 'ReadOnly' && call !== undefined) return tell('api-silent');
  const terms: Terms = {
    tool,
    listed,
    described,
    routes,
    agent,
    kind,
    openWorld: described.openWorld,
    idempotent: described.idempotent,
    honoursKey: described.honoursKey,
    policyHash: policy.of.hash,
    aiLabel: question.policies.aiLabel,
    aiLabelBroken: question.policies.aiLabelBroken,
    labels: call?.labels ?? NO_LABELS,
  };
  if (verdict.do === 'wait') return { do: 'ask', ...terms, ...saidBy(verdict), deciders: verdict.deciders };
  if (routes.length === 0) return { do: 'wait', tool, reason: 'no-pod' };
  return { do: 'run', ...terms };
}

/** For a listing: whether any call of it could run or be asked for. */
function judge(policy: PolicyOfFunction, agents: readonly CompiledAgent[], question: Question): PolicyDecision {
  const { call, serviceAccount } = question;
  const { of, runs } = policy;
  // Of several Agents that grant it nobody can say which one called: the strictest verdict holds.
  const shadow = agents.some((agent) => agent.shadow);
  if (shadow && of.kind !== 'ReadOnly') return { do: 'refuse', reason: 'shadow' };
  if (runs) return RUNS;
  if (call === undefined) return of.neverRuns ? decidePolicy(of, { ...NO_CALL, shadow }) : RUNS;
  return agents
    .map(({ name, namespace }) => {
      const { args, job, labels } = call;
      return decidePolicy(of, { args, job, labels, shadow, agent: { name, namespace, serviceAccount } });
    })
    .reduce((one, other) => (STRICTNESS[other.do] > STRICTNESS[one.do] ? other : one));
}

const RUNS: PolicyDecision = { do: 'run' };
const STRICTNESS = { run: 0, wait: 1, refuse: 2 } as const;
const NO_LABELS: readonly string[] = [];
const NO_CALL = {
  args: {},
  agent: { name: '', namespace: '', serviceAccount: '' },
  job: { proved: false },
  labels: NO_LABELS,
};

/** A whole listing that is approved holds more functions than status has room for. */
function isApproved(approved: Approved, listingHash: string | undefined, functionHash: string): boolean {
  if (approved.functions.has(functionHash)) return true;
  return listingHash !== undefined && approved.listings.has(listingHash);
}

function saidBy(said: RuleSaid): RuleSaid {
  const { rule, because } = said;
  return { ...(rule === undefined ? {} : { rule }), ...(because === undefined ? {} : { because }) };
}

function hide(reason: HiddenReason): Decision {
  return { do: 'refuse', hidden: true, reason };
}

function tell(reason: ToldReason, said: RuleSaid = {}): Decision {
  return { do: 'refuse', hidden: false, reason, ...said };
}
