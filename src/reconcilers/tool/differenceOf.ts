/** What is told of a listing that waits: part by part where both listings are at hand, else by name. */
import {
  BY_NAME_ONLY,
  type Definitions,
  describeDifference,
  differenceByName,
} from '../../domain/snapshot/difference.ts';
import { unpackListing } from '../../domain/snapshot/packListing.ts';
import { hashDigits } from '../../domain/snapshot/snapshotHash.ts';
import type { SnapshotInput } from './decideSnapshot.ts';
import { definitionsIn, findListing, type StoredListing } from './listings.ts';
import type { givenListing } from './sensors.ts';

/** What was told once is told again in the same words, unless more can be told now: to compare costs more than a look should. */
export function differenceOf(
  stored: readonly StoredListing[],
  given: ReturnType<typeof givenListing>,
): SnapshotInput['differenceOf'] {
  const isAtHand = (hash: string) =>
    findListing(stored, hash) !== undefined || (given.state === 'given' && given.listing.hash === hash);
  const definitions = (hash: string): Definitions | undefined => {
    const kept = findListing(stored, hash);
    if (kept) return definitionsIn(kept, hash);
    if (given.state !== 'given' || given.listing.hash !== hash || given.listing.parts === undefined) return undefined;
    return unpackListing(given.listing.parts, (found) => found === hashDigits(hash));
  };
  return (from, to, told) => {
    if (told !== undefined && !told.includes(BY_NAME_ONLY)) return told;
    if (!isAtHand(from.hash) || !isAtHand(to.hash)) return told ?? differenceByName(from, to);
    const [before, after] = [definitions(from.hash), definitions(to.hash)];
    return before && after ? describeDifference(before, after) : (told ?? differenceByName(from, to));
  };
}
