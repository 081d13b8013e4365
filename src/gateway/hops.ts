/**
 * One pool of connections to each tool pod, opened when first needed and closed once the pod is no route any more and its
 * last call ended: a pod that drains keeps the calls that it has.
 */
import type { Hop, HopDispatcher } from '../mcp/hop.ts';
import type { Route } from './catalog/route.ts';

export interface ToolPod {
  readonly namespace: string;
  readonly tool: string;
  readonly route: Route;
}

/** Connections to one pod, whose certificate was seen to name that tool and that pod. */
export interface Connections {
  /** For one request; asked anew for each. */
  readonly dispatcher: () => HopDispatcher;
  /** Cuts what runs. */
  readonly close: () => Promise<void>;
}

export type OpenConnections = (pod: ToolPod) => Connections;

export interface BorrowedHop {
  readonly hop: Hop;
  readonly giveBack: () => void;
}

export interface Hops {
  /** For one request: a `call` counts for spreading, `upkeep` (listings, listeners) does not. */
  readonly borrow: (pod: ToolPod, purpose: 'call' | 'upkeep') => BorrowedHop;
  /** Calls that run at a pod, for spreading. */
  readonly busy: (podUid: string) => number;
  /** Closes what is no route any more, at once or when its last call ends. */
  readonly retain: (isRoute: (pod: ToolPod) => boolean) => void;
  readonly open: () => number;
  readonly close: () => Promise<void>;
}

interface Entry {
  readonly pod: ToolPod;
  readonly connections: Connections;
  uses: number;
  retired: boolean;
}

const PATH = '/mcp';

export function createHops(open: OpenConnections, client: Hop['client']): Hops {
  const entries = new Map<string, Entry>();
  const calls = new Map<string, number>();

  const retire = (key: string, entry: Entry): void => {
    entry.retired = true;
    if (entries.get(key) === entry) entries.delete(key);
    if (entry.uses === 0) void entry.connections.close();
  };

  return {
    borrow: (pod, purpose) => {
      const key = keyOf(pod);
      let entry = entries.get(key);
      if (entry === undefined) {
        entry = { pod, connections: open(pod), uses: 0, retired: false };
        entries.set(key, entry);
      }
      const held = entry;
      held.uses += 1;
      const { podUid } = pod.route;
      if (purpose === 'call') calls.set(podUid, (calls.get(podUid) ?? 0) + 1);
      let given = false;
      return {
        hop: { dispatcher: held.connections.dispatcher(), path: PATH, client },
        giveBack: () => {
          if (given) return;
          given = true;
          held.uses -= 1;
          if (purpose === 'call') {
            const rest = (calls.get(podUid) ?? 1) - 1;
            if (rest === 0) calls.delete(podUid);
            else calls.set(podUid, rest);
          }
          if (held.retired && held.uses === 0) void held.connections.close();
        },
      };
    },
    busy: (podUid) => calls.get(podUid) ?? 0,
    retain: (isRoute) => {
      for (const [key, entry] of [...entries]) if (!isRoute(entry.pod)) retire(key, entry);
    },
    open: () => entries.size,
    close: async () => {
      const all = [...entries.values()];
      entries.clear();
      await Promise.all(all.map((entry) => entry.connections.close()));
    },
  };
}

/** A pod keeps its uid for life, but a route found under another tool or address is another pod to prove. */
function keyOf({ namespace, tool, route }: ToolPod): string {
  return `${namespace}/${tool}/${route.podUid}/${route.address}`;
}
