/** What one tool may have at once and ask for: tunnels open, new tunnels, and names under its wildcards. */
import { createRateLimit } from '../net/rateLimit.ts';

export interface ToolLimitOptions {
  /** Tunnels of one tool at once. */
  readonly tunnels: number;
  /** New tunnels of one tool: at once, and those that come back in a minute. */
  readonly burst: number;
  readonly perMinute: number;
  /** Names under its wildcards that one tool may ask for in an hour: data can leave in names. */
  readonly names: number;
}

export const TOOL_LIMITS: ToolLimitOptions = { tunnels: 256, burst: 256, perMinute: 3_000, names: 500 };

export interface ToolLimits {
  /** Takes a place; undefined: there is none. Returned once, by calling it. */
  readonly take: (tool: string) => (() => void) | undefined;
  /** Whether a tool may ask for a name that only a wildcard allows. */
  readonly takeName: (tool: string, name: string) => boolean;
  readonly open: () => number;
}

const MAX_TOOLS = 20_000;
const HOUR_MS = 3_600_000;

export function createToolLimits(options: ToolLimitOptions, now: () => number): ToolLimits {
  const rate = createRateLimit(options.burst, options.perMinute, MAX_TOOLS, now);
  const openByTool = new Map<string, number>();
  const namesByTool = new Map<string, { readonly since: number; readonly names: Set<string> }>();
  let open = 0;
  return {
    take(tool) {
      const has = openByTool.get(tool) ?? 0;
      if (has >= options.tunnels || !rate.take(tool)) return undefined;
      openByTool.set(tool, has + 1);
      open++;
      let returned = false;
      return () => {
        if (returned) return;
        returned = true;
        open--;
        const left = (openByTool.get(tool) ?? 1) - 1;
        if (left > 0) openByTool.set(tool, left);
        else openByTool.delete(tool);
      };
    },
    takeName(tool, name) {
      const at = now();
      let known = namesByTool.get(tool);
      if (known === undefined || at - known.since > HOUR_MS) {
        known = { since: at, names: new Set() };
        namesByTool.delete(tool);
        namesByTool.set(tool, known);
        const [oldest] = namesByTool.keys();
        if (namesByTool.size > MAX_TOOLS && oldest !== undefined) namesByTool.delete(oldest);
      }
      if (known.names.has(name)) return true;
      if (known.names.size >= options.names) return false;
      known.names.add(name);
      return true;
    },
    open: () => open,
  };
}
