import { describe, expect, test } from 'vitest';
import { decideSnapshot, type SnapshotInput } from './decideSnapshot.ts';
import type { Hashes, Snapshot } from './snapshot.ts';

const hashOf = (digit: string) => `sha256:${digit.repeat(64)}`;
const listing = (digit: string, count = 1): Hashes => ({
  hash: hashOf(digit),
  count,
  functions: [{ name: 'get_pr', hash: hashOf(digit) }],
});
const RUNS = 'a'.repeat(64);
const SNAPSHOT: Snapshot = { ...listing('1'), from: 'FirstListing', runs: RUNS };
const WAITING = { runs: RUNS, hash: hashOf('2'), count: 1, difference: 'as it was told' };

function decide(given: Partial<SnapshotInput>) {
  return decideSnapshot({
    namespace: 'acme',
    tool: 'everything',
    snapshot: SNAPSHOT,
    pending: undefined,
    runs: RUNS,
    listed: undefined,
    approvalOf: () => undefined,
    differenceOf: () => 'told anew',
    ...given,
  });
}

describe('[P02] the first listing', () => {
  test('becomes the snapshot', () => {
    expect(decide({ snapshot: undefined, listed: listing('1') })).toMatchObject({
      snapshot: SNAPSHOT,
      fact: { status: 'True', reason: 'SnapshotCurrent' },
    });
  });

  test.for([
    ['nothing was listed yet', undefined],
    ['[case 55] an empty one', 'empty'],
  ] as const)('but not when %s', ([, listed]) => {
    const { snapshot, fact } = decide({ snapshot: undefined, listed });
    expect(snapshot).toBeUndefined();
    expect(fact).toMatchObject({ status: 'Unknown', reason: 'NoSnapshotYet' });
  });
});

describe('[P02] [I7] another listing of the same version', () => {
  test('the same again', () => {
    expect(decide({ listed: listing('1'), pending: WAITING })).toEqual({
      snapshot: SNAPSHOT,
      fact: expect.objectContaining({ status: 'True' }),
    });
  });

  test('waits; the snapshot stays, and who may approve is told how', () => {
    const { snapshot, pending, fact } = decide({ listed: listing('2') });
    expect(snapshot).toEqual(SNAPSHOT);
    expect(pending).toEqual({ ...WAITING, difference: 'told anew' });
    expect(fact).toMatchObject({ status: 'False', reason: 'ListingChanged', stalled: true });
    const command = /echo '(.*)' \| kubectl create -f -$/.exec(fact.message)?.[1] ?? '';
    expect(JSON.parse(command)).toMatchObject({
      kind: 'SnapshotApproval',
      metadata: { namespace: 'acme' },
      spec: { tool: 'everything', hash: hashOf('2') },
    });
  });

  test('[case 109] what is told stays as it was told', () => {
    expect(decide({ listed: listing('2'), pending: WAITING }).pending).toEqual(WAITING);
    expect(decide({ listed: listing('3'), pending: WAITING }).pending).toMatchObject({ hash: hashOf('3') });
  });

  test.for([
    ['[case 55] an empty one', 'empty', 'NothingListed'],
    ['none', undefined, 'Asking'],
  ] as const)('%s changes nothing that is kept', ([, listed, reason]) => {
    const { snapshot, fact } = decide({ listed });
    expect(snapshot).toEqual(SNAPSHOT);
    expect(fact).toMatchObject({ status: 'Unknown', reason });
  });

  test('[case 52] what waits goes on waiting while nobody answers', () => {
    expect(decide({ pending: WAITING })).toMatchObject({
      snapshot: SNAPSHOT,
      pending: WAITING,
      fact: { status: 'False', reason: 'ListingChanged' },
    });
  });

  test('[P03] an approval of that very hash moves the snapshot, another does not', () => {
    const approvalOf = (hash: string) => (hash === hashOf('2') ? 'reviewed' : undefined);
    expect(decide({ listed: listing('2'), pending: WAITING, approvalOf })).toEqual({
      snapshot: { ...listing('2'), from: 'Approval', approval: 'reviewed', runs: RUNS },
      fact: expect.objectContaining({ status: 'True' }),
    });
    expect(decide({ listed: listing('3'), approvalOf }).snapshot).toEqual(SNAPSHOT);
  });
});
