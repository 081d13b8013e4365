/**
 * The listing of every tool that has a pod to ask: follows the catalog, asks one pod a tool (the own node's where there
 * is one), and keeps what was listed while pods come and go.
 */
import type { Catalog } from '../catalog/catalog.ts';
import type { Route } from '../catalog/route.ts';
import type { CompiledTool } from '../catalog/tool.ts';
import type { Hops } from '../hops.ts';
import { keepListing } from './keepListing.ts';
import type { Listing } from './listing.ts';

export interface Listings {
  readonly of: (tool: CompiledTool) => Listing | undefined;
  /** Tools that have a pod but were never listed. */
  readonly pending: () => readonly string[];
  readonly onChange: (listener: (namespace: string) => void) => () => void;
  readonly close: () => void;
}

export interface ListingsOptions {
  readonly catalog: Catalog;
  readonly hops: Hops;
  readonly ownNode: string;
  readonly minIntervalMs?: number;
  readonly onProblem?: (tool: CompiledTool, problem: string) => void;
}

interface Kept {
  tool: CompiledTool;
  route: Route | undefined;
  listing: Listing | undefined;
  problem: string | undefined;
  stop: (() => void) | undefined;
}

export function createListings(options: ListingsOptions): Listings {
  const { catalog, hops, ownNode } = options;
  const kept = new Map<string, Kept>();
  const listeners = new Set<(namespace: string) => void>();

  const start = (entry: Kept, route: Route): void => {
    const controller = new AbortController();
    const { namespace, name } = entry.tool;
    entry.route = route;
    entry.stop = () => controller.abort();
    void keepListing({
      toolId: entry.tool.id,
      signal: controller.signal,
      ...(options.minIntervalMs === undefined ? {} : { minIntervalMs: options.minIntervalMs }),
      withHop: async (use) => {
        const { hop, giveBack } = hops.borrow({ namespace, tool: name, route }, 'upkeep');
        try {
          return await use(hop);
        } finally {
          giveBack();
        }
      },
      onListing: (listing) => {
        const changed = entry.listing?.text !== listing.text;
        const first = entry.problem !== undefined;
        entry.listing = listing;
        entry.problem = undefined;
        if (changed || first) for (const listener of [...listeners]) listener(namespace);
      },
      onProblem: (problem) => {
        if (entry.problem !== problem) options.onProblem?.(entry.tool, problem);
        entry.problem = problem;
      },
    });
  };

  const follow = (): void => {
    const tools = new Map(catalog.tools().map((tool) => [`${tool.namespace}/${tool.name}`, tool]));
    for (const [key, entry] of kept) {
      if (tools.has(key)) continue;
      entry.stop?.();
      kept.delete(key);
    }
    for (const [key, tool] of tools) {
      let entry = kept.get(key);
      if (entry === undefined) {
        entry = { tool, route: undefined, listing: undefined, problem: undefined, stop: undefined };
        kept.set(key, entry);
      }
      entry.tool = tool;
      const routes = tool.broken === undefined ? catalog.routes(tool) : [];
      const { route } = entry;
      const same = routes.find((each) => each.podUid === route?.podUid && each.address === route?.address);
      if (same !== undefined) continue;
      entry.stop?.();
      entry.stop = undefined;
      entry.route = undefined;
      const next = chooseRoute(routes, ownNode);
      if (next !== undefined) start(entry, next);
    }
    hops.retain(({ namespace, tool, route }) => {
      const known = tools.get(`${namespace}/${tool}`);
      if (known === undefined) return false;
      return catalog.routes(known).some((each) => each.podUid === route.podUid && each.address === route.address);
    });
  };

  // Changes come in bursts (a first list of a thousand objects): one pass for all of a turn.
  let due = false;
  const stopFollowing = catalog.onChange(() => {
    if (due) return;
    due = true;
    setImmediate(() => {
      due = false;
      follow();
    });
  });
  follow();

  return {
    of: (tool) => kept.get(`${tool.namespace}/${tool.name}`)?.listing,
    pending: () =>
      [...kept].filter(([, entry]) => entry.route !== undefined && entry.listing === undefined).map(([key]) => key),
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close: () => {
      stopFollowing();
      for (const entry of kept.values()) entry.stop?.();
      kept.clear();
    },
  };
}

/** The own node's pod, else one that this node prefers over others by chance of its name, so that gateways spread. */
function chooseRoute(routes: readonly Route[], ownNode: string): Route | undefined {
  const own = routes.find((route) => route.node === ownNode);
  if (own !== undefined || routes.length === 0) return own;
  let sum = 0;
  for (const char of ownNode) sum = (sum * 31 + char.charCodeAt(0)) >>> 0;
  return routes[sum % routes.length];
}
