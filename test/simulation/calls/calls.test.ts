/** Every interleaving of one call up to a bound: what the header of `nextMove.ts` says holds in each state that can be reached. */
import { describe, expect, test } from 'vitest';
import type { Hand } from '../../../src/domain/calls/hand.ts';
import { type Move, nextMove, RULES, type Situation } from '../../../src/domain/calls/nextMove.ts';
import { explore } from './explore.ts';
import { type Bounds, callModel } from './world.ts';

const MOST = 400_000;

const least: Bounds = {
  plan: 'send',
  deliveries: 1,
  faults: 1,
  ticks: 1,
  gateways: 1,
  pods: 1,
  hands: 1,
  attempts: 2,
  policyChanges: false,
};

const used = new Set<string>();

/** Two at a time of everything: more of one thing is less of another, so that each is explored whole. */
const bounds: readonly [string, Partial<Bounds>][] = [
  ['one gateway, three faults one after another', { faults: 3 }],
  ['two gateways at once', { gateways: 2, hands: 2 }],
  ['delivered three times to one of them', { deliveries: 3, gateways: 1, hands: 2 }],
  ['another pod where the first does not take it', { pods: 2, faults: 2 }],
  ['asked of a person, one gateway, two faults', { plan: 'ask', faults: 2, deliveries: 2 }],
  ['asked of a person, two gateways that would claim it', { plan: 'ask', gateways: 2, hands: 2 }],
  ['asked of a person, and what was decided changes', { plan: 'ask', policyChanges: true, deliveries: 2 }],
];

describe('[I10] [I13] [R11] a call that is not retry-safe', () => {
  test.each(bounds)('%s', (_, more) => {
    const explored = explore(callModel({ ...least, ...more }, nextMove, used), MOST);
    console.info(`${explored.states} states, ${explored.steps} steps, ${explored.deepest} deep`);
    expect(explored.counterexample).toBeUndefined();
    expect(explored.states).toBeGreaterThan(500);
  });

  test('each rule of the table was used but those of what the bounds leave out', () => {
    const unused = RULES.filter(({ name }) => !used.has(name)).map(({ name }) => name);
    expect(unused).toEqual(['the record was deleted', 'nothing to keep up', 'the same id, another call']);
  });
});

describe('a wrong table is found out', () => {
  const wrong: readonly [string, Partial<Bounds>, (hand: Hand, situation: Situation, right: Move) => Move, RegExp][] = [
    [
      'sends before it is on record',
      {},
      (_hand, _, right) => (right.do === 'create' ? { do: 'send' } : right),
      /not on record/,
    ],
    [
      'runs an unknown one again by itself',
      {},
      (hand, _, right) =>
        hand.call?.phase === 'Unknown' && !hand.unsure && hand.stage === 'none' && hand.purpose === 'upkeep'
          ? { do: 'claim' }
          : right,
      /took effect 2 times|nobody said so/,
    ],
    [
      'takes what a pod did not see yet as not made, and fences nothing',
      { gateways: 2, hands: 2 },
      (hand, _, right) =>
        right.do === 'ask'
          ? { do: 'ask', fence: false }
          : hand.seen === 'unseen' && hand.call !== undefined
            ? { do: 'record', change: { phase: 'Failed', reason: 'never-sent', again: false, notMade: true } }
            : right,
      /not made, and was/,
    ],
    [
      'tells an answer that is not on record',
      {},
      (hand, _, right) =>
        hand.learned?.kind === 'result' && right.do === 'record' ? { do: 'tell', told: 'ended' } : right,
      /told as ended/,
    ],
    [
      'never takes up what another left',
      {},
      (hand, _, right) => (hand.purpose === 'upkeep' && right.do === 'ask' ? { do: 'rest' } : right),
      /never end/,
    ],
    [
      'claims what a person denied',
      { plan: 'ask' },
      (hand, _, right) =>
        hand.call?.phase === 'Waiting' &&
        hand.call.decision === 'deny' &&
        hand.stage === 'none' &&
        hand.call.attempt === 0
          ? { do: 'claim' }
          : right,
      /denied/,
    ],
  ];

  test.each(wrong)('%s', (_, more, change, problem) => {
    const model = callModel({ ...least, ...more }, (hand, situation) =>
      change(hand, situation, nextMove(hand, situation)),
    );
    expect(explore(model, MOST).counterexample?.problem).toMatch(problem);
  });
});
