/** ToolPolicy and ClusterToolPolicy: what runs, what waits for a person, what is refused. */
import type { z } from 'zod';
import { type Column, defineKind } from './kind.ts';
import { LINE, LINE_MESSAGE, policyFields } from './policyFields.ts';
import { choice, object, optional, text } from './schema.ts';
import { statusFields } from './status.ts';

const toolPolicySpec = object(
  {
    ...policyFields,
    newVersions: optional(
      choice(['wait', 'accept'], {
        description:
          'What becomes of a new version of a tool whose listing differs. Unset, it waits for a SnapshotApproval; `accept` lets it in.',
      }),
    ),
    aiLabel: optional(
      text({
        description:
          'Put at the start of texts that people read, where a Tool says which argument that is. Unset, nothing is put.',
        min: 1,
        max: 64,
        pattern: LINE,
        patternMessage: LINE_MESSAGE,
      }),
    ),
  },
  {
    description:
      'What becomes of calls in this namespace. Several policies of a namespace hold together: the strictest wins.',
  },
);

const clusterToolPolicySpec = object(
  {
    ...policyFields,
    newVersions: optional(
      choice(['wait'], {
        description: '`wait`: no namespace may let new versions in whose listing differs.',
      }),
    ),
  },
  { description: 'A floor for every namespace: none of them loosens it. What it does not say is left to them.' },
);

const policyStatus = object(statusFields, { description: 'What is the case; written by the controller only.' });

const columns: readonly Column[] = [
  {
    name: 'Ready',
    type: 'string',
    path: '.status.conditions[?(@.type=="Ready")].status',
    description: 'Whether all of it can be judged',
  },
  {
    name: 'Reason',
    type: 'string',
    path: '.status.conditions[?(@.type=="Ready")].reason',
    description: 'Why, or why not',
  },
  { name: 'Destructive', type: 'string', path: '.spec.kinds.destructive', description: 'What becomes of such calls' },
  { name: 'Undeclared', type: 'string', path: '.spec.kinds.undeclared', description: 'What becomes of such calls' },
  { name: 'Age', type: 'date', path: '.metadata.creationTimestamp', description: 'Time since it was made' },
  {
    name: 'Message',
    type: 'string',
    path: '.status.conditions[?(@.type=="Ready")].message',
    description: 'Why, or why not, in words',
    wide: true,
  },
];

export const toolPolicy = defineKind('ToolPolicy', {
  plural: 'toolpolicies',
  singular: 'toolpolicy',
  shortNames: ['ozpol'],
  description: 'A policy: which calls of a namespace run, wait for a person, or are refused.',
  spec: toolPolicySpec,
  status: policyStatus,
  columns,
});

export const clusterToolPolicy = defineKind('ClusterToolPolicy', {
  plural: 'clustertoolpolicies',
  singular: 'clustertoolpolicy',
  shortNames: ['ozcpol'],
  cluster: true,
  description: 'A floor under the policies of all namespaces, which none of them loosens.',
  spec: clusterToolPolicySpec,
  status: policyStatus,
  columns,
});

export type ToolPolicy = z.output<typeof toolPolicy.schema>;
export type ToolPolicySpec = z.output<typeof toolPolicySpec>;
export type ClusterToolPolicy = z.output<typeof clusterToolPolicy.schema>;
export type ClusterToolPolicySpec = z.output<typeof clusterToolPolicySpec>;
