/** What gateways and the controller may ask of a tool pod, in MCP's terms: from outcomes of the process to answers. */
import type { Identity } from '../domain/identity/identity.ts';
import type { Answer, McpHandler } from '../mcp/handler.ts';
import { INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, passableCode } from '../mcp/wire/errorCode.ts';
import { isObject, type JsonObject, type RpcError } from '../mcp/wire/jsonrpc.ts';
import { META_LISTING, META_OUTCOME, passableMeta, requestMeta } from '../mcp/wire/meta.ts';
import type { CallRefusal } from './decideCall.ts';
import type { RemoteCallOutcome, RemoteTool } from './remote/remoteTool.ts';
import type { ToolProcess } from './toolProcess.ts';

/** What runs the tool: a process of this pod, or a server elsewhere. */
export type ServedTool = Pick<ToolProcess | RemoteTool, 'call' | 'listing' | 'onListing' | 'status'>;

export function createToolHandler(tool: string, process: ServedTool): McpHandler<Identity> {
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
      return answerOf(await process.call(call));
    },
    subscribe: (_peer, onChange) => process.onListing(onChange),
  };
}

export function answerOf(outcome: RemoteCallOutcome): Answer {
  switch (outcome.kind) {
    case 'result':
      return answerOfResult(outcome.result);
    case 'error':
      return { kind: 'error', error: passableError(outcome.error) };
    case 'refused':
      return notStarted(outcome.reason);
    case 'unknown':
      return failure(
        INTERNAL_ERROR,
        outcome.reason === 'timeout' ? 'the tool did not answer in time' : "the tool's process ended in mid-call",
        { [META_OUTCOME]: 'unknown', reason: outcome.reason },
      );
    case 'cancelled':
      // Not read by anybody; told all the same.
      return failure(INTERNAL_ERROR, 'cancelled', { [META_OUTCOME]: 'unknown', reason: 'connection' });
    case 'lost':
      return failure(INTERNAL_ERROR, outcome.problem, { [META_OUTCOME]: 'unknown', reason: 'connection' });
    case 'unreachable':
      return failure(INTERNAL_ERROR, outcome.problem, { [META_OUTCOME]: 'not-started', reason: 'down' });
    case 'refused-by-server':
      return failure(INTERNAL_ERROR, `${outcome.problem}. The call was not made.`);
    case 'no-such-function':
      return failure(INVALID_PARAMS, 'the tool lists no function of this name');
    case 'call-too-large':
      return failure(INVALID_PARAMS, 'the call is larger than the tool takes');
    case 'too-large':
      return failure(INTERNAL_ERROR, "the tool's answer is larger than the limit");
  }
}

function answerOfResult(result: JsonObject): Answer {
  const type = result['resultType'];
  if (type !== undefined && type !== 'complete') {
    return failure(INTERNAL_ERROR, 'the tool asks for more than was said: that is not supported');
  }
  const meta = requestMeta(result);
  return { kind: 'result', result: meta === undefined ? result : { ...result, _meta: passableMeta(meta) } };
}

/** A tool's own error, without what only we may say: an outcome in it would make a gateway call again. */
function passableError(error: RpcError): RpcError {
  const { data } = error;
  const code = passableCode(error.code);
  const message = error.message.slice(0, 4_000);
  if (data === undefined) return { code, message };
  return { code, message, data: isObject(data) ? passableMeta(data) : data };
}

const REFUSALS: Record<CallRefusal, string> = {
  draining: 'the pod is ending',
  down: "the tool's process is down",
  'not-ready': "the tool's process is starting",
  busy: 'all slots of the tool are taken',
};

function notStarted(reason: CallRefusal): Answer {
  return failure(INTERNAL_ERROR, REFUSALS[reason], { [META_OUTCOME]: 'not-started', reason });
}

function failure(code: number, message: string, data?: JsonObject): Answer {
  return { kind: 'error', error: { code, message, ...(data === undefined ? {} : { data }) } };
}
