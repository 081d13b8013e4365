import { describe, expect, it } from 'vitest';
import { type Applied, afterApply } from './applied.ts';
import { type KubeObject, type Resource, resourceKey } from './contract.ts';
import { type Plan, type PlanInput, plan } from './plan.ts';
import { controllerUid } from './store.ts';

const FENCE: Resource = { apiVersion: 'v1', kind: 'Fence', plural: 'fences', namespaced: true };
const BOX: Resource = { apiVersion: 'v1', kind: 'Box', plural: 'boxes', namespaced: true };
const parent: KubeObject = {
  apiVersion: 'v1',
  kind: 'Toy',
  metadata: { name: 'toy', namespace: 'ns', uid: 'toy-uid' },
};
const owner = { apiVersion: 'v1', kind: 'Toy', name: 'toy', uid: 'toy-uid', controller: true };

function want(resource: Resource, name: string, spec: object = { size: 1 }): KubeObject {
  return { apiVersion: resource.apiVersion, kind: resource.kind, metadata: { name, namespace: 'ns' }, spec };
}

/** As the API server has it after `object` was applied. */
function stored(object: KubeObject, metadata: Partial<KubeObject['metadata']> = {}): KubeObject {
  const [step] = run([object], []).steps;
  if (step?.do !== 'create') throw new Error('not planned');
  const uid = `uid-${object.metadata.name}`;
  return { ...step.object, metadata: { ...step.object.metadata, uid, resourceVersion: '7', ...metadata } };
}

function run(wanted: readonly KubeObject[], live: readonly KubeObject[], given: Partial<PlanInput> = {}): Plan {
  const ofKind = (resource: Resource) => live.filter((object) => object.kind === resource.kind);
  const owned = (resource: Resource) => ofKind(resource).filter((object) => controllerUid(object) === 'toy-uid');
  return plan({
    parent,
    owns: [FENCE, BOX],
    wanted,
    kept: [],
    children: { [resourceKey(FENCE)]: owned(FENCE), [resourceKey(BOX)]: owned(BOX) },
    live: (resource, name) => ofKind(resource).find((object) => object.metadata.name === name),
    applied: () => undefined,
    annotation: 'test/applied',
    nowMs: 1_000_000,
    ...given,
  });
}

const shown = ({ steps }: Plan) =>
  steps.map((step) => `${step.do} ${step.do === 'delete' ? step.name : step.object.metadata.name}`);

