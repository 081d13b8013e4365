import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { connection as connectionKind } from '../../api/connection.ts';
import { judge } from '../../api/judge.ts';
import { tool as toolKind } from '../../api/tool.ts';
import type { KubeObject } from '../../engine/contract.ts';
import {
  aConnection,
  aPlugin,
  aTool,
  IMAGE,
  messageOf,
  observe,
  type Seen,
  statusOf,
  verdict,
} from '../testing/objects.ts';
import { pluginReconciler } from './reconcile.ts';

const ENTRIES = [
  { id: 'acme_github', mcp: ['python', '-m', 'acme_github.mcp'], env: { GITHUB_API_URL: 'https://api.github.com' } },
  { id: 'acme_fetch', image: IMAGE, affinity: 'any', replicas: 2 },
];
const PLUGIN = aPlugin({ tools: ENTRIES });

const owned = (
  name: string,
  ready?: string,
  plugin = { name: 'acme-github', uid: 'plugin-uid' },
  generation = 1,
): KubeObject =>
  aTool(
    {},
    {
      name,
      uid: `${name}-uid`,
      ownerReferences: [{ apiVersion: 'oz0.ai/v1alpha1', kind: 'Plugin', controller: true, ...plugin }],
    },
    ready === undefined
      ? undefined
      : {
          conditions: [
            { type: 'Ready', status: ready, reason: 'X', message: 'because', observedGeneration: generation },
          ],
        },
  );

const outcomeOf = (plugin: KubeObject, seen: Seen = {}) =>
  pluginReconciler.reconcile(observe(pluginReconciler, plugin, seen));

describe('[K01] the Tools of a Plugin', () => {
  test('as YAML', async () => {
    const outcome = outcomeOf(PLUGIN);
    const children = outcome.do === 'converge' ? outcome.children : [];
    const text = stringify(children, { aliasDuplicateObjects: false });
    await expect(text).toMatchFileSnapshot('golden/tools.golden.yaml');
  });

  test('are objects that the API server takes', () => {
    const outcome = outcomeOf(PLUGIN);
    for (const child of outcome.do === 'converge' ? outcome.children : []) {
      expect(judge(toolKind.schema, child)).toMatchObject({ ok: true });
    }
  });

  test('[C01] each gets all that the Plugin requires, of the Secret that is named as the Plugin unless it says otherwise', () => {
    const specs = (requires: Record<string, unknown>) => {
      const outcome = outcomeOf(aPlugin({ tools: ENTRIES, requires }));
      const children = outcome.do === 'converge' ? outcome.children : [];
      for (const child of children) expect(judge(toolKind.schema, child)).toMatchObject({ ok: true });
      return children.map(({ spec }) => spec);
    };
    const inject = [{ secret: 'TOKEN', host: 'api.github.com', in: 'header', port: 443, websocket: false }];
    const wanted = { secrets: ['TOKEN'], secretRef: { name: 'acme-github' }, inject };
    expect(specs({ secrets: ['TOKEN'], inject })).toMatchObject([wanted, wanted]);
    const other = { secretRef: { name: 'other' } };
    expect(specs({ secrets: ['TOKEN'], ...other })).toMatchObject([other, other]);
    for (const spec of specs({})) expect(spec).not.toHaveProperty('secretRef');
  });

  test('its Connections come before them, as the API server takes them, labelled as its own', () => {
    const bind = [{ host: 'api.github.com', port: 443, in: 'header', websocket: false }];
    const spec = { tools: ['acme_fetch'], kind: 'secret', secret: { secretRef: { name: 'acme' }, key: 'TOKEN' }, bind };
    const outcome = outcomeOf(aPlugin({ tools: ENTRIES, connections: [{ name: 'acme-fetch-key', ...spec }] }));
    const children = outcome.do === 'converge' ? outcome.children : [];
    expect(children.map(({ kind }) => kind)).toEqual(['Connection', 'Tool', 'Tool']);
    expect(children[0]).toMatchObject({
      metadata: { name: 'acme-fetch-key', namespace: 'acme', labels: { 'oz0.ai/plugin': 'acme-github' } },
      spec,
    });
    expect(judge(connectionKind.schema, children[0])).toMatchObject({ ok: true });
  });

  test.each<[string, string, Record<string, unknown> | undefined, string]>([
    ['for a tool that it does not bring', 'acme_other', undefined, 'False ForeignTool'],
    ['whose name a Connection has by itself', 'acme_fetch', {}, 'False ConnectionTaken'],
    ['whose name another Plugin’s has', 'acme_fetch', { name: 'acme-web', uid: 'o' }, 'False ConnectionTaken'],
    ['that is there already', 'acme_fetch', { name: 'acme-github', uid: 'plugin-uid' }, 'True Accepted'],
  ])('a Connection %s', (_name, tool, owner, expected) => {
    const secret = { secretRef: { name: 'acme' }, key: 'TOKEN' };
    const entry = { name: 'tracker', tools: [tool], kind: 'secret', secret, bind: [{ host: 'api.github.com' }] };
    const plugin = aPlugin({ tools: ENTRIES, connections: [entry] });
    const ownerReferences = owner?.['name']
      ? [{ apiVersion: 'oz0.ai/v1alpha1', kind: 'Plugin', controller: true, ...owner }]
      : [];
    const there = owner === undefined ? [] : [aConnection({}, { name: 'tracker', ownerReferences })];
    const status = statusOf(pluginReconciler, plugin, { reads: { connections: there } });
    expect(verdict(status, 'Accepted')).toBe(expected);
  });

  test('an entry that is taken out is not wanted any more', () => {
    const outcome = outcomeOf(aPlugin({ tools: ENTRIES.slice(1) }), { children: [owned('acme-github')] });
    expect(outcome.do === 'converge' && outcome.children.map(({ metadata }) => metadata.name)).toEqual(['acme-fetch']);
  });
});

