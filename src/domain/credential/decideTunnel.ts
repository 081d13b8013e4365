/**
 * What becomes of a request to the proxy itself: a host and port, judged against the bindings. Which hosts the tool may reach
 * at all is egress' to say. Pure.
 */
import type { SecretBinding } from '../config/sidecar.ts';
import { isHostName } from './binding.ts';
import { type Field, type RequestHead, valuesOf } from './requestHead.ts';

/** A host to which a secret is bound. */
export type BoundHost = Pick<SecretBinding, 'host' | 'port'>;

export type TunnelRefusal =
  | 'not-a-proxy-request'
  | 'bad-target'
  | 'wrong-host'
  | 'host-not-allowed'
  /** The bound host on another port, or spelled another way: its secrets' rules would not be seen. */
  | 'bound-host-other-port'
  | 'bound-host-in-clear';

export type TunnelDecision =
  /** Bytes both ways, unread. */
  | { readonly do: 'tunnel'; readonly host: string; readonly port: number }
  /** TLS ends here. */
  | { readonly do: 'open-up'; readonly host: string; readonly port: number }
  /** One request in plain http; `head` is in origin form. */
  | { readonly do: 'send-plain'; readonly host: string; readonly port: number; readonly head: RequestHead }
  | { readonly do: 'refuse'; readonly reason: TunnelRefusal };

export function decideTunnel(head: RequestHead, bound: readonly BoundHost[]): TunnelDecision {
  return head.method === 'CONNECT' ? decideConnect(head, bound) : decidePlain(head, bound);
}

function decideConnect(head: RequestHead, bound: readonly BoundHost[]): TunnelDecision {
  const [, host = '', digits = ''] = /^([^:/@[\]]+):([1-9][0-9]{0,4})$/.exec(head.target) ?? [];
  const port = Number(digits);
  if (host === '' || port > 65_535) return refuse('bad-target');
  // Some clients leave out the port, HTTP/1.0 ones the whole header.
  const named = valuesOf(head.fields, 'host');
  if (named.length > 1 || (named.length === 0 && head.minorVersion === 1)) return refuse('wrong-host');
  if (named[0] !== undefined && named[0] !== head.target && named[0] !== host) return refuse('wrong-host');
  if (hasBody(head.fields)) return refuse('bad-target');
  const problem = hostProblem(host, bound);
  if (problem !== undefined) return refuse(problem);
  const here = bound.filter((each) => each.host === host);
  if (here.length === 0) return { do: 'tunnel', host, port };
  return here.some((each) => each.port === port) ? { do: 'open-up', host, port } : refuse('bound-host-other-port');
}

function decidePlain(head: RequestHead, bound: readonly BoundHost[]): TunnelDecision {
  if (head.target.startsWith('/') || head.target === '*') return refuse('not-a-proxy-request');
  const match = /^http:\/\/([^/?#@\\[\]:]+)(?::([1-9][0-9]{0,4}))?(\/[^#]*)?$/.exec(head.target);
  const [, host = '', digits, path = '/'] = match ?? [];
  const port = Number(digits ?? 80);
  if (host === '' || port > 65_535 || digits === '80') return refuse('bad-target');
  const problem = hostProblem(host, bound);
  if (bound.some((each) => each.host === host)) return refuse('bound-host-in-clear');
  if (problem !== undefined) return refuse(problem);
  return { do: 'send-plain', host, port, head: { ...head, target: path } };
}

function hostProblem(host: string, bound: readonly BoundHost[]): TunnelRefusal | undefined {
  const folded = host.toLowerCase().replace(/\.+$/, '');
  if (folded !== host && bound.some((each) => each.host === folded)) return 'bound-host-other-port';
  if (isLoopback(host)) return 'host-not-allowed';
  return isHostName(host) || isPlainIpv4(host) ? undefined : 'bad-target';
}

/** Canonical: what every resolver reads as the same address. */
function isPlainIpv4(host: string): boolean {
  return /^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!$)|$)){4}$/.test(host);
}

/** The proxy itself is there, and nothing of the world. */
function isLoopback(host: string): boolean {
  return host.startsWith('127.') || host.startsWith('0.') || host === 'localhost' || host.endsWith('.localhost');
}

function hasBody(fields: readonly Field[]): boolean {
  return valuesOf(fields, 'transfer-encoding').length > 0 || valuesOf(fields, 'content-length').some((v) => v !== '0');
}

function refuse(reason: TunnelRefusal): TunnelDecision {
  return { do: 'refuse', reason };
}