describe('plan', () => {
  it('creates in the order of kinds and deletes in reverse, last', () => {
    const live = [stored(want(FENCE, 'old-fence')), stored(want(BOX, 'old-box'))];
    expect(shown(run([want(BOX, 'box'), want(FENCE, 'fence')], live))).toEqual([
      'create fence',
      'create box',
      'delete old-box',
      'delete old-fence',
    ]);
  });

  it('names its owner and what it is in what it writes', () => {
    const [step] = run([want(BOX, 'box')], []).steps;
    expect(step).toMatchObject({
      object: {
        metadata: {
          ownerReferences: [owner],
          annotations: { 'test/applied': expect.stringMatching(/^[0-9a-f]{16}$/) },
        },
      },
    });
  });

  it('plans nothing where all is as wanted, whatever the order of keys and whatever others added [case 107]', () => {
    const box = stored(want(BOX, 'box', { a: 1, b: { c: 2, d: 3 } }));
    const live = { ...box, spec: { b: { d: 3, c: 2, defaulted: true }, a: 1 }, status: { ready: true } };
    expect(run([want(BOX, 'box', { b: { d: 3, c: 2 }, a: 1 })], [live])).toEqual({
      steps: [],
      refusals: [],
      againInMs: undefined,
      leaving: [],
    });
  });

  it('applies what changed, also where it only says less than before', () => {
    const live = stored(want(BOX, 'box', { a: 1, b: 2 }));
    expect(run([want(BOX, 'box', { a: 1 })], [live]).steps).toMatchObject([
      { do: 'update', because: 'changed', uid: 'uid-box', resourceVersion: '7', object: { spec: { a: 1 } } },
    ]);
  });

  it('applies again what somebody changed', () => {
    const live = { ...stored(want(BOX, 'box')), spec: { size: 9 } };
    expect(run([want(BOX, 'box')], [live]).steps).toMatchObject([{ do: 'update', because: 'drifted' }]);
  });

  it('leaves what the API server stores in other words, once it was seen to', () => {
    const live = { ...stored(want(BOX, 'box', { cpu: '1000m' })), spec: { cpu: '1' } };
    const [step] = run([want(BOX, 'box', { cpu: '1000m' })], [live]).steps;
    if (step?.do !== 'update') throw new Error('not planned');
    const applied = afterApply(undefined, step.wanted, live, 0);
    const again = { ...live, status: { x: 1 }, metadata: { ...live.metadata, resourceVersion: '99', generation: 4 } };
    expect(run([want(BOX, 'box', { cpu: '1000m' })], [again], { applied: () => applied }).steps).toEqual([]);
    expect(run([want(BOX, 'box', { cpu: '2000m' })], [again], { applied: () => applied }).steps).toHaveLength(1);
  });

  it('repairs less and less often what is undone each time', () => {
    const live = { ...stored(want(BOX, 'box')), spec: { size: 9 } };
    let applied: Applied | undefined;
    let nowMs = 0;
    const times: number[] = [];
    for (; nowMs < 3_600_000; nowMs += 1_000) {
      const { steps } = run([want(BOX, 'box')], [live], { applied: () => applied, nowMs });
      const [step] = steps;
      if (step?.do !== 'update') continue;
      times.push(nowMs / 1000);
      applied = afterApply(applied, step.wanted, stored(want(BOX, 'box')), nowMs);
    }
    expect(times.slice(0, 8)).toEqual([0, 1, 2, 3, 8, 18, 38, 78]);
    expect(times.length).toBeLessThan(25);
  });

  it('refuses what it must not write, and then does nothing at all [I2]', () => {
    const foreign = stored(want(BOX, 'box'), {
      ownerReferences: [{ ...owner, kind: 'Other', name: 'x', uid: 'other' }],
    });
    const free = stored(want(BOX, 'box'), { ownerReferences: [] });
    const elsewhere = { ...want(BOX, 'box'), metadata: { name: 'box', namespace: 'other' } };
    const cases: readonly (readonly [readonly KubeObject[], readonly KubeObject[], string])[] = [
      [[want(BOX, 'box')], [foreign], 'foreign'],
      [[want(BOX, 'box')], [free], 'foreign'],
      [[want(BOX, 'box'), want(BOX, 'box')], [], 'duplicate'],
      [[want({ ...BOX, kind: 'Secret' }, 'box')], [], 'undeclared kind'],
      [[elsewhere], [], 'other namespace'],
      [[{ ...want(BOX, 'box'), metadata: { name: 'box' } }], [], 'malformed'],
      [[want(BOX, '')], [], 'malformed'],
    ];
    for (const [wanted, live, because] of cases) {
      const old = stored(want(FENCE, 'old'));
      const planned = run([want(FENCE, 'fence'), ...wanted], [...live, old]);
      expect(planned.refusals).toMatchObject([{ because }]);
      expect(planned.steps).toEqual([]);
    }
  });

  it('deletes by uid and version, of declared kinds, only what this parent controls [I2]', () => {
    const ours = stored(want(BOX, 'ours'));
    const going = stored(want(BOX, 'going'), { deletionTimestamp: '2026-01-01T00:00:00Z' });
    const theirs = stored(want(BOX, 'theirs'), { ownerReferences: [{ ...owner, uid: 'other' }] });
    const input = {
      children: { [resourceKey(BOX)]: [ours, going, theirs], 'v1/Secret': [stored(want(BOX, 'secret'))] },
    };
    expect(run([], [], input).steps).toEqual([
      { do: 'delete', resource: BOX, name: 'ours', namespace: 'ns', uid: 'uid-ours', resourceVersion: '7' },
    ]);
  });

  it('leaves what is to be kept: not applied, not deleted, not made', () => {
    const { apiVersion, kind } = BOX;
    const keep = (name: string) => ({ apiVersion, kind, name, namespace: 'ns' });
    const drifted = { ...stored(want(BOX, 'kept')), spec: { size: 9 } };
    const live = [stored(want(FENCE, 'fence')), drifted, stored(want(BOX, 'other'))];
    expect(shown(run([want(FENCE, 'fence')], live, { kept: [keep('kept'), keep('not-there')] }))).toEqual([
      'delete other',
    ]);
  });

  it('what is kept stands before what is made after it [I11]', () => {
    const fence = stored(want(FENCE, 'fence'));
    const kept = [{ apiVersion: FENCE.apiVersion, kind: FENCE.kind, name: 'fence', namespace: 'ns' }];
    const first = (live: KubeObject) => run([want(BOX, 'box')], [live], { kept }).steps[0];
    expect(first(fence)).toMatchObject({ do: 'create', after: [{ name: 'fence', uid: 'uid-fence' }] });
    const theirs = { ...fence, metadata: { ...fence.metadata, ownerReferences: [{ ...owner, uid: 'other' }] } };
    expect(first(theirs)).toMatchObject({ do: 'create', after: [] });
  });

  it('refuses to keep what is wanted, and what is of no declared kind [I2]', () => {
    const { apiVersion, kind } = BOX;
    const ref = { apiVersion, kind, name: 'box', namespace: 'ns' };
    expect(run([want(BOX, 'box')], [], { kept: [ref] }).refusals).toMatchObject([{ because: 'duplicate' }]);
    const secret = { ...ref, kind: 'Secret' };
    expect(run([want(BOX, 'box')], [], { kept: [secret] })).toMatchObject({
      steps: [],
      refusals: [{ because: 'undeclared kind' }],
    });
  });

  it('waits for what is on its way out, and makes nothing of a later kind meanwhile [I11]', () => {
    const going = stored(want(FENCE, 'fence'), { deletionTimestamp: '2026-01-01T00:00:00Z' });
    const former = stored(want(FENCE, 'fence'), { ownerReferences: [{ ...owner, uid: 'former-uid' }] });
    for (const live of [going, former]) {
      const planned = run(
        [want(BOX, 'box'), want(FENCE, 'fence'), want(FENCE, 'second')],
        [live, stored(want(BOX, 'old'))],
      );
      expect(planned).toMatchObject({ refusals: [], leaving: ['Fence fence'] });
      expect(shown(planned)).toEqual(['create second']);
    }
  });

  it('has what its view shows of earlier kinds confirmed before it makes something', () => {
    const fence = stored(want(FENCE, 'fence'));
    const { steps } = run(
      [want(FENCE, 'fence'), want(BOX, 'box'), want(BOX, 'second')],
      [fence, stored(want(BOX, 'second'))],
    );
    expect(steps).toMatchObject([{ do: 'create', after: [{ name: 'fence', uid: 'uid-fence' }] }]);
  });
});
