import { describe, expect, test } from 'vitest';
import { type CompiledAgent, compileGrants, type Grants, unionGrants } from './catalog/agent.ts';
import type { CompiledTool } from './catalog/tool.ts';
import { decide, type Question } from './decide.ts';
import { acceptListing } from './listing/listing.ts';

const tool: CompiledTool = {
  namespace: 'acme',
  name: 'acme-github',
  id: 'acme_github',
  affinity: 'node',
  timeoutMs: 1,
};
const schema = { type: 'object' };
const listing = acceptListing('acme_github', [
  { name: 'get', inputSchema: schema },
  { name: 'bad', inputSchema: 7 },
]);
const agentOf = (grants: Grants): CompiledAgent => ({
  namespace: 'acme',
  name: 'reviewer',
  uid: 'u',
  serviceAccounts: ['reviewer'],
  grants,
});
const question: Question = {
  grants: compileGrants(['acme_github.*']),
  agents: [agentOf(compileGrants(['acme_github.*']))],
  toolId: 'acme_github',
  functionName: 'get',
  tool,
  listing,
  routes: [{ podUid: 'p', address: '10.0.0.1', node: 'node1' }],
  callerNode: 'node1',
  ownNode: 'node1',
};

describe('the decision', () => {
  const cases: [string, Partial<Question>, string, string | undefined][] = [
    ['granted, listed, a pod here', {}, 'run', undefined],
    ['no Agent', { grants: undefined }, 'refuse', 'no-agent'],
    ['an Agent without grants', { grants: compileGrants([]) }, 'refuse', 'not-granted'],
    ['another function granted', { grants: compileGrants(['acme_github.put']) }, 'refuse', 'not-granted'],
    ['the function granted', { grants: compileGrants(['acme_github.get']) }, 'run', undefined],
    ['another tool granted', { grants: compileGrants(['acme_git.*']) }, 'refuse', 'not-granted'],
    ['no such tool', { tool: undefined }, 'refuse', 'no-such-tool'],
    ['not granted beats no such tool', { tool: undefined, grants: compileGrants([]) }, 'refuse', 'not-granted'],
    ['a broken Tool', { tool: { ...tool, broken: 'x' } }, 'refuse', 'tool-broken'],
    ['not listed by the server', { functionName: 'put' }, 'refuse', 'no-such-function'],
    ['held back', { functionName: 'bad' }, 'refuse', 'held-back'],
    ['a caller of another node', { callerNode: 'node2' }, 'refuse', 'other-node'],
    ['a caller of no node', { callerNode: undefined }, 'refuse', 'other-node'],
    ['another node, any affinity', { callerNode: 'node2', tool: { ...tool, affinity: 'any' } }, 'run', undefined],
    ['no pod', { routes: [] }, 'wait', 'no-pod'],
    ['refuse beats wait', { routes: [], callerNode: 'node2' }, 'refuse', 'other-node'],
    ['a pod, never listed', { listing: undefined }, 'wait', 'not-listed'],
    ['no pod, never listed', { listing: undefined, routes: [] }, 'wait', 'no-pod'],
  ];
  test.each(cases)('[D05] [Y04] [I6] %s', (_, change, done, reason) => {
    const decision = decide({ ...question, ...change });
    expect(decision.do).toBe(done);
    expect('reason' in decision ? decision.reason : undefined).toBe(reason);
  });

  test('what is hidden is said so, and nothing else is', () => {
    const hidden = (change: Partial<Question>) => {
      const decision = decide({ ...question, ...change });
      return decision.do === 'refuse' && decision.hidden;
    };
    expect([{ grants: undefined }, { tool: undefined }, { functionName: 'put' }].map(hidden)).toEqual([
      true,
      true,
      true,
    ]);
    expect([{ callerNode: 'x' }, { functionName: 'bad' }, {}].map(hidden)).toEqual([false, false, false]);
  });
});

describe('grants', () => {
  test('parted at the first dot; a function may hold one', () => {
    const grants = compileGrants(['a_b.get.pr', 'a_b.x', 'c.*', 'c.y']);
    expect(grants.get('a_b')).toEqual(new Set(['get.pr', 'x']));
    expect(grants.get('c')).toBe('every');
  });

  test('the union of several Agents', () => {
    const union = unionGrants([compileGrants(['a.x']), compileGrants(['a.y', 'b.*']), compileGrants(['b.z'])]);
    expect(union.get('a')).toEqual(new Set(['x', 'y']));
    expect(union.get('b')).toBe('every');
  });
});
