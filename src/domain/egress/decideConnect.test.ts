import { describe, expect, test } from 'vitest';
import type { Identity } from '../identity/identity.ts';
import { decideConnect, parseTarget } from './decideConnect.ts';

const TOOL: Identity = { kind: 'tool', namespace: 'team', tool: 'search', podUid: 'u' };
const policy = { hosts: (tool: { tool: string }) => new Set(tool.tool === 'search' ? ['api.example.com:443'] : []) };

test.each<[string, Identity | undefined, string, string]>([
  ['nobody, to the signer', undefined, 'edge.oz0.internal:443', 'signer'],
  ['nobody, in capitals, with a dot at the end', undefined, 'EDGE.oz0.internal.:443', 'signer'],
  ['nobody, to another port of it', undefined, 'edge.oz0.internal:8443', 'no-identity'],
  ['nobody, to the tool’s host', undefined, 'api.example.com:443', 'no-identity'],
  ['a tool, to the signer', TOOL, 'edge.oz0.internal:443', 'signer'],
  ['a tool, to its host', TOOL, 'api.example.com:443', 'host'],
  ['a tool, to its host’s other port', TOOL, 'api.example.com:22', 'host-not-allowed'],
  ['a tool, below its host', TOOL, 'x.api.example.com:443', 'host-not-allowed'],
  ['another tool, to that host', { ...TOOL, tool: 'mail' }, 'api.example.com:443', 'host-not-allowed'],
  ['a gateway, to the signer', { kind: 'gateway', node: 'n' }, 'edge.oz0.internal:443', 'not-a-tool'],
  ['edge itself', { kind: 'edge' }, 'api.example.com:443', 'not-a-tool'],
])('[S05] %s', (_name, identity, text, expected) => {
  const target = parseTarget(text);
  if (target === undefined) throw new Error('no target');
  const decision = decideConnect(identity, target, policy);
  expect(decision.kind === 'refuse' ? decision.reason : decision.kind).toBe(expected);
});

describe('targets', () => {
  test.each([
    '',
    'host',
    'host:',
    ':443',
    'host:0',
    'host:65536',
    'host:0443',
    'host:443/',
    'user@host:443',
    '[::1]:443',
    'https://host:443',
    'a..b:443',
    '-a:443',
    'a b:443',
    'a:443\r\nX: y',
    'host:443 ',
    'ho%73t:443',
    `${'a'.repeat(254)}:443`,
  ])('[case 104] %j is none', (text) => {
    expect(parseTarget(text)).toBeUndefined();
  });
});
