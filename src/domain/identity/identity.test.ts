import { describe, expect, test } from 'vitest';
import { formatIdentity, type Identity, parseIdentity } from './identity.ts';

const identities: Identity[] = [
  { kind: 'tool', namespace: 'acme', tool: 'acme-github', podUid: '5f0c9a52-9f63-4b4c-a1c6-1f5be9d1f0aa' },
  { kind: 'gateway', node: 'ip-10-0-0-1.ec2.internal' },
  { kind: 'egress' },
  { kind: 'edge' },
  { kind: 'controller' },
];

describe('identities', () => {
  test.each(identities)('[D04] $kind: what is written is read back', (identity) => {
    expect(parseIdentity('cluster.local', formatIdentity('cluster.local', identity))).toEqual(identity);
  });

  test.each([
    ['another trust domain', 'spiffe://evil.test/egress'],
    ['a trust domain that only begins like ours', 'spiffe://cluster.local.evil/egress'],
    ['another scheme', 'https://cluster.local/egress'],
    ['nothing', ''],
    ['an empty path', 'spiffe://cluster.local/'],
    ['more than the form has', 'spiffe://cluster.local/egress/more'],
    ['a trailing slash', 'spiffe://cluster.local/egress/'],
    ['an empty segment', 'spiffe://cluster.local/ns//tool/t/pod/u'],
    ['a query', 'spiffe://cluster.local/egress?x'],
    ['a fragment', 'spiffe://cluster.local/egress#x'],
    ['an escape', 'spiffe://cluster.local/ns/a%2fb/tool/t/pod/u'],
    ['a dotted segment', 'spiffe://cluster.local/ns/../tool/t/pod/u'],
    ['upper case', 'spiffe://cluster.local/Egress'],
    ['an unknown kind', 'spiffe://cluster.local/admin'],
    ['a tool without a pod', 'spiffe://cluster.local/ns/a/tool/t'],
    ['another word in its place', 'spiffe://cluster.local/ns/a/agent/t/pod/u'],
  ])('[D04] refuses %s', (_, uri) => {
    expect(parseIdentity('cluster.local', uri)).toBeUndefined();
  });
});
