import { expect, test } from 'vitest';
import { compilePolicy } from './compilePolicy.ts';
import { explainPolicy } from './explainPolicy.ts';
import { functionPolicy } from './functionPolicy.ts';

const policy = compilePolicy('ToolPolicy', {
  apiVersion: 'oz0.ai/v1alpha1',
  kind: 'ToolPolicy',
  metadata: { name: 'default', namespace: 'acme' },
  spec: {
    rules: [
      {
        name: 'never-force',
        functions: ['github.*'],
        when: 'args.force == true',
        do: 'refuse',
        because: 'People do that.',
      },
      { name: 'merges', functions: ['github.merge'], do: 'wait', deciders: { groups: ['ops'], notStarter: true } },
      { name: 'broken', functions: ['github.read'], when: 'args.', do: 'run' },
    ],
  },
});
const explain = (name: string, args: Record<string, unknown>) =>
  explainPolicy(
    functionPolicy({
      tool: 'github',
      function: name,
      kind: 'Destructive',
      openWorld: true,
      namespacePolicies: [policy],
      clusterPolicies: [],
    }),
    {
      args,
      agent: { name: 'clerk', namespace: 'acme', serviceAccount: 'clerk' },
      shadow: false,
      job: { proved: true, startedBy: 'jane' },
      labels: [],
    },
  ).join('\n');

test('[Y02] each rule, whether it holds, and what comes of it', () => {
  expect(explain('merge', {})).toMatchInlineSnapshot(`
    "github.merge is destructive, and reaches outside.
    The namespace: rule default/merges (wait) holds for every call
    The namespace: rule default/never-force (refuse) does not hold: args.force == true
    The namespace: of the rules that hold, the strictest.
    The cluster: no rule holds; by its kind: run.
    It waits for a person: of group ops, and not who started the job."
  `);
  expect(explain('merge', { force: true })).toContain(
    'It is refused by default/never-force: the policy says so. People do that.',
  );
  expect(explain('read', {})).toContain('cannot be read, so it refuses what it names');
  expect(explain('other', {})).toContain('no rule holds; by its kind: wait.');
});
