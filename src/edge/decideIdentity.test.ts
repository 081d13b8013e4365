import { expect, test } from 'vitest';
import { decideIdentity, type PodFacts, type TokenFacts } from './decideIdentity.ts';

const toolToken: TokenFacts = {
  username: 'system:serviceaccount:team:oz0t-search',
  podName: 'oz0t-search-abc',
  podUid: 'uid-1',
};
const toolPod: PodFacts = {
  namespace: 'team',
  name: 'oz0t-search-abc',
  uid: 'uid-1',
  terminating: false,
  phase: 'Pending',
  serviceAccount: 'oz0t-search',
  node: 'node-1',
  labels: { 'oz0.ai/tool': 'search' },
};
const partOf = (component: string, namespace = 'oz0-system') => ({
  token: { username: `system:serviceaccount:${namespace}:oz0-${component}`, podName: 'p', podUid: 'u' },
  pod: {
    ...toolPod,
    namespace,
    name: 'p',
    uid: 'u',
    serviceAccount: `oz0-${component}`,
    labels: { 'oz0.ai/component': component },
  },
});
const gateway = partOf('gateway');

test.each<[string, TokenFacts, PodFacts | undefined, string]>([
  ['a tool', toolToken, toolPod, 'spiffe tool team/search/uid-1'],
  ['a gateway, of its node', gateway.token, gateway.pod, 'spiffe gateway node-1'],
  ['egress', partOf('egress').token, partOf('egress').pod, 'spiffe egress'],
  ['the controller', partOf('controller').token, partOf('controller').pod, 'spiffe controller'],
  ['a token of a person', { ...toolToken, username: 'alice' }, toolPod, 'not-pod-bound'],
  ['a token bound to no pod', { ...toolToken, podUid: undefined }, toolPod, 'not-pod-bound'],
  [
    'a name with more parts',
    { ...toolToken, username: 'system:serviceaccount:team:oz0t-search:x' },
    toolPod,
    'not-pod-bound',
  ],
  ['a pod that is gone', toolToken, undefined, 'pod-gone'],
  ['a pod that took the name', toolToken, { ...toolPod, uid: 'uid-2' }, 'pod-replaced'],
  ['a pod of another namespace', toolToken, { ...toolPod, namespace: 'other' }, 'pod-replaced'],
  ['a pod on its way out', toolToken, { ...toolPod, terminating: true }, 'pod-terminating'],
  ['a pod that ended', toolToken, { ...toolPod, phase: 'Failed' }, 'pod-ended'],
  ['a pod under another account', toolToken, { ...toolPod, serviceAccount: 'default' }, 'account-differs'],
  ['a tool pod without the label', toolToken, { ...toolPod, labels: {} }, 'label-differs'],
  [
    '[case 79] a tool pod labelled as another tool',
    toolToken,
    { ...toolPod, labels: { 'oz0.ai/tool': 'mail' } },
    'label-differs',
  ],
  [
    'the pod in which a new version of it is tried',
    toolToken,
    { ...toolPod, labels: { 'oz0.ai/tool': 'search.probe' } },
    'spiffe tool team/search/uid-1',
  ],
  [
    '[case 79] that of another tool',
    toolToken,
    { ...toolPod, labels: { 'oz0.ai/tool': 'mail.probe' } },
    'label-differs',
  ],
  ['a part of ours without the label', gateway.token, { ...gateway.pod, labels: {} }, 'label-differs'],
  ['a gateway that is nowhere', gateway.token, { ...gateway.pod, node: undefined }, 'no-node'],
  [
    'our account in a namespace of a tenant',
    partOf('gateway', 'team').token,
    partOf('gateway', 'team').pod,
    'not-ours',
  ],
  ['edge, which signs its own', partOf('edge').token, partOf('edge').pod, 'not-ours'],
  ['any other account', partOf('else').token, partOf('else').pod, 'not-ours'],
  ['a node with a name that cannot be read back', gateway.token, { ...gateway.pod, node: 'a/b' }, 'not-ours'],
])('[D04] %s', (_name, token, pod, expected) => {
  const decision = decideIdentity(token, pod, 'oz0-system', 'oz0.test');
  expect(decision.kind === 'sign' ? `spiffe ${describe(decision.identity)}` : decision.reason).toBe(expected);
});

function describe(identity: object): string {
  const { kind, ...rest } = identity as {
    kind: string;
    namespace?: string;
    tool?: string;
    podUid?: string;
    node?: string;
  };
  return [kind, Object.values(rest).join('/')].filter((part) => part !== '').join(' ');
}
