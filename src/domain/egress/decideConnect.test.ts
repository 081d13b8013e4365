import { expect, test } from 'vitest';
import type { Identity } from '../identity/identity.ts';
import { decideConnect, type EgressPolicy, type HeldReason } from './decideConnect.ts';
import { parseHostPattern, parseTarget } from './host.ts';

const TOOL: Identity = { kind: 'tool', namespace: 'team', tool: 'search', podUid: 'u' };

const policy: EgressPolicy = {
  hosts: ({ tool }) =>
    (tool === 'search' ? ['api.example.com', '*.cdn.example.com:8443', '10.1.2.3:5432'] : []).flatMap((text) => {
      const read = parseHostPattern(text);
      return read.ok ? [read.pattern] : [];
    }),
};

function decide(identity: Identity | undefined, text: string, by: EgressPolicy = policy): string {
  const target = parseTarget(text);
  if (target === undefined) throw new Error('no target');
  const decision = decideConnect(identity, target, by);
  return decision.kind === 'refuse' ? decision.reason : decision.kind;
}

test.each<[string, Identity | undefined, string, string]>([
  ['nobody, to the signer', undefined, 'edge.oz0.internal:443', 'signer'],
  ['nobody, in capitals, with a dot at the end', undefined, 'EDGE.oz0.internal.:443', 'signer'],
  ['nobody, to another port of it', undefined, 'edge.oz0.internal:8443', 'no-identity'],
  ['nobody, to the tool’s host', undefined, 'api.example.com:443', 'no-identity'],
  ['a tool, to the signer', TOOL, 'edge.oz0.internal:443', 'signer'],
  ['a tool, to its host', TOOL, 'api.example.com:443', 'host'],
  ['a tool, to its host in capitals with a dot', TOOL, 'API.example.com.:443', 'host'],
  ['a tool, to its host’s other port', TOOL, 'api.example.com:22', 'port-not-allowed'],
  ['a tool, below its host', TOOL, 'x.api.example.com:443', 'host-not-allowed'],
  ['a tool, to one label before its domain', TOOL, 'x.cdn.example.com:8443', 'host'],
  ['a tool, to two labels before its domain', TOOL, 'y.x.cdn.example.com:8443', 'host-not-allowed'],
  ['a tool, to that domain itself', TOOL, 'cdn.example.com:8443', 'host-not-allowed'],
  ['a tool, to the port of that domain that is not listed', TOOL, 'x.cdn.example.com:443', 'port-not-allowed'],
  ['a tool, to an address that it lists', TOOL, '10.1.2.3:5432', 'host'],
  ['a tool, to an address that it does not', TOOL, '10.1.2.4:5432', 'host-not-allowed'],
  ['a tool, to loopback', TOOL, '[::1]:443', 'host-not-allowed'],
  ['another tool, to that host', { ...TOOL, tool: 'mail' }, 'api.example.com:443', 'host-not-allowed'],
  ['a gateway, to the signer', { kind: 'gateway', node: 'n' }, 'edge.oz0.internal:443', 'not-a-tool'],
  ['edge itself', { kind: 'edge' }, 'api.example.com:443', 'not-a-tool'],
])('[S05] %s', (_name, identity, text, expected) => expect(decide(identity, text)).toBe(expected));

test.each<HeldReason>(['not-ready', 'no-such-tool', 'tool-broken'])('[I1] [I9] held back: %s', (reason) => {
  const held = { ...policy, held: () => reason };
  expect(decide(TOOL, 'api.example.com:443', held)).toBe(reason);
  // The signer is open all the same: identities do not wait for anything.
  expect(decide(TOOL, 'edge.oz0.internal:443', held)).toBe('signer');
});

test.each<[string, Identity | undefined, string, string]>([
  ['a tool that says so', TOOL, 'model.oz0.internal:443', 'model'],
  ['on another port', TOOL, 'model.oz0.internal:80', 'host-not-allowed'],
  ['one that does not', { ...TOOL, tool: 'mail' }, 'model.oz0.internal:443', 'model-not-declared'],
  ['nobody', undefined, 'model.oz0.internal:443', 'no-identity'],
  ['a gateway', { kind: 'gateway', node: 'n' }, 'model.oz0.internal:443', 'not-a-tool'],
])('[S09] to the model gateway: %s', (_name, identity, text, expected) => {
  const asks: EgressPolicy = { ...policy, usesModel: ({ tool }) => tool === 'search' };
  expect(decide(identity, text, asks)).toBe(expected);
  expect(decide(TOOL, 'model.oz0.internal:443', { ...asks, held: () => 'tool-broken' })).toBe('tool-broken');
});

test('[CVE-2025-66479] no host named is none allowed', () => {
  expect(decide(TOOL, 'api.example.com:443', { hosts: () => [] })).toBe('host-not-allowed');
});
