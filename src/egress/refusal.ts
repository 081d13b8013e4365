/**
 * What came of a request, as a closed set, and how a refusal is told: status, a Proxy-Status (RFC 9209), and a sentence for whoever
 * writes the tool. Names hosts, never addresses: a tool learns nothing of the network from being refused.
 */
import type { ConnectRefusal } from '../domain/egress/decideConnect.ts';
import { type ConnectTarget, formatTarget } from '../domain/egress/host.ts';
import type { NetworkClass } from '../domain/egress/judgeAddress.ts';
import type { Identity } from '../domain/identity/identity.ts';
import type { HostDialled } from '../net/dialHost.ts';

export type EgressOutcome = 'signer' | 'connected' | 'model' | RefusalReason;

export type RefusalReason =
  | ConnectRefusal
  | Exclude<HostDialled['kind'], 'connected'>
  /** Not CONNECT, or a target that is none. */
  | 'bad-request'
  /** This source or tool asks too often, or has too many open. */
  | 'too-many'
  /** This tool asked for too many names under its wildcards. */
  | 'too-many-names'
  /** The cluster's admin has configured none. */
  | 'no-model-gateway'
  /** The signer did not answer. */
  | 'upstream-failed';

export interface Refused {
  readonly reason: RefusalReason;
  readonly peer: Identity | undefined;
  readonly target?: ConnectTarget;
  /** Of the address that refused the host. */
  readonly class?: NetworkClass;
  /** Of DNS or of a connection, such as `ECONNREFUSED`. */
  readonly code?: string;
  /** Entries of the tool's list that cannot be read, in words. */
  readonly problems?: readonly string[];
}

/** Status and the error type of RFC 9209. */
const ANSWERS: Readonly<Record<RefusalReason, readonly [number, string]>> = {
  'no-identity': [403, 'http_request_denied'],
  'not-a-tool': [403, 'http_request_denied'],
  'host-not-allowed': [403, 'http_request_denied'],
  'port-not-allowed': [403, 'http_request_denied'],
  'no-such-tool': [403, 'http_request_denied'],
  'tool-broken': [403, 'http_request_denied'],
  'address-refused': [403, 'destination_ip_prohibited'],
  'model-not-declared': [403, 'http_request_denied'],
  'no-model-gateway': [503, 'proxy_configuration_error'],
  'bad-request': [400, 'http_request_error'],
  'too-many': [429, 'connection_limit_reached'],
  'too-many-names': [429, 'connection_limit_reached'],
  'not-ready': [503, 'proxy_configuration_error'],
  'no-such-name': [502, 'dns_error'],
  'dns-failed': [502, 'dns_error'],
  'too-many-addresses': [502, 'dns_error'],
  'dns-timeout': [504, 'dns_timeout'],
  'connect-failed': [502, 'connection_refused'],
  'connect-timeout': [504, 'connection_timeout'],
  'upstream-failed': [502, 'destination_unavailable'],
  aborted: [503, 'proxy_internal_response'],
};

const STATUS_TEXT: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  403: 'Forbidden',
  405: 'Method Not Allowed',
  429: 'Too Many Requests',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
};

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | number>>;
  readonly body: string;
}

export function answerOf(refused: Refused, status?: number): Answer {
  const [usual, error] = ANSWERS[refused.reason];
  const code = status ?? usual;
  const body = JSON.stringify({
    error: {
      code: refused.reason,
      message: messageOf(refused),
      ...(refused.class === undefined ? {} : { class: refused.class }),
    },
  });
  return {
    status: code,
    headers: {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
      'proxy-status': `oz0-egress; error=${error}; details="${refused.reason}${refused.class ? `: ${refused.class}` : ''}"`,
      ...(code === 405 ? { allow: 'CONNECT' } : {}),
      ...(code === 429 || code === 503 ? { 'retry-after': 5 } : {}),
      connection: 'close',
    },
    body,
  };
}

/** The whole answer, for a connection that has no response object. */
export function writeAnswer({ status, headers, body }: Answer): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_TEXT[status] ?? 'Refused'}\r\n${lines.join('')}\r\n${body}`;
}

function messageOf({ reason, peer, target, class: what, code, problems = [] }: Refused): string {
  const tool = peer?.kind === 'tool' ? `Tool ${peer.namespace}/${peer.tool}` : 'the Tool';
  const host = target === undefined ? 'this host' : target.host;
  const entry = target === undefined ? 'it' : target.port === 443 ? target.host : formatTarget(target);
  const unread =
    problems.length === 0 ? '' : `; entries of its hosts that cannot be read: ${problems.join('; ').slice(0, 600)}`;
  switch (reason) {
    case 'no-identity':
      return 'without a certificate only the signer of identities is open; tools go through their sidecar’s proxy';
    case 'not-a-tool':
      return 'egress is for tools';
    case 'host-not-allowed':
      return `${host} is not among the hosts of ${tool}: add "${entry}" to its spec.hosts${unread}`;
    case 'port-not-allowed':
      return `${host} is among the hosts of ${tool}, with another port: add "${entry}" to its spec.hosts${unread}`;
    case 'no-such-tool':
      return `there is no ${tool} any more`;
    case 'tool-broken':
      return `the hosts of ${tool} cannot be read: ${problems.join('; ').slice(0, 600)}`;
    case 'not-ready':
      return 'egress has not seen the whole configuration yet; try again';
    case 'model-not-declared':
      return `${tool} does not say that it asks a model: set spec.usesModel: true`;
    case 'no-model-gateway':
      return 'the cluster has no model gateway: a cluster admin sets model.url of the chart';
    case 'address-refused':
      return addressMessage(host, what);
    case 'bad-request':
      return 'CONNECT <host>:<port> with the same Host is all there is';
    case 'too-many':
      return 'too many requests or open tunnels at once; close some, or try again later';
    case 'too-many-names':
      return `${tool} asked for too many names under its wildcards; list the hosts one by one`;
    case 'no-such-name':
      return `${host} does not exist, or has no address`;
    case 'too-many-addresses':
      return `${host} has more addresses than egress will judge`;
    case 'dns-failed':
      return `${host} could not be looked up (${code ?? 'unknown'})`;
    case 'dns-timeout':
      return `${host} could not be looked up in time`;
    case 'connect-failed':
      return `${host} could not be connected to (${code ?? 'unknown'})`;
    case 'connect-timeout':
      return `${host} did not answer in time`;
    case 'upstream-failed':
      return 'the other side did not answer';
    case 'aborted':
      return 'egress is about to end; try again';
  }
}

function addressMessage(host: string, what: NetworkClass | undefined): string {
  switch (what) {
    case 'private':
    case 'shared':
      return `${host} leads to a private address (${what}); a cluster admin may open its network: egress.connectAllowNet`;
    case 'cluster-pod':
      return `${host} leads to a pod of this cluster; a cluster admin may open a part of that range: egress.connectAllowNet`;
    default:
      return `${host} leads to an address that no tool reaches (${what ?? 'unknown'})`;
  }
}
