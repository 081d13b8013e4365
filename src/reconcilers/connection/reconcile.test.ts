import { describe, expect, test } from 'vitest';
import { connection as connectionKind } from '../../api/connection.ts';
import { judge } from '../../api/judge.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { aConnection, aTool, messageOf, observe, statusOf, verdict } from '../testing/objects.ts';
import { connectionReconciler } from './reconcile.ts';

const TRACKER = { hosts: ['gitlab.example.com'] };
const tracker = (status?: Record<string, unknown>, spec: Record<string, unknown> = TRACKER) =>
  aTool(spec, { name: 'tracker' }, status);
const HAS_IT = tracker({ connections: ['tracker'] });
const lacks = (problem: string, key = 'token') =>
  tracker({ connections: ['tracker'], secrets: [{ secret: 'tracker-token', key, problem }] });
const rival = aConnection(
  { secret: { secretRef: { name: 'other' }, key: 'token' } },
  { name: 'rival', uid: 'r', creationTimestamp: '2026-11-30T10:00:00Z' },
);
const LATE = { creationTimestamp: '2026-11-30T11:00:00Z' };

const see = (tools: readonly KubeObject[], others: readonly KubeObject[] = [], own = aConnection({}, LATE)) =>
  statusOf(connectionReconciler, own, { reads: { tools, connections: [own, ...others] } });

describe('a Connection', () => {
  test.for<[string, Parameters<typeof see>, string, string]>([
    ['its tool has it', [[HAS_IT]], 'True Accepted', 'True Connected'],
    ['its tool has not been asked', [[tracker()]], 'True Accepted', 'Unknown Connecting'],
    ['its tool has others', [[tracker({ connections: ['else'] })]], 'True Accepted', 'Unknown Connecting'],
    ['there is no such tool', [[]], 'False UnknownTool', 'Unknown NotAccepted'],
    ['[case 81] its Secret is missing', [[lacks('missing')]], 'True Accepted', 'False SecretMissing'],
    ['[case 81] its Secret is empty', [[lacks('empty')]], 'True Accepted', 'False SecretEmpty'],
    ['its Secret cannot be sent', [[lacks('malformed')]], 'True Accepted', 'False SecretMalformed'],
    ["[I12] another key of the tool's is missing", [[lacks('missing', 'other')]], 'True Accepted', 'True Connected'],
    ['its place is taken', [[HAS_IT], [rival]], 'False BindingTaken', 'Unknown NotAccepted'],
    [
      'one that came later wants its place',
      [[HAS_IT], [{ ...rival, metadata: { ...rival.metadata, creationTimestamp: '2026-12-01T00:00:00Z' } }]],
      'True Accepted',
      'True Connected',
    ],
    [
      'one of another tool has its place',
      [[HAS_IT], [aConnection({ ...(rival['spec'] as object), tools: ['else'] }, { name: 'rival' })]],
      'True Accepted',
      'True Connected',
    ],
    [
      'one on its way out has it',
      [[HAS_IT], [{ ...rival, metadata: { ...rival.metadata, deletionTimestamp: 'now' } }]],
      'True Accepted',
      'True Connected',
    ],
    ['its tool cannot be read', [[{ ...tracker(), spec: {} }]], 'True Accepted', 'Unknown Connecting'],
  ])('%s', ([, scene, accepted, connected]) => {
    const status = see(...scene);
    expect(verdict(status, 'Accepted')).toBe(accepted);
    expect(verdict(status, 'Connected')).toBe(connected);
    expect(judge(connectionKind.schema, { ...aConnection(), status })).toMatchObject({ ok: true });
  });

  test('whose place is taken waits for a person, and says whose it is', () => {
    const status = see([HAS_IT], [rival]);
    expect(verdict(status, 'Stalled')).toMatch(/^True/);
    expect(messageOf(status, 'Accepted')).toBe(
      'Not used: for tracker, header Authorization of gitlab.example.com is bound by Connection rival.',
    );
  });

  test('of two tools of which one is not there serves the other', () => {
    const status = see([HAS_IT], [], aConnection({ tools: ['tracker', 'gone'] }));
    expect(messageOf(status, 'Accepted')).toBe('There is no tool gone in this namespace.');
    expect(verdict(status, 'Connected')).toBe('True Connected');
    expect(messageOf(status, 'Connected')).toBe('1 of 2 tools have it.');
  });

  test('for a host that its tool may not reach says so', () => {
    expect(messageOf(see([tracker({ connections: ['tracker'] }, {})]), 'Accepted')).toBe(
      "Hosts that the tools' own hosts do not name: gitlab.example.com (tracker).",
    );
  });

  test('makes nothing, so that nothing of it is left', () => {
    const outcome = connectionReconciler.reconcile(observe(connectionReconciler, aConnection()));
    expect(outcome).toMatchObject({ do: 'converge', children: [] });
  });

  test('of a kind that this version does not know is refused with the field named', () => {
    expect(connectionReconciler.parse(aConnection({ kind: 'steps' }))).toMatchObject({
      ok: false,
      problem: expect.stringContaining('spec.kind'),
    });
  });
});
