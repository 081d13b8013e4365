import { describe, expect, test } from 'vitest';
import { ApiError } from '../engine/api-error.ts';
import type { KubeObject } from '../engine/contract.ts';
import { sweepToolCalls } from './sweepToolCalls.ts';

const HOUR = 3_600_000;
const NOW = Date.parse('2026-12-01T12:00:00Z');
const never = new AbortController().signal;

function toolCall(name: string, phase: string | undefined, endedHoursAgo?: number): KubeObject {
  const endedAt = endedHoursAgo === undefined ? undefined : new Date(NOW - endedHoursAgo * HOUR).toISOString();
  return {
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'ToolCall',
    metadata: { name, namespace: 'acme', uid: `uid-${name}`, resourceVersion: '7' },
    ...(phase === undefined ? {} : { status: { phase, ...(endedAt === undefined ? {} : { endedAt }) } }),
  };
}

async function sweep(objects: readonly KubeObject[], more: { leads?: () => boolean; fails?: ApiError } = {}) {
  const deleted: unknown[] = [];
  const count = await sweepToolCalls(
    {
      client: {
        // Pages of two.
        listPage: async (_, { continue: from }) => {
          const at = Number(from ?? 0);
          const next = at + 2 < objects.length ? String(at + 2) : undefined;
          return { items: objects.slice(at, at + 2), resourceVersion: '1', continue: next };
        },
        delete: async ({ name }, { uid, resourceVersion }) => {
          if (more.fails !== undefined) throw more.fails;
          deleted.push([name, uid, resourceVersion]);
        },
      },
      retentionMs: 24 * HOUR,
      leads: more.leads ?? (() => true),
      now: () => NOW,
      log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    },
    never,
  );
  return { count, deleted };
}

describe('calls that are over', () => {
  test.each([
    ['long over', toolCall('a', 'Succeeded', 25), 1],
    ['refused long ago', toolCall('a', 'Refused', 25), 1],
    ['over for a while', toolCall('a', 'Failed', 23), 0],
    ['unknown for a day', toolCall('a', 'Unknown', 25), 0],
    ['unknown for eight days', toolCall('a', 'Unknown', 8 * 24), 1],
    ['still waiting', toolCall('a', 'Waiting'), 0],
    ['being sent, whatever its end says', toolCall('a', 'Sending', 1_000), 0],
    ['without a status', toolCall('a', undefined), 0],
    ['of a phase that is not known', toolCall('a', 'Paused', 1_000), 0],
    ['over, and nobody knows since when', toolCall('a', 'Succeeded'), 0],
  ])('%s', async (_, object, count) => {
    expect((await sweep([object])).count).toBe(count);
  });

  test('all pages are looked at, and each is deleted as it was seen', async () => {
    const { deleted } = await sweep(['a', 'b', 'c', 'd', 'e'].map((name) => toolCall(name, 'Succeeded', 30)));
    expect(deleted).toEqual(['a', 'b', 'c', 'd', 'e'].map((name) => [name, `uid-${name}`, '7']));
  });

  test('one that changed meanwhile is left', async () => {
    const changed = new ApiError('conflict', 'another version');
    expect((await sweep([toolCall('a', 'Succeeded', 30)], { fails: changed })).count).toBe(0);
  });

  test('who leads no more deletes no more', async () => {
    let asked = 0;
    const { count } = await sweep(
      ['a', 'b', 'c'].map((name) => toolCall(name, 'Succeeded', 30)),
      {
        leads: () => {
          asked += 1;
          return asked < 3;
        },
      },
    );
    expect(count).toBe(2);
  });
});
