/**
 * Where a connection may go through egress: the decision on the name as it was asked for, pure. What the name resolves to is judged
 * after resolution (`judgeAddress.ts`), what is said first within the tunnel by `clientHello.ts`.
 */
import type { Identity } from '../identity/identity.ts';
import { MODEL_ROUTE, SIGNER_ROUTE } from '../naming.ts';
import { type ConnectTarget, type HostPattern, matches, matchesHost, parseTarget } from './host.ts';

export type ToolIdentity = Extract<Identity, { kind: 'tool' }>;

export interface EgressPolicy {
  /** Hosts that a tool may reach. */
  readonly hosts: (tool: ToolIdentity) => Iterable<HostPattern>;
  /** Why a tool has no hosts, where that is not what its Tool says. */
  readonly held?: (tool: ToolIdentity) => HeldReason | undefined;
  /** Whether a tool may ask the cluster's model gateway. [S09] */
  readonly usesModel?: (tool: ToolIdentity) => boolean;
}

export type HeldReason =
  /** Not all is seen yet: absence means nothing. [I1] */
  | 'not-ready'
  | 'no-such-tool'
  /** Its object cannot be read. [I9] */
  | 'tool-broken';

export type ConnectDecision =
  /** The signer of identities: the one route that is open to who has none yet. */
  | { readonly kind: 'signer' }
  /** The cluster's model gateway. */
  | { readonly kind: 'model' }
  | { readonly kind: 'host'; readonly target: ConnectTarget; readonly pattern: HostPattern }
  | { readonly kind: 'refuse'; readonly reason: ConnectRefusal };

export type ConnectRefusal =
  | HeldReason
  /** No certificate was shown: only the signer is open. */
  | 'no-identity'
  /** A certificate of ours, but no tool's: other parts have no business here. */
  | 'not-a-tool'
  /** The tool did not name this host. */
  | 'host-not-allowed'
  /** The tool named this host with another port. */
  | 'port-not-allowed'
  /** Its object does not say that it asks a model. */
  | 'model-not-declared';

const SIGNER = parseTarget(SIGNER_ROUTE);
const MODEL = parseTarget(MODEL_ROUTE);

export function decideConnect(
  identity: Identity | undefined,
  target: ConnectTarget,
  policy: EgressPolicy,
): ConnectDecision {
  const signer = isRoute(target, SIGNER);
  if (identity === undefined) return signer ? { kind: 'signer' } : refuse('no-identity');
  if (identity.kind !== 'tool') return refuse('not-a-tool');
  if (signer) return { kind: 'signer' };
  const held = policy.held?.(identity);
  if (held !== undefined) return refuse(held);
  // No tool can name it among its hosts.
  if (isRoute(target, MODEL)) return policy.usesModel?.(identity) ? { kind: 'model' } : refuse('model-not-declared');
  const patterns = [...policy.hosts(identity)];
  const pattern = patterns.find((each) => matches(each, target));
  if (pattern !== undefined) return { kind: 'host', target, pattern };
  return refuse(patterns.some((each) => matchesHost(each, target)) ? 'port-not-allowed' : 'host-not-allowed');
}

function isRoute(target: ConnectTarget, route: ConnectTarget | undefined): boolean {
  return target.host === route?.host && target.port === route.port;
}

function refuse(reason: ConnectRefusal): ConnectDecision {
  return { kind: 'refuse', reason };
}
