/**
 * What one caller sees now: its granted functions under the names of its endpoint, and what it was granted but cannot be
 * offered. Every function goes through the one decision. Pure but for the lookups that it is given.
 */
import { createHash } from 'node:crypto';
import type { JsonObject } from '../mcp/wire/jsonrpc.ts';
import type { Catalog } from './catalog/catalog.ts';
import type { CompiledTool } from './catalog/tool.ts';
import { type Decision, decide, type HiddenReason, type ToldReason } from './decide.ts';
import { type Job, jobKey } from './job.ts';
import type { JobLabels } from './jobLabels.ts';
import type { Listing } from './listing/listing.ts';
import type { Listings } from './listing/listings.ts';
import { accountKey, type Principal } from './principal.ts';
import { vendorName } from './vendorName.ts';

/** An agent's functions together, or those of one tool under the server's own names. */
export type Endpoint = { readonly kind: 'all' } | { readonly kind: 'tool'; readonly toolName: string };

export interface Caller {
  readonly principal: Principal;
  readonly endpoint: Endpoint;
}

export interface World {
  readonly catalog: Catalog;
  readonly listings: Listings;
  readonly ownNode: string;
  readonly jobs: JobLabels;
  /** Whether nothing was heard of the API server for too long. */
  readonly apiSilent: () => boolean;
}

/** What a call is, beside its function. */
export interface Asked {
  readonly args: JsonObject;
  readonly job: Job;
}

export interface Target {
  readonly toolId: string;
  readonly functionName: string;
}

/** A granted tool, or functions of one, that a listing leaves out. Names only what the caller's grants name. */
export interface Missing {
  readonly tool: string;
  readonly function?: string;
  readonly reason: string;
}

/** Every tool that a caller's grants name at its endpoint, in a stable order. */
function grantedTools(world: World, caller: Caller): readonly string[] {
  const { namespace, serviceAccount } = caller.principal;
  const ids = [...(world.catalog.access(namespace, serviceAccount)?.grants.keys() ?? [])].sort();
  const { endpoint } = caller;
  return endpoint.kind === 'all' ? ids : ids.filter((id) => id === idOfEndpoint(world, caller));
}

/** The id of the tool of a tool's endpoint; undefined where there is none of that name. */
function idOfEndpoint(world: World, { endpoint, principal }: Caller): string | undefined {
  if (endpoint.kind === 'all') return undefined;
  const id = endpoint.toolName.replaceAll('-', '_');
  return world.catalog.tool(principal.namespace, id)?.name === endpoint.toolName ? id : undefined;
}

/** Whether anything of this tool was granted; what was not granted has no endpoint. */
export function hasEndpoint(world: World, caller: Caller): boolean {
  return caller.endpoint.kind === 'all' || grantedTools(world, caller).length > 0;
}

/** @param asked undefined for a listing, which is of no call */
export function decideFor(world: World, caller: Caller, target: Target, asked?: Asked): Decision {
  const { namespace, serviceAccount, node } = caller.principal;
  const tool = world.catalog.tool(namespace, target.toolId);
  const access = world.catalog.access(namespace, serviceAccount);
  return decide({
    grants: access?.grants,
    agents: access?.agents ?? [],
    serviceAccount,
    toolId: target.toolId,
    functionName: target.functionName,
    tool,
    listing: tool === undefined ? undefined : world.listings.of(tool),
    routes: tool === undefined ? [] : world.catalog.routes(tool),
    stop: world.catalog.stopFor(namespace, serviceAccount, target.toolId),
    policies: world.catalog.policies(namespace),
    apiSilent: world.apiSilent(),
    call: asked === undefined ? undefined : { ...asked, labels: labelsOf(world, caller, asked.job) },
    callerNode: node,
    ownNode: world.ownNode,
  });
}

/** What the caller's job carries along. */
export function labelsOf(world: World, { principal }: Caller, job: Job): readonly string[] {
  return world.jobs.of(accountKey(principal), jobKey(principal, job));
}

export interface Offered {
  readonly name: string;
  /** The same object as long as the listing is the same. */
  readonly definition: JsonObject;
}

export interface View {
  readonly offered: readonly Offered[];
  readonly missing: readonly Missing[];
}

