/** What a tool is told when its request to the model gateway goes nowhere, in the form that models' SDKs show. */
import type { ServerResponse } from 'node:http';
import type { ToolIdentity } from '../domain/egress/decideConnect.ts';
import type { ModelRefusal } from '../domain/egress/decideModelRequest.ts';

export type ModelProblem =
  | ModelRefusal
  | 'too-large'
  /** The operator's Secret is missing, empty or malformed. */
  | 'key-missing'
  | 'unreachable'
  | 'bad-answer';

const STATUS: Partial<Record<ModelProblem, number>> = {
  'method-not-allowed': 405,
  'path-not-allowed': 403,
  'own-credential': 403,
  'upgrade-not-allowed': 403,
  'too-large': 413,
  'key-missing': 503,
  unreachable: 502,
  'bad-answer': 502,
};

/** Answers, and ends the connection. @returns the status */
export function answerModelRefusal(
  response: ServerResponse,
  problem: ModelProblem,
  { namespace, tool }: ToolIdentity,
  paths: readonly string[],
): number {
  const status = STATUS[problem] ?? 400;
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return status;
  }
  const message = messageOf(problem, `Tool ${namespace}/${tool}`, paths);
  const body = JSON.stringify({ error: { code: problem, type: 'oz0_egress', message } });
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  });
  response.end(body);
  return status;
}

function messageOf(problem: ModelProblem, tool: string, paths: readonly string[]): string {
  switch (problem) {
    case 'path-not-allowed':
      return `this is not a path by which a model is asked; those are ${paths.join(', ')}`;
    case 'own-credential':
      return `${tool} brings a credential of its own: the key of the cluster's model gateway is put in on the way, leave OPENAI_API_KEY and ANTHROPIC_API_KEY as they are`;
    case 'key-missing':
      return "the key of the cluster's model gateway is missing, empty or malformed: a cluster admin sets the Secret that model.secretName names";
    case 'unreachable':
      return "the cluster's model gateway does not answer";
    case 'bad-answer':
      return "the cluster's model gateway did not answer with what can be passed on";
    case 'too-large':
      return 'the request is too large';
    default:
      return `the request is not in the form that is taken here (${problem})`;
  }
}
