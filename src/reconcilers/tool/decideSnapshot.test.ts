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

const OTHER = 'b'.repeat(64);

/** By default a version that was accepted, and that nobody asked yet. */
function decide(given: Partial<SnapshotInput> = {}) {
  return decideSnapshot({
    namespace: 'acme',
    tool: 'everything',
    snapshot: SNAPSHOT,
    pending: undefined,
    replaced: undefined,
    runs: RUNS,
    listed: undefined,
    probed: { state: 'none' },
    formerRun: false,
    serves: true,
    approvalOf: () => undefined,
    acceptsNew: false,
    differenceOf: (_, __, told) => told ?? 'told anew',
    ...given,
  });
}

const approves = (digit: string) => (hash: string) => (hash === hashOf(digit) ? 'reviewed' : undefined);
const probed = (digit: string, settled = true): SnapshotInput['probed'] => ({
  state: 'listed',
  hashes: listing(digit),
  settled,
});

describe('[P02] the first listing', () => {
  test('becomes the snapshot', () => {
    expect(decide({ snapshot: undefined, listed: listing('1') })).toMatchObject({
      serve: 'written',
      probe: false,
      record: { snapshot: SNAPSHOT },
      fact: { status: 'True', reason: 'SnapshotCurrent' },
    });
  });

  test.for([
    ['nothing was listed yet', undefined],
    ['[case 55] an empty one', 'empty'],
  ] as const)('but not when %s', ([, listed]) => {
    const { serve, record, fact } = decide({ snapshot: undefined, listed });
    expect({ serve, record }).toEqual({ serve: 'written', record: {} });
    expect(fact).toMatchObject({ status: 'Unknown', reason: 'NoSnapshotYet' });
  });
});

describe('[P02] [I7] another listing of the same version', () => {
  test('the same again', () => {
    const { record, fact } = decide({ listed: listing('1'), pending: WAITING });
    expect(record).toEqual({ snapshot: SNAPSHOT });
    expect(fact.status).toBe('True');
  });

  test('waits; the snapshot stays, and who may approve is told how', () => {
    const { record, fact } = decide({ listed: listing('2') });
    expect(record).toEqual({ snapshot: SNAPSHOT, pending: { ...WAITING, difference: 'told anew' } });
    expect(fact).toMatchObject({ status: 'False', reason: 'ListingChanged', stalled: true });
    const command = /echo '(.*)' \| kubectl create -f -$/.exec(fact.message)?.[1] ?? '';
    expect(JSON.parse(command)).toMatchObject({
      kind: 'SnapshotApproval',
      metadata: { namespace: 'acme' },
      spec: { tool: 'everything', hash: hashOf('2') },
    });
  });

  test('[case 109] what is told stays as it was told', () => {
    expect(decide({ listed: listing('2'), pending: WAITING }).record.pending).toEqual(WAITING);
    expect(decide({ listed: listing('3'), pending: WAITING }).record.pending).toMatchObject({
      hash: hashOf('3'),
      difference: 'told anew',
    });
  });

  test.for([
    ['[case 55] an empty one', 'empty', 'NothingListed'],
    ['none', undefined, 'Asking'],
  ] as const)('%s changes nothing that is kept', ([, listed, reason]) => {
    const { record, fact } = decide({ listed });
    expect(record).toEqual({ snapshot: SNAPSHOT });
    expect(fact).toMatchObject({ status: 'Unknown', reason });
  });

  test('[case 52] what waits goes on waiting while nobody answers', () => {
    const { record, fact } = decide({ pending: WAITING });
    expect(record).toEqual({ snapshot: SNAPSHOT, pending: WAITING });
    expect(fact).toMatchObject({ status: 'False', reason: 'ListingChanged' });
  });

  test('[P03] an approval of that very hash moves the snapshot, another does not', () => {
    const { record, fact } = decide({ listed: listing('2'), pending: WAITING, approvalOf: approves('2') });
    expect(record).toEqual({ snapshot: { ...listing('2'), from: 'Approval', approval: 'reviewed', runs: RUNS } });
    expect(fact.status).toBe('True');
    expect(decide({ listed: listing('3'), approvalOf: approves('2') }).record.snapshot).toEqual(SNAPSHOT);
  });

  test('policy for new versions does not let it in', () => {
    expect(decide({ listed: listing('2'), acceptsNew: true }).record.snapshot).toEqual(SNAPSHOT);
  });
});

