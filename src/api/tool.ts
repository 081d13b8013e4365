/** Tool: one MCP server, in pods of its own. */
import type { z } from 'zod';
import { inject, injectRule } from './bindings.ts';
import { functionsFields } from './functions.ts';
import { declaredRule } from './headers.ts';
import { defineKind } from './kind.ts';
import { NAME_MAX, nameRules } from './name.ts';
import { choice, integer, list, object, optional, text } from './schema.ts';
import { ownSecretsRules, secretRef, secretRefRule, secrets } from './secrets.ts';
import { settingsFields, settingsRules } from './settings.ts';
import { hash } from './snapshotApproval.ts';
import { sourceFields } from './sources.ts';
import { statusFields } from './status.ts';

/** Functions named in status; the rest is counted. */
export const LISTED_FUNCTIONS_MAX = 500;

/** Functions of a snapshot kept in status: while the server lists something else, only these go on. */
export const SNAPSHOT_FUNCTIONS_MAX = 512;

/** Secrets and Connections named in status: more than a Tool should ever have. */
export const PROBLEMS_MAX = 64;

export const toolSpec = object(
  {
    plugin: optional(
      text({
        description: 'The Plugin that this Tool is a part of. Set by the controller only.',
        min: 1,
        max: NAME_MAX,
      }),
    ),
    ...sourceFields,
    ...settingsFields,
    ...functionsFields,
    secrets: optional(secrets),
    secretRef: optional(
      secretRef('The Secret of this namespace that holds them. Left out, the one named as the Tool.'),
    ),
    inject: optional(inject),
  },
  {
    description: 'What runs, and how.',
    rules: [...settingsRules, secretRefRule, ...ownSecretsRules, injectRule, declaredRule],
  },
);

const listing = object(
  {
    hash: text({ description: 'Hash of the whole listing.', max: 128 }),
    count: integer({ description: 'How many functions the server lists.', min: 0, max: 1_000_000 }),
    functions: list(
      object(
        {
          name: text({ description: "The server's own name of it.", max: 128 }),
          kind: choice(['ReadOnly', 'Additive', 'Destructive', 'Undeclared'], {
            description: 'What its annotations say that it does.',
          }),
        },
        { description: 'A function.' },
      ),
      {
        description: `The functions, at most ${LISTED_FUNCTIONS_MAX} of them.`,
        max: LISTED_FUNCTIONS_MAX,
        merge: 'atomic',
      },
    ),
  },
  { description: 'What the server was last seen to list.' },
);

const approvedFunctions = list(
  object(
    { name: text({ description: "The server's own name of it.", max: 128 }), hash: hash('Of its definition.') },
    { description: 'A function.' },
  ),
  {
    description: `The functions, at most ${SNAPSHOT_FUNCTIONS_MAX} of them.`,
    max: SNAPSHOT_FUNCTIONS_MAX,
    merge: 'atomic',
  },
);

const snapshot = object(
  {
    hash: hash('Of the approved listing.'),
    from: choice(['FirstListing', 'Approval', 'NewVersion'], {
      description:
        'Why it is the snapshot: it was the first listing, a SnapshotApproval names it, or the policy lets new versions in.',
    }),
    approval: optional(text({ description: 'Name of the SnapshotApproval.', max: 253 })),
    runs: optional(text({ description: 'Mark of the version that was accepted under it.', max: 128 })),
    count: integer({ description: 'How many functions it has.', min: 0, max: 1_000_000 }),
    functions: approvedFunctions,
  },
  { description: 'What the tool may say of itself. Only functions that are so are callable.' },
);

const replaced = object(
  { hash: hash('Of the listing.'), functions: approvedFunctions },
  { description: 'The snapshot before, while pods of that version still serve.' },
);

const pendingListing = object(
  {
    runs: text({ description: 'Mark of the version that lists it.', max: 128 }),
    hash: hash('Of the listing: what a SnapshotApproval would name.'),
    count: integer({ description: 'How many functions it has.', min: 0, max: 1_000_000 }),
    difference: text({ description: 'What differs from the snapshot, for people.', max: 8192 }),
  },
  { description: 'A listing that waits for approval.' },
);

