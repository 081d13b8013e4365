/** What gateways and the controller may ask of a tool pod, in MCP's terms. */
import type { Identity } from '../domain/identity/identity.ts';
import type { McpHandler } from '../mcp/handler.ts';
import { INVALID_PARAMS, INVALID_REQUEST } from '../mcp/wire/errorCode.ts';
import { META_LISTING } from '../mcp/wire/meta.ts';
import { failure, notStarted, type ServedTool } from './answers.ts';
import type { Calls } from './calls.ts';

export function createToolHandler(tool: string, process: ServedTool, calls: Pick<Calls, 'call'>): McpHandler<Identity> {
  return {
    serverInfo: { name: tool, version: '1' },
    listTools(_peer, cursor) {
      if (cursor !== undefined) return failure(INVALID_PARAMS, 'there is one page');
      const snapshot = process.listing();
      if (snapshot === undefined) {
        const { phase } = process.status();
        return notStarted(phase === 'Draining' ? 'draining' : phase === 'Down' ? 'down' : 'not-ready');
      }
      return { kind: 'result', result: { tools: snapshot.tools, _meta: { [META_LISTING]: snapshot.hash } } };
    },
    async callTool(peer, call) {
      if (peer.kind !== 'gateway') return failure(INVALID_REQUEST, 'only gateways may call');
      return calls.call(call);
    },
    subscribe: (_peer, onChange) => process.onListing(onChange),
  };
}
