import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { judge } from '../../api/judge.ts';
import { toolListing } from '../../api/toolListing.ts';
import type { Definitions } from '../../domain/snapshot/difference.ts';
import { packListing, readListing } from '../../domain/snapshot/packListing.ts';
import { snapshotListing } from '../../domain/snapshot/snapshotListing.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { aTool } from '../testing/objects.ts';
import { approvedListing, definitionsIn, findListing, listingObjects, storedListings } from './listings.ts';
import { parseTool } from './tool.ts';

const parsed = parseTool(aTool());
if (!parsed.ok) throw new Error(parsed.problem);
const TOOL = parsed.value;

const listing = (description: string, instructions?: string): Definitions => ({
  ...(instructions === undefined ? {} : { instructions }),
  tools: [{ name: 'get_pr', description, inputSchema: {} }],
});
const hashOf = ({ tools, instructions }: Definitions) => `sha256:${snapshotListing(tools, instructions).hash}`;
const kept = (definitions: Definitions, role: 'snapshot' | 'pending' = 'snapshot', born = '2026-12-01T00:00:00Z') =>
  listingObjects(TOOL, role, hashOf(definitions), packListing(definitions) ?? []).map(
    (object): KubeObject => ({ ...object, metadata: { ...object.metadata, creationTimestamp: born } }),
  );

describe('[P05] [case 122] whole listings, kept', () => {
  const SMALL = listing('Reads one.', 'Be kind.');
  // What no compression makes smaller.
  const LARGE = listing(randomBytes(900_000).toString('base64'));
  const HUGE = listing(randomBytes(3_000_000).toString('base64'));

  test.for([
    ['a small one, in one object', SMALL, 1],
    ['a large one, in parts', LARGE, 2],
  ] as const)('%s, comes back as it was', ([, definitions, count]) => {
    const objects = kept(definitions);
    expect(objects).toHaveLength(count);
    for (const object of objects) {
      expect(judge(toolListing.schema, object)).toMatchObject({ ok: true });
      expect(object.metadata.name.length).toBeLessThanOrEqual(253);
    }
    const found = findListing(storedListings([...objects].reverse()), hashOf(definitions));
    expect(found && definitionsIn(found, hashOf(definitions))).toEqual(definitions);
  });

  test('one that is larger than that is not kept', () => {
    expect(packListing(HUGE)).toBeUndefined();
  });

  test('one of which a part is missing, or leaving, is none', () => {
    const objects = kept(LARGE);
    expect(storedListings(objects.slice(1))).toEqual([]);
    const leaving = objects.map((object) => ({
      ...object,
      metadata: { ...object.metadata, deletionTimestamp: 'now' },
    }));
    expect(storedListings(leaving)).toEqual([]);
  });

  test.for<[string, object]>([
    ['another listing under its name', { data: packListing(listing('Deletes all.'))?.[0] }],
    ['no gzip', { data: 'AAAA' }],
    ['no base64', { data: '\u0000' }],
    ['nothing', {}],
    ['more than can be unpacked', { data: packListing(listing('x'.repeat(9_000_000)))?.[0] }],
  ])('%s is not believed', ([, spec]) => {
    const [object] = kept(SMALL);
    const stored = storedListings(object ? [{ ...object, spec }] : []);
    expect(stored).toHaveLength(1);
    expect(stored[0] && definitionsIn(stored[0], hashOf(SMALL))).toBeUndefined();
    expect(approvedListing(stored)).toBeUndefined();
  });

  test('names of others are no listings', () => {
    const [object] = kept(SMALL);
    const named = (name: string) => ({ ...object, metadata: { ...object?.metadata, name } }) as KubeObject;
    expect(storedListings(['oz0t-everything', 'oz0t-everything--snapshot-x-1of1'].map(named))).toEqual([]);
  });
});

describe('[case 52] the approved one, by its own word', () => {
  const [first, second] = [listing('Reads one.'), listing('Reads all.')];

  test('the oldest; what waits never counts', () => {
    const objects = [
      ...kept(second),
      ...kept(first, 'snapshot', '2026-11-01T00:00:00Z'),
      ...kept(listing('x'), 'pending', '2026-10-01T00:00:00Z'),
    ];
    expect(approvedListing(storedListings(objects))).toMatchObject({ hash: hashOf(first), count: 1 });
    expect(approvedListing(storedListings(kept(first, 'pending')))).toBeUndefined();
  });
});

test.for<[string, unknown]>([
  ['no object', 'x'],
  ['no tools', { hash: 'x' }],
  ['tools that are no list', { tools: {} }],
  ['instructions that are no text', { tools: [], instructions: 1 }],
  ['another listing', { tools: [{ name: 'x', inputSchema: {} }] }],
])('a sidecar that answers with %s is not believed', ([, answer]) => {
  expect(readListing(answer, (hash) => hash === hashOf(listing('Reads one.')).slice(7))).toBeUndefined();
});
