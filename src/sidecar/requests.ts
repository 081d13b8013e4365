/** Requests to the sidecar beside MCP: what became of a call, and the whole listing. Who may ask was decided before. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Snapshot } from '../domain/snapshot/snapshotListing.ts';
import { readBody } from '../mcp/wire/body.ts';
import { readJournalQuestion } from '../mcp/wire/callRecord.ts';
import { INVALID_REQUEST } from '../mcp/wire/errorCode.ts';
import { encodeError } from '../mcp/wire/jsonrpc.ts';
import { META_OUTCOME } from '../mcp/wire/meta.ts';
import type { Calls } from './calls.ts';

const MAX_QUESTION_BYTES = 4 * 1024;
const QUESTION_MS = 5_000;
const MAX_LISTING_BYTES = 4 * 1024 * 1024;

/** `POST /calls`. */
export async function answerQuestion(
  request: IncomingMessage,
  response: ServerResponse,
  { ask }: Pick<Calls, 'ask'>,
): Promise<void> {
  const gone = new AbortController();
  response.once('close', () => gone.abort(new Error('nobody waits')));
  try {
    const body = await readBody(request, MAX_QUESTION_BYTES, QUESTION_MS);
    if (!body.ok) return refuse(response, body.status, body.problem);
    const question = readJournalQuestion(body.value);
    if (question === undefined) return refuse(response, 400, 'id, attempt or another field is not as it must be');
    const state = await ask(question, gone.signal);
    if (state === undefined) return refuse(response, 503, 'it cannot be written down');
    send(response, 200, JSON.stringify(state));
  } catch (error) {
    refuse(response, 500, error instanceof Error ? error.message : 'failed');
  }
}

/** `GET /listing`. */
export function answerListing(response: ServerResponse, snapshot: Snapshot | undefined): void {
  if (snapshot === undefined) {
    refuse(response, 503, 'there is no listing now');
    return;
  }
  const { hash, instructions, tools } = snapshot;
  const body = JSON.stringify({ hash, ...(instructions === undefined ? {} : { instructions }), tools });
  if (Buffer.byteLength(body) > MAX_LISTING_BYTES)
    refuse(response, 413, `the listing is larger than ${MAX_LISTING_BYTES} bytes`);
  else send(response, 200, body);
}

/** To the gateway of another node than the pod's: as a refusal of the protocol, which it can tell as one. */
export function refuseNode(response: ServerResponse): void {
  const error = {
    code: INVALID_REQUEST,
    message: 'this tool takes calls from the gateway of its own node alone',
    data: { [META_OUTCOME]: 'not-started', reason: 'other-node' },
  };
  send(response, 403, encodeError(null, error), true);
}

function refuse(response: ServerResponse, status: number, problem: string): void {
  send(response, status, JSON.stringify({ problem }), true);
}

function send(response: ServerResponse, status: number, body: string, last = false): void {
  if (response.headersSent || response.destroyed) return;
  response
    .writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      ...(last ? { connection: 'close' } : {}),
    })
    .end(body);
}