describe('[P02] a new version', () => {
  const waiting = { ...WAITING, runs: OTHER };
  const next = (given: Partial<SnapshotInput> = {}) => decide({ runs: OTHER, ...given });
  const replaced = { hash: SNAPSHOT.hash, functions: SNAPSHOT.functions };

  test.for<[string, Partial<SnapshotInput>, boolean, string]>([
    ['is tried first', {}, true, 'Unknown Probing'],
    ['does not come up', { probed: { state: 'failing', message: 'no image' } }, true, 'False NewVersionFails'],
    ['lists something else', { probed: probed('2') }, true, 'False NewVersionWaits'],
    [
      'was tried, and more is to be told of it',
      { pending: waiting, probed: probed('2', false) },
      true,
      'False NewVersionWaits',
    ],
    ['was tried, and all is told', { pending: waiting, probed: probed('2') }, false, 'False NewVersionWaits'],
    ['waits', { pending: waiting }, false, 'False NewVersionWaits'],
    ['was approved while it waited', { pending: waiting, approvalOf: approves('2') }, true, 'Unknown Probing'],
    ['was let in by policy while it waited', { pending: waiting, acceptsNew: true }, true, 'Unknown Probing'],
    ['follows another that waits', { pending: { ...waiting, runs: 'c' } }, true, 'Unknown Probing'],
  ])('%s', ([, given, probe, verdict]) => {
    const { serve, fact, ...decision } = next(given);
    expect({ serve, probe: decision.probe }).toEqual({ serve: 'former', probe });
    expect(`${fact.status} ${fact.reason}`).toBe(verdict);
    expect(decision.record.snapshot).toEqual(SNAPSHOT);
  });

  test.for<[string, Partial<SnapshotInput>, object]>([
    ['lists the same', { probed: probed('1') }, { snapshot: { ...SNAPSHOT, runs: OTHER } }],
    [
      '[P03] was approved before',
      { probed: probed('2'), approvalOf: approves('2') },
      { snapshot: { ...listing('2'), from: 'Approval', approval: 'reviewed', runs: OTHER }, replaced },
    ],
    [
      'is let in by policy',
      { probed: probed('2'), acceptsNew: true },
      { snapshot: { ...listing('2'), from: 'NewVersion', runs: OTHER }, replaced },
    ],
    [
      'replaces nothing that runs',
      { probed: probed('2'), acceptsNew: true, serves: false },
      { snapshot: { ...listing('2'), from: 'NewVersion', runs: OTHER } },
    ],
    [
      'goes back to what still runs',
      { probed: probed('2'), formerRun: true, replaced: { hash: hashOf('2'), functions: [] } },
      { snapshot: { ...listing('2'), from: 'NewVersion', runs: OTHER }, replaced },
    ],
  ])('%s: it is written down before anything is rolled out', ([, given, record]) => {
    expect(next(given)).toEqual({ serve: 'former', probe: true, record, fact: expect.anything() });
    // The next look finds it in status.
    const { snapshot } = next(given).record;
    expect(decide({ runs: OTHER, snapshot })).toMatchObject({ serve: 'written', probe: false });
  });

  test('[P03] an approval of another hash lets nothing in', () => {
    expect(next({ probed: probed('2'), approvalOf: approves('3') }).record).toMatchObject({
      snapshot: SNAPSHOT,
      pending: { runs: OTHER, hash: hashOf('2') },
    });
  });

  test('what it replaced stays callable while pods of it run, and no longer', () => {
    expect(decide({ listed: listing('1'), replaced, formerRun: true }).record).toMatchObject({ replaced });
    expect(decide({ listed: listing('1'), replaced, formerRun: false }).record).not.toHaveProperty('replaced');
  });

  test('of a record that was lost nobody knows which version it was: it is tried', () => {
    const { runs: _, ...snapshot } = SNAPSHOT;
    expect(decide({ snapshot })).toMatchObject({ serve: 'former', probe: true });
  });

  test('nothing is claimed to go on where nothing runs', () => {
    expect(next({ serves: false }).fact.message).toContain('No pod serves');
    expect(next().fact.message).toContain('The former version goes on');
  });
});
