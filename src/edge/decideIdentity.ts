/** Who may get a certificate, and whose: the whole rule, pure. Names come from the API server's word alone. */
import { formatIdentity, type Identity, parseIdentity } from '../domain/identity/identity.ts';
import { LABEL_COMPONENT, LABEL_TOOL, probeLabel, TOOL_RESOURCE_PREFIX } from '../domain/naming.ts';

/** What the token review says of the token. */
export interface TokenFacts {
  /** `system:serviceaccount:<namespace>:<name>` */
  readonly username: string;
  /** Set for a token that is bound to a pod. */
  readonly podName: string | undefined;
  readonly podUid: string | undefined;
}

/** What the API server says of the pod that the token names, now. */
export interface PodFacts {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly terminating: boolean;
  readonly phase: string | undefined;
  readonly serviceAccount: string | undefined;
  readonly node: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
}

export type IdentityRefusal =
  /** The token is no ServiceAccount's, or is bound to no pod. */
  | 'not-pod-bound'
  | 'pod-gone'
  /** Another pod has its name now. */
  | 'pod-replaced'
  | 'pod-terminating'
  | 'pod-ended'
  /** The pod runs under another account than its token's. */
  | 'account-differs'
  /** The pod lacks the label that goes with its account, or has another's. */
  | 'label-differs'
  /** The pod is on no node yet. */
  | 'no-node'
  /** An account that no part of ours has. */
  | 'not-ours';

export type IdentityDecision =
  | { readonly kind: 'sign'; readonly identity: Identity }
  | { readonly kind: 'refuse'; readonly reason: IdentityRefusal };

/** The namespace, account and pod that a token names, before the pod is looked up. */
export function subjectOf(
  token: TokenFacts,
): { namespace: string; account: string; podName: string; podUid: string } | undefined {
  const [system, kind, namespace, account, ...more] = token.username.split(':');
  if (system !== 'system' || kind !== 'serviceaccount' || !namespace || !account || more.length > 0) return undefined;
  const { podName, podUid } = token;
  return podName && podUid ? { namespace, account, podName, podUid } : undefined;
}

/**
 * @param pod undefined: there is none of that name
 * @param operatorNamespace where accounts of our own parts count
 */
export function decideIdentity(
  token: TokenFacts,
  pod: PodFacts | undefined,
  operatorNamespace: string,
  trustDomain: string,
): IdentityDecision {
  const subject = subjectOf(token);
  if (subject === undefined) return refuse('not-pod-bound');
  if (pod === undefined) return refuse('pod-gone');
  if (pod.namespace !== subject.namespace || pod.name !== subject.podName || pod.uid !== subject.podUid) {
    return refuse('pod-replaced');
  }
  if (pod.terminating) return refuse('pod-terminating');
  if (pod.phase === 'Succeeded' || pod.phase === 'Failed') return refuse('pod-ended');
  if (pod.serviceAccount !== subject.account) return refuse('account-differs');
  const decision = byAccount(subject.account, pod, operatorNamespace);
  // What would not be read back as itself must not be signed.
  if (decision.kind === 'sign' && !parseIdentity(trustDomain, formatIdentity(trustDomain, decision.identity))) {
    return refuse('not-ours');
  }
  return decision;
}

function byAccount(account: string, pod: PodFacts, operatorNamespace: string): IdentityDecision {
  if (account.startsWith(TOOL_RESOURCE_PREFIX)) {
    const tool = account.slice(TOOL_RESOURCE_PREFIX.length);
    // The pod in which a new version is tried speaks to the same egress, of the same hosts.
    const label = pod.labels[LABEL_TOOL];
    if (label !== tool && label !== probeLabel(tool)) return refuse('label-differs');
    return { kind: 'sign', identity: { kind: 'tool', namespace: pod.namespace, tool, podUid: pod.uid } };
  }
  if (pod.namespace !== operatorNamespace) return refuse('not-ours');
  const component = account.startsWith('oz0-') ? account.slice('oz0-'.length) : '';
  if (component !== 'gateway' && component !== 'egress' && component !== 'controller') return refuse('not-ours');
  if (pod.labels[LABEL_COMPONENT] !== component) return refuse('label-differs');
  if (component !== 'gateway') return { kind: 'sign', identity: { kind: component } };
  if (!pod.node) return refuse('no-node');
  return { kind: 'sign', identity: { kind: 'gateway', node: pod.node } };
}

function refuse(reason: IdentityRefusal): IdentityDecision {
  return { kind: 'refuse', reason };
}
