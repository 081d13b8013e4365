/** Connection: a credential of the tenant's for tools, put into their requests to certain hosts. */
import type { z } from 'zod';
import { bind } from './bindings.ts';
import { defineKind } from './kind.ts';
import { ID, NAME_MAX, nameRules } from './name.ts';
import { choice, list, object, text } from './schema.ts';
import { secretRef } from './secrets.ts';
import { statusFields } from './status.ts';

/** What a Connection says, by itself or in a Plugin. */
export const connectionFields = {
  tools: list(
    text({
      description: 'Id of a tool.',
      min: 1,
      max: NAME_MAX,
      pattern: ID,
      patternMessage: 'must be the id of a tool: its name with _ for -',
    }),
    { description: 'Ids of the tools of this namespace that use it.', min: 1, max: 32, merge: 'set' },
  ),
  kind: choice(['secret'], {
    description: 'Where the credential comes from. `secret`: a Secret of this namespace holds it as it is sent.',
  }),
  secret: object(
    {
      secretRef: secretRef('The Secret that holds it.'),
      key: text({
        description: 'Key of the Secret.',
        min: 1,
        max: 253,
        pattern: /^[A-Za-z0-9._-]+$/,
        patternMessage: 'must be a key of a Secret: letters, digits and - _ .',
        rules: [
          {
            cel: "self != '.' && !self.startsWith('..')",
            test: (key) => key !== '.' && !key.startsWith('..'),
            message: 'no key of a Secret is . or starts with ..',
          },
        ],
      }),
    },
    { description: 'Of the kind `secret`.' },
  ),
  bind,
};

const connectionSpec = object(connectionFields, { description: 'Whose credential, for which tools and hosts.' });

const connectionStatus = object(statusFields, { description: 'What is the case; written by the controller only.' });

export const connection = defineKind('Connection', {
  plural: 'connections',
  singular: 'connection',
  shortNames: ['ozc'],
  description:
    'A connection: a credential for tools, which they never see: it is put into their requests to the bound hosts on the way.',
  spec: connectionSpec,
  status: connectionStatus,
  columns: [
    { name: 'Kind', type: 'string', path: '.spec.kind', description: 'Where the credential comes from' },
    {
      name: 'Ready',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether its tools have it',
    },
    {
      name: 'Reason',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].reason',
      description: 'Why, or why not',
    },
    { name: 'Host', type: 'string', path: '.spec.bind[0].host', description: 'The first host that it is bound to' },
    { name: 'Age', type: 'date', path: '.metadata.creationTimestamp', description: 'Time since it was made' },
    { name: 'Tools', type: 'string', path: '.spec.tools', description: 'Tools that use it', wide: true },
    {
      name: 'Message',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].message',
      description: 'Why, or why not, in words',
      wide: true,
    },
  ],
  rules: nameRules,
});

export type Connection = z.output<typeof connection.schema>;
export type ConnectionSpec = z.output<typeof connectionSpec>;
