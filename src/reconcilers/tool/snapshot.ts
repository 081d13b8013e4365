/** What a Tool's status keeps of its snapshot: the record of what was approved, which nothing may make the controller learn anew. */
import { SNAPSHOT_FUNCTIONS_MAX } from '../../api/tool.ts';
import type { SidecarStatus } from '../../domain/config/sidecar.ts';
import { writtenHash } from '../../domain/snapshot/snapshotHash.ts';
import { at, countAt, recordsAt, textAt } from '../live.ts';

export interface FunctionHash {
  readonly name: string;
  /** `sha256:` and 64 hex digits. */
  readonly hash: string;
}

/** A listing by its hashes. */
export interface Hashes {
  /** `sha256:` and 64 hex digits. */
  readonly hash: string;
  readonly count: number;
  /** In order of name, at most `SNAPSHOT_FUNCTIONS_MAX`. */
  readonly functions: readonly FunctionHash[];
}

export interface Snapshot extends Hashes {
  /** `FirstListing`, `Approval` or `NewVersion`; one of a later version of the operator is kept as it is. */
  readonly from: string;
  /** Name of the SnapshotApproval. */
  readonly approval?: string;
  /** Of the version that may be rolled out under it. */
  readonly runs?: string;
}

/** What waits for an approval. */
export interface Pending {
  readonly runs: string;
  readonly hash: string;
  readonly count: number;
  readonly difference: string;
}

/** A snapshot's functions while pods of the version that it was of still run. */
export interface Replaced {
  readonly hash: string;
  readonly functions: readonly FunctionHash[];
}

/** Fields of status that outlive everything but the Tool. */
export const SNAPSHOT_RECORDS = ['snapshot', 'pending', 'replaced'] as const;

const NAME = /^[\x21-\x7e]{1,128}$/;

/** What a sidecar says that its server lists; undefined for nothing at all, which never becomes a snapshot [case 55]. */
export function hashesOf(listing: SidecarStatus['listing']): Hashes | undefined {
  const hash = listing && writtenHash(listing.hash);
  if (!listing || hash === undefined || listing.functions.length === 0) return undefined;
  return { hash, count: listing.functions.length, functions: functionsOf(listing.functions) };
}

/** What does not have its form approves nothing. */
function functionsOf(functions: readonly FunctionHash[]): readonly FunctionHash[] {
  return functions
    .flatMap(({ name, hash }) => {
      const written = writtenHash(hash);
      return NAME.test(name) && written !== undefined ? [{ name, hash: written }] : [];
    })
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
    .slice(0, SNAPSHOT_FUNCTIONS_MAX);
}

function storedFunctions(value: unknown): readonly FunctionHash[] {
  return functionsOf(
    recordsAt(value, 'functions').map((item) => ({
      name: textAt(item, 'name') ?? '',
      hash: textAt(item, 'hash') ?? '',
    })),
  );
}

export function readSnapshot(tool: unknown): Snapshot | undefined {
  const stored = at(tool, 'status', 'snapshot');
  const hash = writtenHash(textAt(stored, 'hash') ?? '');
  if (hash === undefined) return undefined;
  const [approval, runs] = [textAt(stored, 'approval'), textAt(stored, 'runs')];
  return {
    hash,
    from: textAt(stored, 'from') ?? 'FirstListing',
    ...(approval === undefined ? {} : { approval }),
    ...(runs === undefined ? {} : { runs }),
    count: countAt(stored, 'count'),
    functions: storedFunctions(stored),
  };
}

export function readPending(tool: unknown): Pending | undefined {
  const stored = at(tool, 'status', 'pending');
  const hash = writtenHash(textAt(stored, 'hash') ?? '');
  const runs = textAt(stored, 'runs');
  if (hash === undefined || runs === undefined) return undefined;
  return { runs, hash, count: countAt(stored, 'count'), difference: textAt(stored, 'difference') ?? '' };
}

export function readReplaced(tool: unknown): Replaced | undefined {
  const stored = at(tool, 'status', 'replaced');
  const hash = writtenHash(textAt(stored, 'hash') ?? '');
  return hash === undefined ? undefined : { hash, functions: storedFunctions(stored) };
}
