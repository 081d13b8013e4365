/**
 * Whole listings, for people and for the difference: objects of the Tool that never change, named by their content. What one says is
 * believed only where its hash is the one that was asked for.
 */

import { toolResourceName } from '../../domain/naming.ts';
import type { Definitions } from '../../domain/snapshot/difference.ts';
import { unpackListing } from '../../domain/snapshot/packListing.ts';
import { hashDigits } from '../../domain/snapshot/snapshotHash.ts';
import { snapshotListing } from '../../domain/snapshot/snapshotListing.ts';
import type { ChildRef, KubeObject } from '../../engine/contract.ts';
import { textAt } from '../live.ts';
import { TOOL_LISTING } from '../resources.ts';
import { toolLabels } from './pod.ts';
import { type Hashes, hashesOf } from './snapshot.ts';
import type { WrittenTool } from './tool.ts';

/** `snapshot`: what was approved. `pending`: what waits. One that is approved is written anew, so that no name says what is not so. */
export type ListingRole = 'snapshot' | 'pending';

/** Of the hash, in names: enough that nobody finds two listings for one name. */
const DIGITS = 40;

export function listingObjects(
  tool: WrittenTool,
  role: ListingRole,
  hash: string,
  parts: readonly string[],
): readonly KubeObject[] {
  const { name, namespace = '' } = tool.metadata;
  return parts.map((part, index) => ({
    apiVersion: TOOL_LISTING.apiVersion,
    kind: TOOL_LISTING.kind,
    metadata: { name: nameOf(name, role, hash, index, parts.length), namespace, labels: toolLabels(tool) },
    spec: { tool: name, hash, part: index + 1, parts: parts.length, data: part },
  }));
}

function nameOf(tool: string, role: ListingRole, hash: string, index: number, count: number): string {
  return `${toolResourceName(tool)}--${role}-${hashDigits(hash).slice(0, DIGITS)}-${index + 1}of${count}`;
}

const NAME = /--(snapshot|pending)-([0-9a-f]{40})-([1-9])of([1-9])$/;

/** A listing of which every part is there. */
export interface StoredListing {
  readonly role: ListingRole;
  /** The first 40 digits of its hash. */
  readonly digits: string;
  readonly objects: readonly KubeObject[];
}

export function storedListings(all: readonly KubeObject[]): readonly StoredListing[] {
  const groups = new Map<string, { role: ListingRole; digits: string; count: number; objects: KubeObject[] }>();
  for (const object of [...all].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))) {
    const [, role, digits = '', , count] = NAME.exec(object.metadata.name) ?? [];
    if (role === undefined || object.metadata.deletionTimestamp !== undefined) continue;
    const key = `${role}-${digits}-${count}`;
    const group = groups.get(key) ?? { role: role as ListingRole, digits, count: Number(count), objects: [] };
    groups.set(key, group);
    group.objects.push(object);
  }
  return [...groups.values()].filter(({ count, objects }) => objects.length === count);
}

export function findListing(
  stored: readonly StoredListing[],
  hash: string,
  role?: ListingRole,
): StoredListing | undefined {
  const digits = hashDigits(hash).slice(0, DIGITS);
  return stored.find((listing) => listing.digits === digits && (role === undefined || listing.role === role));
}

export function partsOf({ objects }: StoredListing): readonly string[] {
  return objects.map((object) => textAt(object, 'spec', 'data') ?? '');
}

export function refsOf({ objects }: StoredListing): readonly ChildRef[] {
  return objects.map(({ apiVersion, kind, metadata: { name, namespace } }) => ({
    apiVersion,
    kind,
    name,
    ...(namespace === undefined ? {} : { namespace }),
  }));
}

/**
 * The approved listing by its own word, for a Tool whose status was lost: the oldest, since what came after a first one was approved only
 * by a status that is no more.
 */
export function approvedListing(stored: readonly StoredListing[]): Hashes | undefined {
  const born = ({ objects }: StoredListing) =>
    `${objects[0]?.metadata.creationTimestamp ?? ''} ${objects[0]?.metadata.name}`;
  const oldestFirst = stored.filter(({ role }) => role === 'snapshot').sort((a, b) => (born(a) < born(b) ? -1 : 1));
  for (const listing of oldestFirst) {
    const hashes = hashesIn(listing);
    if (hashes) return hashes;
  }
  return undefined;
}

function hashesIn(listing: StoredListing): Hashes | undefined {
  const definitions = unpackListing(partsOf(listing), (hash) => hash.startsWith(listing.digits));
  return definitions && hashesOf(snapshotListing(definitions.tools, definitions.instructions));
}

export function definitionsIn(listing: StoredListing, hash: string): Definitions | undefined {
  return unpackListing(partsOf(listing), (found) => found === hashDigits(hash));
}