describe('[K10] a tool id has one owner in a namespace', () => {
  const other = (metadata: Record<string, unknown>, status?: Record<string, unknown>) =>
    aPlugin(
      { tools: [{ id: 'acme_fetch', image: IMAGE }] },
      { name: 'acme-web', uid: 'other-uid', ...metadata },
      status,
    );
  const EARLIER = '2026-11-30T09:00:00Z';
  const LATER = '2026-11-30T11:00:00Z';

  test.for<[string, Seen['reads'], string]>([
    ['nobody has it', {}, 'True Accepted'],
    ['it is its own', { tools: [owned('acme-fetch')] }, 'True Accepted'],
    [
      'another Plugin made it',
      { tools: [owned('acme-fetch', 'True', { name: 'acme-web', uid: 'other-uid' })] },
      'False ToolIdTaken',
    ],
    ['[K02] a Tool by itself has it', { tools: [aTool({}, { name: 'acme-fetch' })] }, 'False ToolIdTaken'],
    [
      'a former Plugin of this name left it',
      { tools: [owned('acme-fetch', 'True', { name: 'acme-github', uid: 'former' })] },
      'True Accepted',
    ],
    [
      'an earlier Plugin is about to make it',
      { plugins: [other({ creationTimestamp: EARLIER })] },
      'False ToolIdTaken',
    ],
    ['a later Plugin wants it', { plugins: [other({ creationTimestamp: LATER })] }, 'True Accepted'],
    [
      'one of the same second, later by name',
      { plugins: [other({ creationTimestamp: '2026-11-30T10:00:00Z' })] },
      'True Accepted',
    ],
    [
      'an earlier Plugin that is going',
      { plugins: [other({ creationTimestamp: EARLIER, deletionTimestamp: LATER })] },
      'True Accepted',
    ],
    [
      'an earlier Plugin that was refused itself',
      { plugins: [other({ creationTimestamp: EARLIER }, { conditions: [{ type: 'Accepted', status: 'False' }] })] },
      'True Accepted',
    ],
  ])('%s', ([, reads, wanted]) => {
    const seen = reads ? { reads } : {};
    expect(verdict(statusOf(pluginReconciler, PLUGIN, seen), 'Accepted')).toBe(wanted);
    expect(outcomeOf(PLUGIN, seen).do).toBe(wanted.startsWith('True') ? 'converge' : 'hold');
  });

  test('the first one keeps working, and the message names it', () => {
    const seen = { reads: { tools: [owned('acme-fetch', 'True', { name: 'acme-web', uid: 'other-uid' })] } };
    const status = statusOf(pluginReconciler, PLUGIN, seen);
    expect(messageOf(status, 'Accepted')).toContain('acme_fetch (Plugin acme-web)');
    expect(verdict(status, 'Stalled')).toBe('True ToolIdTaken');
  });
});

test('[K11] a reserved name is refused while no list of reviewed plugins has it', () => {
  const plugin = aPlugin({}, { name: 'oz0-github' });
  expect(verdict(statusOf(pluginReconciler, plugin), 'Accepted')).toBe('False ReservedName');
});

describe('Installed and Ready', () => {
  test.for<[string, readonly KubeObject[], string, number]>([
    ['Tools are not there yet', [], 'Unknown ToolsStarting', 0],
    ['one starts', [owned('acme-github', 'True'), owned('acme-fetch', 'Unknown')], 'Unknown ToolsStarting', 1],
    [
      'one was judged as it was before',
      [owned('acme-github', 'True'), owned('acme-fetch', 'True', undefined, 0)],
      'Unknown ToolsStarting',
      1,
    ],
    ['[O02] one fails', [owned('acme-github', 'False'), owned('acme-fetch', 'Unknown')], 'False ToolFailing', 0],
    ['all work', [owned('acme-github', 'True'), owned('acme-fetch', 'True')], 'True Installed', 2],
  ])('%s', ([, children, wanted, ready]) => {
    const status = statusOf(pluginReconciler, PLUGIN, { children });
    expect(verdict(status, 'Installed')).toBe(wanted);
    expect(verdict(status, 'Ready').split(' ')[0]).toBe(wanted.split(' ')[0]);
    expect(status).toMatchObject({ version: '1.4.0', tools: { ready, desired: 2 } });
  });

  test('a Plugin without tools has nothing to wait for', () => {
    expect(verdict(statusOf(pluginReconciler, aPlugin()), 'Ready')).toBe('True Ready');
  });
});
