import { describe, expect, test } from 'vitest';
import { type CompiledPolicy, compilePolicy } from '../domain/policy/compilePolicy.ts';
import type { JsonObject } from '../mcp/wire/jsonrpc.ts';
import { type CompiledAgent, compileGrants, type Grants, unionGrants } from './catalog/agent.ts';
import type { Policies } from './catalog/catalog.ts';
import type { CompiledStop } from './catalog/stop.ts';
import type { CompiledTool } from './catalog/tool.ts';
import { decide, type Question } from './decide.ts';
import { acceptListing } from './listing/listing.ts';

const bare: CompiledTool = {
  namespace: 'acme',
  name: 'acme-github',
  id: 'acme_github',
  affinity: 'node',
  timeoutMs: 1,
  remote: false,
  approved: undefined,
  overrides: { text: '{}', byName: new Map() },
  honoursKey: new Set(),
};
const schema = { type: 'object' };
const listing = acceptListing('acme_github', [
  { name: 'get', inputSchema: schema, annotations: { readOnlyHint: true } },
  { name: 'add', inputSchema: schema, annotations: { readOnlyHint: false, destructiveHint: false } },
  { name: 'merge', inputSchema: schema, annotations: { destructiveHint: true } },
  { name: 'run', inputSchema: schema },
  { name: 'bad', inputSchema: 7 },
]);
const hashOf = (name: string): string => listing.functions.get(name)?.hash ?? '';
const approve = (...names: string[]): Partial<CompiledTool> => ({
  approved: { listings: new Set(), functions: new Set(names.map(hashOf)) },
});
const tool: CompiledTool = { ...bare, ...approve('get', 'add', 'merge', 'run') };
const policyOf = (spec: object, kind: 'ToolPolicy' | 'ClusterToolPolicy' = 'ToolPolicy'): CompiledPolicy =>
  compilePolicy(kind, { apiVersion: 'oz0.ai/v1alpha1', kind, metadata: { name: 'p', namespace: 'acme' }, spec });
