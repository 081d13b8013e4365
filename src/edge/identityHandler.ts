/**
 * `POST /v1/identity`: describes the request, asks the API server who sent it, decides, signs. One log line each; no
 * token, request or certificate in it.
 */
import type { KeyObject } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { formatIdentity } from '../domain/identity/identity.ts';
import { AUDIENCE_IDENTITY } from '../domain/naming.ts';
import { ApiError } from '../engine/api-error.ts';
import type { KubeObject, Resource } from '../engine/contract.ts';
import type { KubeClient } from '../kube/client.ts';
import { readBody } from '../mcp/wire/body.ts';
import { verifyCertificateRequest } from '../net/csr.ts';
import { createRateLimit } from '../net/rateLimit.ts';
import type { Log } from '../runtime/log.ts';
import type { EdgeKeys } from './authority.ts';
import { decideIdentity, type IdentityRefusal, type PodFacts, subjectOf, type TokenFacts } from './decideIdentity.ts';
import { type IssueScope, issue } from './issue.ts';

export type RefusalCode =
  | IdentityRefusal
  | 'not-found'
  | 'bad-request'
  | 'too-large'
  | 'unauthenticated'
  /** This pod asks too often. */
  | 'too-many'
  /** So many are being answered that this one must come again. */
  | 'busy'
  /** The API server did not answer. */
  | 'unavailable';

export interface IdentityHandlerOptions {
  readonly client: KubeClient;
  /** As they stand now; undefined while that is not known. */
  readonly keys: () => EdgeKeys | undefined;
  /** Of certificates; unset: the usual one. */
  readonly lifeMs?: number;
  readonly scope: IssueScope;
  readonly log: Log;
  /** Told once for each request. */
  readonly count: (outcome: 'signed' | RefusalCode) => void;
  readonly now?: () => number;
}

const MAX_BODY_BYTES = 16 * 1024;
const BODY_TIMEOUT_MS = 5_000;
const API_TIMEOUT_MS = 5_000;
const MAX_AT_ONCE = 64;
/** A pod asks once in 40 minutes, and again after failures. */
const POD_BURST = 10;
const POD_PER_MINUTE = 6;
const MAX_PODS = 20_000;
const BEARER = /^Bearer ([A-Za-z0-9._~+/=-]{16,8192})$/;
const PODS: Resource = { apiVersion: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };

const STATUS: Partial<Record<RefusalCode, number>> = {
  'not-found': 404,
  'bad-request': 400,
  'too-large': 413,
  unauthenticated: 401,
  'too-many': 429,
  busy: 503,
  unavailable: 503,
};

interface Described {
  readonly token: string;
  readonly publicKey: KeyObject;
}