export const toolStatus = object(
  {
    ...statusFields,
    id: optional(text({ description: "The Tool's name in configuration: `-` written as `_`.", max: NAME_MAX })),
    source: optional(choice(['image', 'mcp', 'package', 'url'], { description: 'What runs.' })),
    affinity: optional(choice(['node', 'any'], { description: 'Where its pods are.' })),
    pods: optional(
      object(
        {
          ready: integer({ description: 'Pods that take calls.', min: 0, max: 1_000_000 }),
          desired: integer({ description: 'Pods that should.', min: 0, max: 1_000_000 }),
        },
        { description: 'Its pods.' },
      ),
    ),
    listing: optional(listing),
    snapshot: optional(snapshot),
    replaced: optional(replaced),
    pending: optional(pendingListing),
    connections: optional(
      list(text({ description: 'Name of a Connection.', max: 253 }), {
        description: 'Connections whose credentials its pods have.',
        max: PROBLEMS_MAX,
        merge: 'atomic',
      }),
    ),
    secrets: optional(
      list(
        object(
          {
            secret: text({ description: 'Name of the Secret.', max: 253 }),
            key: text({ description: 'Its key.', max: 253 }),
            problem: choice(['missing', 'empty', 'malformed'], { description: 'What is wrong with it.' }),
          },
          { description: 'A key of a Secret.' },
        ),
        {
          description: 'Secrets that its pods last found to be missing or of no use. Never what one holds.',
          max: PROBLEMS_MAX,
          merge: 'atomic',
        },
      ),
    ),
  },
  { description: 'What is the case; written by the controller only.' },
);

export const tool = defineKind('Tool', {
  plural: 'tools',
  singular: 'tool',
  shortNames: ['ozt'],
  description: 'A tool: one MCP server in sandboxed pods of its own, made by a Plugin or applied by itself.',
  spec: toolSpec,
  status: toolStatus,
  columns: [
    { name: 'Id', type: 'string', path: '.status.id', description: 'Its name in configuration' },
    {
      name: 'Ready',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether it takes calls',
    },
    {
      name: 'Reason',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].reason',
      description: 'Why, or why not',
    },
    { name: 'Source', type: 'string', path: '.status.source', description: 'What runs' },
    { name: 'Affinity', type: 'string', path: '.status.affinity', description: 'Where its pods are' },
    { name: 'Functions', type: 'integer', path: '.status.listing.count', description: 'Functions that it lists' },
    { name: 'Pods', type: 'integer', path: '.status.pods.ready', description: 'Pods that take calls' },
    { name: 'Age', type: 'date', path: '.metadata.creationTimestamp', description: 'Time since it was made' },
    {
      name: 'Plugin',
      type: 'string',
      path: '.spec.plugin',
      description: 'The Plugin that it is a part of',
      wide: true,
    },
    {
      name: 'Snapshot',
      type: 'string',
      path: '.status.snapshot.hash',
      description: 'Hash of what it may say of itself',
      wide: true,
    },
    { name: 'Waits', type: 'string', path: '.status.pending.hash', description: 'Hash that waits', wide: true },
    {
      name: 'Message',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].message',
      description: 'Why, or why not, in words',
      wide: true,
    },
  ],
  rules: [
    ...nameRules,
    {
      cel: "self.metadata.name != 'oz' && (has(self.spec.plugin) || !self.metadata.name.startsWith('oz0-'))",
      test: ({ metadata, spec }) =>
        metadata.name !== 'oz' && (spec.plugin !== undefined || !metadata.name.startsWith('oz0-')),
      message:
        'metadata.name: `oz` is for built-in functions, `oz0-` for plugins that the cluster admin lists as reviewed',
    },
    {
      cel: '!has(self.spec.mcp) || has(self.spec.plugin)',
      test: ({ spec }) => spec.mcp === undefined || spec.plugin !== undefined,
      message: "mcp runs in a Plugin's image: declare the tool in a Plugin, or use image",
      field: '.spec.mcp',
    },
  ],
});

export type Tool = z.output<typeof tool.schema>;
export type ToolSpec = z.output<typeof toolSpec>;
export type ToolStatus = z.output<typeof toolStatus>;

/** `affinity` with its default, which depends on the source. */
export function affinityOf({ affinity, url }: Pick<ToolSpec, 'affinity' | 'url'>): 'node' | 'any' {
  return affinity ?? (url === undefined ? 'node' : 'any');
}