const policies = (namespace: readonly object[], cluster: readonly object[] = []): Policies => ({
  namespace: namespace.map((spec) => policyOf(spec)),
  cluster: cluster.map((spec) => policyOf(spec, 'ClusterToolPolicy')),
  aiLabel: undefined,
  aiLabelBroken: false,
});
const called = (args: object = {}, labels: readonly string[] = []): Pick<Question, 'call'> => ({
  call: { args: args as JsonObject, labels, job: { id: 'j', proved: false } },
});
const stop: CompiledStop = { namespace: 'acme', name: 's', target: { kind: 'all' }, because: 'Incident 12' };
const agentOf = (grants: Grants): CompiledAgent => ({
  namespace: 'acme',
  name: 'reviewer',
  uid: 'u',
  serviceAccounts: ['reviewer'],
  grants,
  shadow: false,
  mayAssertStarter: false,
  onUnknown: undefined,
});
const reviewer = agentOf(compileGrants(['acme_github.*']));
const question: Question = {
  grants: compileGrants(['acme_github.*']),
  agents: [reviewer],
  serviceAccount: 'reviewer',
  stop: undefined,
  policies: policies([]),
  apiSilent: false,
  call: undefined,
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
    ['no snapshot yet', { tool: bare }, 'wait', 'no-snapshot'],
    ['refuse beats no snapshot', { tool: bare, callerNode: 'node2' }, 'refuse', 'other-node'],
    ['a pod, never listed', { listing: undefined }, 'wait', 'not-listed'],
    ['no pod, never listed', { listing: undefined, routes: [] }, 'wait', 'no-pod'],
  ];
  test.each(cases)('[D05] [Y04] [I6] %s', (_, change, done, reason) => {
    const decision = decide({ ...question, ...change });
    expect(decision.do).toBe(done);
    expect('reason' in decision ? decision.reason : undefined).toBe(reason);
  });

  const ruled: [string, Partial<Question>, string, string | undefined][] = [
    ['reads', {}, 'run', undefined],
    ['only adds', { functionName: 'add' }, 'run', undefined],
    ['can overwrite', { functionName: 'merge' }, 'ask', undefined],
    ['does not say', { functionName: 'run' }, 'ask', undefined],
    [
      'does not say, allowed',
      { functionName: 'run', policies: policies([{ kinds: { undeclared: 'run' } }]) },
      'run',
      undefined,
    ],
    [
      'a floor under that',
      {
        functionName: 'run',
        policies: policies([{ kinds: { undeclared: 'run' } }], [{ kinds: { undeclared: 'refuse' } }]),
      },
      'refuse',
      'policy',
    ],
    ['a person is asked without a pod', { functionName: 'merge', routes: [] }, 'ask', undefined],
    [
      'refuse beats the want of a pod',
      { routes: [], policies: policies([{ kinds: { readOnly: 'refuse' } }]) },
      'refuse',
      'policy',
    ],
    [
      'two policies of a namespace: the strictest',
      { policies: policies([{ kinds: { readOnly: 'run' } }, { kinds: { readOnly: 'wait' } }]) },
      'ask',
      undefined,
    ],
    ['a policy that cannot be read', { policies: policies([{ kinds: 7 }]) }, 'refuse', 'policy-broken'],
    ['a floor that cannot be read', { policies: policies([], [{ rules: 'x' }]) }, 'refuse', 'policy-broken'],
    [
      'a rule for it',
      { policies: policies([{ rules: [{ name: 'r', functions: ['acme_github.get'], do: 'refuse' }] }]) },
      'refuse',
      'policy',
    ],
    [
      'a rule for another',
      { policies: policies([{ rules: [{ name: 'r', functions: ['acme_github.put'], do: 'refuse' }] }]) },
      'run',
      undefined,
    ],
    ['a shadow reads', { agents: [{ ...reviewer, shadow: true }] }, 'run', undefined],
    ['a shadow adds', { functionName: 'add', agents: [{ ...reviewer, shadow: true }] }, 'refuse', 'shadow'],
    [
      'one of two Agents is a shadow',
      { functionName: 'add', agents: [reviewer, { ...reviewer, name: 'z', shadow: true }] },
      'refuse',
      'shadow',
    ],
    [
      'an Agent that does not grant it is no shadow over it',
      { functionName: 'add', agents: [reviewer, { ...agentOf(new Map()), name: 'z', shadow: true }] },
      'run',
      undefined,
    ],
    ['stopped', { stop }, 'refuse', 'stopped'],
    ['stopped, and not granted', { stop, grants: compileGrants([]) }, 'refuse', 'not-granted'],
    ['changed since it was approved', { tool: { ...bare, ...approve('add') } }, 'refuse', 'not-approved'],
    ['its neighbour goes on', { functionName: 'add', tool: { ...bare, ...approve('add') } }, 'run', undefined],
    ['refuse beats ask', { functionName: 'merge', stop }, 'refuse', 'stopped'],
    ['the API server is silent: reads', { ...called(), apiSilent: true }, 'run', undefined],
    ['the API server is silent: adds', { ...called(), apiSilent: true, functionName: 'add' }, 'refuse', 'api-silent'],
    [
      'the API server is silent: would ask',
      { ...called(), apiSilent: true, functionName: 'merge' },
      'refuse',
      'api-silent',
    ],
    [
      'the API server is silent: is listed',
      { call: undefined, apiSilent: true, functionName: 'add' },
      'run',
      undefined,
    ],
  ];
  test.each(ruled)('[Y01] [Y05] [Y06] [P02] [case 44] [I6] [I7] [I9] %s', (_, change, done, reason) => {
    const decision = decide({ ...question, ...called(), ...change });
    expect([decision.do, 'reason' in decision ? decision.reason : undefined]).toEqual([done, reason]);
  });

  test('[P02] a whole listing that is approved holds functions beyond those that status names', () => {
    const whole = { ...listing, hash: 'b'.repeat(64) };
    const approved = { listings: new Set(['b'.repeat(64)]), functions: new Set<string>() };
    expect(decide({ ...question, listing: whole, tool: { ...bare, approved } }).do).toBe('run');
    expect(decide({ ...question, tool: { ...bare, approved } })).toMatchObject({ reason: 'not-approved' });
  });

  test('[Y02] [Y06] who refused says why', () => {
    const rules = [{ name: 'never', functions: ['*'], do: 'refuse', because: 'People do that.' }];
    expect(decide({ ...question, policies: policies([{ rules }]) })).toMatchObject({
      rule: 'p/never',
      because: 'People do that.',
    });
    expect(decide({ ...question, stop })).toMatchObject({ because: 'Incident 12' });
  });

  test('[Y03] what a person decides about is said: deciders, rule, definition', () => {
    const deciders = { groups: ['oz0:operators'], notStarter: false };
    const rules = [{ name: 'merges', functions: ['acme_github.merge'], do: 'wait', deciders }];
    const decision = decide({ ...question, ...called(), functionName: 'merge', policies: policies([{ rules }]) });
    expect(decision).toMatchObject({ do: 'ask', rule: 'p/merges', deciders: [deciders], kind: 'Destructive' });
    expect(decision.do === 'ask' && decision.listed.hash).toBe(hashOf('merge'));
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
