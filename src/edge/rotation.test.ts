import { describe, expect, test } from 'vitest';
import { describeRotation, nextStep, type Rotation } from './rotation.ts';

const HOUR = 3_600_000;
const PLAN = { stepMs: 2 * HOUR, rotateAfterMs: 365 * 24 * HOUR };
const NOW = Date.parse('2026-12-01T12:00:00Z');

describe('replacing the authority', () => {
  test.each<[string, Rotation, { madeMs?: number; request?: string }, string | undefined]>([
    ['young, and nobody asks', { phase: 'steady', sinceMs: 0 }, {}, undefined],
    ['of age', { phase: 'steady', sinceMs: 0 }, { madeMs: NOW - 366 * 24 * HOUR }, 'make'],
    ['asked for', { phase: 'steady', sinceMs: 0 }, { request: '1' }, 'make'],
    ['asked for, and met', { phase: 'steady', sinceMs: 0, request: '1' }, { request: '1' }, undefined],
    ['asked for again', { phase: 'steady', sinceMs: 0, request: '1' }, { request: '2' }, 'make'],
    ['made', { phase: 'made', sinceMs: NOW }, {}, 'publish'],
    ['just published', { phase: 'published', sinceMs: NOW }, {}, undefined],
    ['published for nearly long enough', { phase: 'published', sinceMs: NOW - 2 * HOUR + 1 }, {}, undefined],
    ['published for long enough', { phase: 'published', sinceMs: NOW - 2 * HOUR }, {}, 'use'],
    ['just used', { phase: 'used', sinceMs: NOW }, { request: '9' }, undefined],
    ['used for long enough', { phase: 'used', sinceMs: NOW - 2 * HOUR }, {}, 'drop'],
    ['published in the future: a clock was wrong', { phase: 'published', sinceMs: NOW + HOUR }, {}, undefined],
  ])('%s', (_name, rotation, facts, expected) => {
    expect(nextStep(rotation, { nowMs: NOW, madeMs: NOW, ...facts }, PLAN)).toBe(expected);
  });

  test('without an age, only where it is asked for', () => {
    const plan = { stepMs: HOUR };
    expect(nextStep({ phase: 'steady', sinceMs: 0 }, { nowMs: NOW, madeMs: 0 }, plan)).toBeUndefined();
    expect(nextStep({ phase: 'steady', sinceMs: 0 }, { nowMs: NOW, madeMs: 0, request: 'x' }, plan)).toBe('make');
  });

  test('a person reads what goes on, and when it goes on', () => {
    expect(describeRotation({ phase: 'steady', sinceMs: NOW }, PLAN)).toBeUndefined();
    expect(describeRotation({ phase: 'published', sinceMs: NOW }, PLAN)).toContain('signs from 2026-12-01T14:00:00');
    expect(describeRotation({ phase: 'used', sinceMs: NOW }, PLAN)).toContain('goes at 2026-12-01T14:00:00');
  });
});
