/** ToolListing: a whole listing, kept beside its Tool. Of a kind of its own, so that the controller needs no right to tenants' ConfigMaps. */
import type { z } from 'zod';
import { defineKind } from './kind.ts';
import { NAME_MAX } from './name.ts';
import { integer, object, text } from './schema.ts';
import { hash } from './snapshotApproval.ts';
import { statusFields } from './status.ts';

/** Characters of base64: an object of the API server holds a megabyte and a half in all. */
export const LISTING_PART_MAX = 1_000_000;
/** Of one listing; a larger one is not kept. */
export const LISTING_PARTS_MAX = 3;

const toolListingSpec = object(
  {
    tool: text({ description: 'Name of the Tool.', min: 1, max: NAME_MAX }),
    hash: hash('Of the listing.'),
    part: integer({ description: 'Which part of it this is.', min: 1, max: LISTING_PARTS_MAX }),
    parts: integer({ description: 'How many there are.', min: 1, max: LISTING_PARTS_MAX }),
    data: text({
      description:
        'The part: JSON of `instructions` and `tools`, in gzip, in base64. `kubectl get toollisting <name> -o jsonpath={.spec.data} | base64 -d | gunzip` shows a listing of one part.',
      min: 1,
      max: LISTING_PART_MAX,
    }),
  },
  {
    description: 'The listing.',
    rules: [{ cel: 'self == oldSelf', test: () => true, message: 'a listing that was kept does not change' }],
  },
);

const toolListingStatus = object(statusFields, { description: 'Not used.' });

export const toolListing = defineKind('ToolListing', {
  plural: 'toollistings',
  singular: 'toollisting',
  shortNames: ['oztl'],
  description:
    'What a tool said of itself, word by word: its snapshot, and what waits for approval. Made by the operator; named by its content.',
  spec: toolListingSpec,
  status: toolListingStatus,
  columns: [
    { name: 'Tool', type: 'string', path: '.spec.tool', description: 'The Tool' },
    { name: 'Hash', type: 'string', path: '.spec.hash', description: 'Of the listing' },
    { name: 'Part', type: 'integer', path: '.spec.part', description: 'Which part of it', wide: true },
    { name: 'Age', type: 'date', path: '.metadata.creationTimestamp', description: 'Time since it was made' },
  ],
});

export type ToolListing = z.output<typeof toolListing.schema>;
export type ToolListingSpec = z.output<typeof toolListingSpec>;
