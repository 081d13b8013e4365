import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../engine/contract.ts';
import { anAgent, aTool, messageOf, statusOf, verdict } from '../testing/objects.ts';
import { agentReconciler } from './reconcile.ts';

function listing(names: readonly string[], ready = 'True', count = names.length): Record<string, unknown> {
  return {
    conditions: [{ type: 'Ready', status: ready }],
    listing: { hash: 'h', count, functions: names.map((name) => ({ name, kind: 'ReadOnly' })) },
  };
}

const GITHUB = aTool({}, { name: 'acme-github' }, listing(['get_pr', 'list_prs', 'merge']));
const FETCH = aTool({}, { name: 'acme-fetch' }, listing(['fetch']));
const STARTING = aTool({}, { name: 'acme-slow' });
const FAILING = aTool({}, { name: 'acme-bad' }, listing([], 'False'));
const TOOLS = [GITHUB, FETCH, STARTING, FAILING];

const see = (grants: readonly string[], tools: readonly KubeObject[] = TOOLS) =>
  statusOf(agentReconciler, anAgent(grants), { reads: { tools } });

describe('[Y04] what grants come to', () => {
  test.for<[string, readonly string[], string, object]>([
    ['nothing', [], 'True NothingGranted', { tools: 0, ready: 0, functions: 0 }],
    [
      'functions by name',
      ['acme_github.get_pr', 'acme_fetch.fetch'],
      'True Resolved',
      { tools: 2, ready: 2, functions: 2 },
    ],
    [
      'all of a tool, and one again',
      ['acme_github.*', 'acme_github.merge'],
      'True Resolved',
      { tools: 1, ready: 1, functions: 3 },
    ],
    [
      '[I12] a tool that is not there, beside one that works',
      ['nope.x', 'acme_github.*'],
      'False UnknownTool',
      { tools: 2, ready: 1, functions: 3 },
    ],
    [
      'a function that is not listed',
      ['acme_github.nope', 'acme_github.merge'],
      'False UnknownFunction',
      { tools: 1, ready: 1, functions: 1 },
    ],
    ['a tool that fails', ['acme_bad.*', 'acme_fetch.*'], 'False ToolFailing', { tools: 2, ready: 1, functions: 1 }],
    [
      'a tool that starts',
      ['acme_slow.*', 'acme_fetch.*'],
      'Unknown ToolsStarting',
      { tools: 2, ready: 1, functions: 1 },
    ],
    [
      'a function of a tool that was not listed yet',
      ['acme_slow.x'],
      'Unknown ToolsStarting',
      { tools: 1, ready: 0, functions: 0 },
    ],
  ])('%s', ([, grants, wanted, counts]) => {
    const status = see(grants);
    expect(verdict(status, 'Resolved')).toBe(wanted);
    expect(verdict(status, 'Accepted')).toBe('True Accepted');
    expect(status['grants']).toEqual(counts);
  });

  test('of functions that a status does not name nothing is known', () => {
    const large = aTool({}, { name: 'acme-large' }, listing(['a'], 'True', 900));
    expect(verdict(see(['acme_large.zzz'], [large]), 'Resolved')).toBe('True Resolved');
  });

  test('unknown ones are named, ten of them', () => {
    const grants = Array.from({ length: 12 }, (_, index) => `t${index}.x`);
    expect(messageOf(see(grants), 'Resolved')).toMatch(/t0, t1, .* and 2 more in this namespace/);
  });
});
