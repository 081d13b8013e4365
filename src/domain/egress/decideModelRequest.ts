/**
 * Whether a tool's request goes on to the cluster's model gateway: paths that ask a model and no others, since the operator's key could do
 * more there; headers that such a request has; no credential but the placeholder, which is taken out. Pure.
 */
import { isCredentialName } from '../credential/decideInjection.ts';
import { decideRequest, plainName, type RequestRefusal, type Site } from '../credential/decideRequest.ts';
import type { Field, RequestHead } from '../credential/requestHead.ts';
import type { BodyFraming } from '../credential/responseHead.ts';
import { MODEL_PLACEHOLDER } from '../naming.ts';

export type ModelRefusal =
  | RequestRefusal
  /** Not one of those by which a model is asked. */
  | 'path-not-allowed'
  /** A credential that is not the placeholder: it is not for this gateway. */
  | 'own-credential';

export type ModelDecision =
  | {
      readonly do: 'send';
      readonly path: string;
      /** What came after `?`, with it; or nothing. */
      readonly query: string;
      readonly fields: readonly Field[];
      readonly framing: Exclude<BodyFraming, { kind: 'until-close' }>;
      readonly keepAlive: boolean;
    }
  | { readonly do: 'refuse'; readonly reason: ModelRefusal };

/** What SDKs ask of models, in the two usual dialects. */
export const MODEL_PATHS: readonly string[] = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/messages',
  '/v1/models',
  '/v1/responses',
];

const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST']);
const SITE: Site = { host: 'model.oz0.internal', port: 80, scheme: 'http', websocket: false };
/** Names; and beginnings of names, with a dash at their end. */
const PASSED = [
  'accept',
  'content-type',
  'content-encoding',
  'idempotency-key',
  'traceparent',
  'tracestate',
  'user-agent',
  'x-request-id',
  'anthropic-',
  'openai-',
  'x-stainless-',
];

/** @param paths each allows itself and what is below it */
export function decideModelRequest(head: RequestHead, paths: readonly string[]): ModelDecision {
  // The name by which the tool knows its door is the runtime's affair.
  const fields = head.fields.map(([name, value]): Field => [name, name.toLowerCase() === 'host' ? SITE.host : value]);
  const request = decideRequest({ ...head, fields }, SITE);
  if (request.do === 'refuse') return request;
  if (!METHODS.has(head.method)) return { do: 'refuse', reason: 'method-not-allowed' };
  const mark = head.target.indexOf('?');
  const path = mark < 0 ? head.target : head.target.slice(0, mark);
  if (!isPlain(path)) return { do: 'refuse', reason: 'bad-target' };
  if (!paths.some((allowed) => path === allowed || path.startsWith(`${allowed}/`))) {
    return { do: 'refuse', reason: 'path-not-allowed' };
  }
  const passed: Field[] = [];
  for (const [name, value] of request.fields) {
    const plain = plainName(name);
    if (isCredentialName(plain)) {
      if (value !== MODEL_PLACEHOLDER && value !== `Bearer ${MODEL_PLACEHOLDER}`) {
        return { do: 'refuse', reason: 'own-credential' };
      }
    } else if (isPassed(name.toLowerCase())) passed.push([name, value]);
  }
  const query = mark < 0 ? '' : head.target.slice(mark);
  return { do: 'send', path, query, fields: passed, framing: request.framing, keepAlive: request.keepAlive };
}

/** One spelling of each path: nothing encoded, no empty segment, none that leads upwards. */
function isPlain(path: string): boolean {
  if (!/^(?:\/[A-Za-z0-9._~:@-]+)+$/.test(path)) return false;
  return path.split('/').every((segment) => segment !== '.' && segment !== '..');
}

function isPassed(name: string): boolean {
  return PASSED.some((each) => (each.endsWith('-') ? name.startsWith(each) : name === each));
}
