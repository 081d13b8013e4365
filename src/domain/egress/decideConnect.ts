/**
 * Where a connection may go through egress: the whole decision, pure. A target is judged by its name as asked for; what
 * the name resolves to is judged after resolution, elsewhere.
 */
import type { Identity } from '../identity/identity.ts';
import { SIGNER_ROUTE } from '../naming.ts';

export interface ConnectTarget {
  /** Lower case, no dot at its end. */
  readonly host: string;
  readonly port: number;
}

export interface EgressPolicy {
  /** Hosts that a tool may reach: `<host>:<port>`. None until Tools name some. */
  readonly hosts: (tool: Extract<Identity, { kind: 'tool' }>) => ReadonlySet<string>;
}

export type ConnectDecision =
  /** The signer of identities: the one route that is open to who has none yet. */
  | { readonly kind: 'signer' }
  | { readonly kind: 'host'; readonly target: ConnectTarget }
  | { readonly kind: 'refuse'; readonly reason: ConnectRefusal };

export type ConnectRefusal =
  /** No certificate was shown: only the signer is open. */
  | 'no-identity'
  /** A certificate of ours, but no tool's: other parts have no business here. */
  | 'not-a-tool'
  /** The tool did not name this host. */
  | 'host-not-allowed';

const SIGNER = parseTarget(SIGNER_ROUTE);

export function decideConnect(
  identity: Identity | undefined,
  target: ConnectTarget,
  policy: EgressPolicy,
): ConnectDecision {
  const signer = target.host === SIGNER?.host && target.port === SIGNER.port;
  if (identity === undefined) return signer ? { kind: 'signer' } : refuse('no-identity');
  if (identity.kind !== 'tool') return refuse('not-a-tool');
  if (signer) return { kind: 'signer' };
  const allowed = policy.hosts(identity).has(`${target.host}:${target.port}`);
  return allowed ? { kind: 'host', target } : refuse('host-not-allowed');
}

/** The target of a CONNECT request, `<name>:<port>`; undefined for whatever else: addresses in brackets, user names, paths. */
export function parseTarget(text: string): ConnectTarget | undefined {
  const match = /^([A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?)\.?:([1-9][0-9]{0,4})$/.exec(text);
  const [, host, port] = match ?? [];
  if (host === undefined || host.includes('..') || Number(port) > 65_535) return undefined;
  return { host: host.toLowerCase(), port: Number(port) };
}

function refuse(reason: ConnectRefusal): ConnectDecision {
  return { kind: 'refuse', reason };
}
