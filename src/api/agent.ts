/** Agent: who may call which functions. */
import type { z } from 'zod';
import { defineKind } from './kind.ts';
import { choice, flag, integer, list, object, optional, text, withDefault } from './schema.ts';
import { statusFields } from './status.ts';

/** Unknown tools named in status; the rest is counted in the condition's message. */
export const AGENT_TOOLS_MAX = 256;

/** `<tool id>.<function>` or `<tool id>.*`. */
export const GRANT = /^[a-z][a-z0-9]*(_[a-z0-9]+)*[.]([*]|[A-Za-z0-9_./-]{1,128})$/;

const agentSpec = object(
  {
    serviceAccounts: list(
      text({
        description: 'Name of a ServiceAccount of this namespace.',
        min: 1,
        max: 253,
        pattern: /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/,
        patternMessage: 'must be the name of a ServiceAccount',
      }),
      { description: 'Who it is: pods that run as one of these ServiceAccounts.', min: 1, max: 32, merge: 'set' },
    ),
    tools: optional(
      list(
        text({
          description: 'A grant.',
          min: 3,
          max: 169,
          pattern: GRANT,
          patternMessage: 'must be <tool id>.<function> or <tool id>.*',
        }),
        {
          description:
            'The functions that it may list and call, as `<tool id>.<function>`, or `<tool id>.*` for all of a tool. Nothing else exists for it.',
          max: AGENT_TOOLS_MAX,
          merge: 'set',
        },
      ),
    ),
    onUnknown: optional(
      choice(['ask', 'fail'], {
        description:
          'What becomes of a call whose outcome nobody knows. `ask`: it waits for a person. `fail`: the job is told to fail. Unset: a person is asked where a person started the job.',
      }),
    ),
    mayAssertStarter: withDefault(flag({ description: 'Whether its word on who started a job is believed.' }), false),
    shadow: withDefault(
      flag({ description: 'Whether it only tries things out: then it calls functions that only read, and no others.' }),
      false,
    ),
  },
  { description: 'Who it is, and what it may call.' },
);

const count = (description: string) => integer({ description, min: 0, max: 1_000_000 });

const agentStatus = object(
  {
    ...statusFields,
    grants: optional(
      object(
        {
          tools: count('Tools that its grants name.'),
          ready: count('Of these, tools that take calls.'),
          functions: count('Functions that it may call now.'),
        },
        { description: 'What its grants come to.' },
      ),
    ),
  },
  { description: 'What is the case; written by the controller only.' },
);

export const agent = defineKind('Agent', {
  plural: 'agents',
  singular: 'agent',
  shortNames: ['oza'],
  description: 'An agent: who it is, by its ServiceAccounts, and the functions that it may list and call.',
  spec: agentSpec,
  status: agentStatus,
  columns: [
    {
      name: 'Ready',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether all that it was granted works',
    },
    {
      name: 'Reason',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].reason',
      description: 'Why, or why not',
    },
    { name: 'Tools', type: 'integer', path: '.status.grants.tools', description: 'Tools that its grants name' },
    {
      name: 'Functions',
      type: 'integer',
      path: '.status.grants.functions',
      description: 'Functions that it may call now',
    },
    { name: 'Age', type: 'date', path: '.metadata.creationTimestamp', description: 'Time since it was made' },
    {
      name: 'Message',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].message',
      description: 'Why, or why not, in words',
      wide: true,
    },
  ],
});

export type Agent = z.output<typeof agent.schema>;
export type AgentSpec = z.output<typeof agentSpec>;
export type AgentStatus = z.output<typeof agentStatus>;