export function createIdentityHandler(
  options: IdentityHandlerOptions,
): (request: IncomingMessage, response: ServerResponse) => void {
  const { client, scope, log } = options;
  const now = options.now ?? Date.now;
  const perPod = createRateLimit(POD_BURST, POD_PER_MINUTE, MAX_PODS, now);
  let running = 0;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.url !== '/v1/identity' || request.method !== 'POST') return refuse(response, 'not-found');
    const described = await describe(request);
    if (typeof described === 'string') return refuse(response, described);
    // Counted from here: a body that comes slowly takes a connection, and no place of those that are being answered.
    if (running >= MAX_AT_ONCE) return refuse(response, 'busy');
    running++;
    try {
      await answer(described, response);
    } finally {
      running--;
    }
  }

  async function answer(described: Described, response: ServerResponse): Promise<void> {
    const abort = new AbortController();
    response.once('close', () => abort.abort());
    const api = { timeoutMs: API_TIMEOUT_MS, signal: abort.signal };

    const review = await client.reviewToken(described.token, AUDIENCE_IDENTITY, api);
    if (!review.authenticated) return refuse(response, 'unauthenticated');
    const token: TokenFacts = {
      username: review.username,
      podName: review.extra['authentication.kubernetes.io/pod-name'],
      podUid: review.extra['authentication.kubernetes.io/pod-uid'],
    };
    const subject = subjectOf(token);
    if (subject === undefined) return refuse(response, 'not-pod-bound', review.username);
    const pod = `${subject.namespace}/${subject.podName}`;
    if (!perPod.take(subject.podUid)) return refuse(response, 'too-many', pod);
    const found = await client
      .get({ resource: PODS, namespace: subject.namespace, name: subject.podName }, api)
      .catch((error) => {
        if (error instanceof ApiError && error.code === 'notFound') return undefined;
        throw error;
      });

    const decision = decideIdentity(token, found && podFacts(found), scope.namespace, scope.trustDomain);
    if (decision.kind === 'refuse') return refuse(response, decision.reason, pod);
    const keys = options.keys();
    if (keys === undefined) return refuse(response, 'unavailable', pod);
    const signed = issue(keys, scope, decision.identity, described.publicKey, now(), options.lifeMs);
    log.info({ pod, identity: formatIdentity(scope.trustDomain, decision.identity) }, 'identity signed');
    options.count('signed');
    send(response, 200, signed);
  }

  function refuse(response: ServerResponse, code: RefusalCode, subject?: string): void {
    log.warn({ code, ...(subject === undefined ? {} : { subject }) }, 'identity refused');
    options.count(code);
    const status = STATUS[code] ?? 403;
    // What was not read to its end must not be taken for the next request.
    response.setHeader('connection', 'close');
    if (status === 503 || status === 429) response.setHeader('retry-after', '5');
    send(response, status, { error: { code, message: MESSAGES[code] } });
  }

  return (request, response) => {
    serve(request, response).catch((error) => {
      if (response.headersSent || response.destroyed) return;
      const known = error instanceof ApiError;
      if (!known) log.error({ error }, 'bug: an identity request failed');
      refuse(response, 'unavailable', known ? error.code : undefined);
    });
  };
}

async function describe(request: IncomingMessage): Promise<Described | RefusalCode> {
  const token = BEARER.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) return 'unauthenticated';
  const body = await readBody(request, MAX_BODY_BYTES, BODY_TIMEOUT_MS);
  if (!body.ok) return body.status === 413 ? 'too-large' : 'bad-request';
  const csr: unknown = isRecord(body.value) ? body.value['csr'] : undefined;
  const publicKey = typeof csr === 'string' ? verifyCertificateRequest(csr) : undefined;
  return publicKey === undefined ? 'bad-request' : { token, publicKey };
}

/** Leniently: what is missing is undefined, and then equals nothing. */
export function podFacts(pod: KubeObject): PodFacts {
  const spec = isRecord(pod['spec']) ? pod['spec'] : {};
  const status = isRecord(pod['status']) ? pod['status'] : {};
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined);
  return {
    namespace: pod.metadata.namespace ?? '',
    name: pod.metadata.name,
    uid: pod.metadata.uid ?? '',
    terminating: pod.metadata.deletionTimestamp !== undefined,
    phase: text(status['phase']),
    serviceAccount: text(spec['serviceAccountName']),
    node: text(spec['nodeName']),
    labels: pod.metadata.labels ?? {},
  };
}

const MESSAGES: Record<RefusalCode, string> = {
  'not-found': 'POST /v1/identity is all there is',
  'bad-request': 'the body must be {"csr": "<PEM>"}, a request signed by an EC P-256 key',
  'too-large': `the body is longer than ${MAX_BODY_BYTES} bytes`,
  unauthenticated: `a valid token of the audience ${AUDIENCE_IDENTITY} is needed`,
  'not-pod-bound': 'the token is bound to no pod',
  'pod-gone': "the token's pod does not exist",
  'pod-replaced': 'another pod has this name now',
  'pod-terminating': 'the pod is being deleted',
  'pod-ended': 'the pod has ended',
  'account-differs': "the pod runs under another account than its token's",
  'label-differs': "the pod's label is not the one that goes with its account",
  'no-node': 'the pod is on no node yet',
  'not-ours': 'this account gets no identity',
  'too-many': 'this pod asks too often',
  busy: 'too many requests at once',
  unavailable: 'the API server did not answer',
};

function send(response: ServerResponse, status: number, body: object): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
  response.end(text);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