export function listFor(world: World, caller: Caller): View {
  const offered: Offered[] = [];
  const missing: Missing[] = [];
  for (const toolId of grantedTools(world, caller)) {
    const { namespace, serviceAccount } = caller.principal;
    const granted = world.catalog.access(namespace, serviceAccount)?.grants.get(toolId);
    const tool = world.catalog.tool(namespace, toolId);
    const listing = tool === undefined ? undefined : world.listings.of(tool);
    const named = granted === undefined || granted === 'every' ? [] : [...granted];
    const known = [...(listing?.functions.keys() ?? []), ...(listing?.heldBack.keys() ?? [])];
    const names = new Set(granted === 'every' ? known : named);
    // A tool of which nothing is known is asked about as a whole.
    if (granted === 'every' && listing === undefined) names.add('*');
    const reasons = new Map<string, string[]>();
    for (const functionName of [...names].sort()) {
      const decision = decideFor(world, caller, { toolId, functionName });
      if (decision.do === 'run' || decision.do === 'ask') {
        const { definition } = decision.described;
        offered.push({ name: shownName(caller.endpoint, toolId, functionName), definition });
      } else if (decision.reason !== 'not-granted' && decision.reason !== 'no-agent') {
        const stopped = reasons.get(decision.reason);
        if (stopped === undefined) reasons.set(decision.reason, [functionName]);
        else stopped.push(functionName);
      }
    }
    for (const [reason, functions] of reasons) missing.push(...sumUp(toolId, reason, functions));
  }
  return { offered, missing };
}

/**
 * Equal for views that show the same. Definitions are read once each, whoever looks and however often: many listeners of
 * one large listing would else take all of this process's time.
 */
export function fingerprint(view: View): string {
  const all = createHash('sha256');
  for (const { name, definition } of view.offered) all.update(name).update(digestOf(definition));
  return all.digest('base64');
}

const digests = new WeakMap<JsonObject, Buffer>();

function digestOf(definition: JsonObject): Buffer {
  let digest = digests.get(definition);
  if (digest === undefined) {
    digest = createHash('sha256').update(JSON.stringify(definition)).digest();
    digests.set(definition, digest);
  }
  return digest;
}

/** Reasons that are of a function, whatever its tool's others are. */
const OF_FUNCTIONS: ReadonlySet<string> = new Set([
  'held-back',
  'no-such-function',
  'not-approved',
  'policy',
  'policy-broken',
  'shadow',
] satisfies (HiddenReason | ToldReason)[]);

/** What stops a whole tool is said once; what stops a function, for each. */
function sumUp(tool: string, reason: string, functions: readonly string[]): readonly Missing[] {
  const ofFunction = OF_FUNCTIONS.has(reason);
  return ofFunction ? functions.map((name) => ({ tool, function: name, reason })) : [{ tool, reason }];
}

function shownName(endpoint: Endpoint, toolId: string, functionName: string): string {
  return endpoint.kind === 'tool' ? functionName : vendorName(toolId, functionName);
}

/**
 * The function that a name means to this caller. Names are compared whole with those that its tools have, never cut
 * apart. Where a granted tool was not listed yet, its functions are known from the grant alone.
 */
export function resolveName(world: World, caller: Caller, name: string): Target | undefined {
  const { namespace } = caller.principal;
  for (const toolId of grantedTools(world, caller)) {
    const tool = world.catalog.tool(namespace, toolId);
    if (tool === undefined) continue;
    const functionName = nameOf(world, caller.endpoint, tool, name);
    if (functionName !== undefined) return { toolId, functionName };
  }
  return undefined;
}

/** The server's name for a shown name, or undefined. */
function nameOf(world: World, endpoint: Endpoint, tool: CompiledTool, shown: string): string | undefined {
  const listing = world.listings.of(tool);
  if (listing === undefined) return unlisted(endpoint, tool.id, shown);
  if (endpoint.kind === 'all') return tableOf(listing, tool.id).get(shown);
  return listing.functions.has(shown) || listing.heldBack.has(shown) ? shown : undefined;
}

/** Model name → the server's, made once for each listing. */
const tables = new WeakMap<Listing, ReadonlyMap<string, string>>();

function tableOf(listing: Listing, toolId: string): ReadonlyMap<string, string> {
  let table = tables.get(listing);
  if (table === undefined) {
    // Where two are shown alike, what is offered comes last and is meant.
    const names = [...listing.heldBack.keys(), ...listing.functions.keys()];
    table = new Map(names.map((name) => [vendorName(toolId, name), name]));
    tables.set(listing, table);
  }
  return table;
}

function unlisted(endpoint: Endpoint, toolId: string, name: string): string | undefined {
  if (endpoint.kind === 'tool') return name;
  // Ids hold no `__`, so a name begins with at most one of them.
  return name.startsWith(`${toolId}__`) ? name.slice(toolId.length + 2) : undefined;
}
