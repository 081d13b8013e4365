/** SnapshotApproval: a person's word that a tool may say exactly this of itself. */
import type { z } from 'zod';
import { defineKind } from './kind.ts';
import { NAME_MAX } from './name.ts';
import { LINE, LINE_MESSAGE } from './policyFields.ts';
import { object, optional, text } from './schema.ts';
import { statusFields } from './status.ts';

/** Of a listing or a definition, as objects name it. */
export const HASH = /^sha256:[0-9a-f]{64}$/;

export const hash = (description: string) =>
  text({ description, min: 71, max: 71, pattern: HASH, patternMessage: 'must be sha256: and 64 hex digits' });

const snapshotApprovalSpec = object(
  {
    tool: text({
      description: 'Name of the Tool.',
      min: 1,
      max: NAME_MAX,
      pattern: /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/,
      patternMessage: 'must be the name of a Tool',
    }),
    hash: hash('Hash of the whole listing, as the Tool’s status shows it.'),
    note: optional(
      text({
        description: 'Why, and on what grounds.',
        min: 1,
        max: 1024,
        pattern: LINE,
        patternMessage: LINE_MESSAGE,
      }),
    ),
  },
  {
    description: 'Which listing of which tool is approved.',
    rules: [
      {
        cel: 'self.tool == oldSelf.tool && self.hash == oldSelf.hash',
        test: () => true,
        message: 'an approval is of one hash: make another one',
      },
    ],
  },
);

const snapshotApprovalStatus = object(
  {
    ...statusFields,
    appliedBy: optional(text({ description: 'Who applied it, where the API server can say.', max: 512 })),
  },
  { description: 'What is the case; written by the controller only.' },
);

export const snapshotApproval = defineKind('SnapshotApproval', {
  plural: 'snapshotapprovals',
  singular: 'snapshotapproval',
  shortNames: ['ozsa'],
  description: 'An approval of one listing of one tool, which may be there before the listing appears.',
  spec: snapshotApprovalSpec,
  status: snapshotApprovalStatus,
  columns: [
    { name: 'Tool', type: 'string', path: '.spec.tool', description: 'The Tool' },
    {
      name: 'Ready',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].status',
      description: 'Whether the tool lists what it approves',
    },
    {
      name: 'Reason',
      type: 'string',
      path: '.status.conditions[?(@.type=="Ready")].reason',
      description: 'Current, Pending or Superseded',
    },
    { name: 'By', type: 'string', path: '.status.appliedBy', description: 'Who applied it' },
    { name: 'Age', type: 'date', path: '.metadata.creationTimestamp', description: 'Time since it was made' },
    { name: 'Hash', type: 'string', path: '.spec.hash', description: 'The listing', wide: true },
    { name: 'Note', type: 'string', path: '.spec.note', description: 'Why', wide: true },
  ],
});

export type SnapshotApproval = z.output<typeof snapshotApproval.schema>;
export type SnapshotApprovalSpec = z.output<typeof snapshotApprovalSpec>;
