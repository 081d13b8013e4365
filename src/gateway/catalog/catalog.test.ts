import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../engine/contract.ts';
import { type CatalogKind, createCatalog, EVERY_NAMESPACE } from './catalog.ts';

const object = (kind: CatalogKind, name: string, spec: unknown, namespace?: string): KubeObject => ({
  apiVersion: 'oz0.ai/v1alpha1',
  kind,
  metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
  spec,
});
const image = { reference: 'tools.example/tool:1', command: ['/tool'], transport: { stdio: {} } };

describe('what is configured', () => {
  test('[Y02] a policy is its namespace’s, a floor is everybody’s; both are kept as one object until one changes', () => {
    const catalog = createCatalog();
    catalog.put('ToolPolicy', object('ToolPolicy', 'b', { aiLabel: 'B' }, 'acme'));
    catalog.put('ToolPolicy', object('ToolPolicy', 'a', {}, 'acme'));
    catalog.put('ClusterToolPolicy', object('ClusterToolPolicy', 'floor', {}));
    const { namespace, cluster, aiLabel } = catalog.policies('acme');
    expect([namespace.map(({ name }) => name), cluster.map(({ name }) => name), aiLabel]).toEqual([
      ['a', 'b'],
      ['floor'],
      'B',
    ]);
    expect(catalog.policies('other')).toMatchObject({
      namespace: [],
      cluster: [{ name: 'floor' }],
      aiLabel: undefined,
    });
    expect(catalog.policies('acme')).toBe(catalog.policies('acme'));
    const before = catalog.policies('acme');
    catalog.remove('ClusterToolPolicy', object('ClusterToolPolicy', 'floor', {}));
    expect(catalog.policies('acme')).not.toBe(before);
    expect(catalog.policies('acme').cluster).toEqual([]);
  });

  test('[Y06] listeners are told which namespace changed, or that all did', () => {
    const catalog = createCatalog({ operatorNamespace: 'oz0-system' });
    const told: string[] = [];
    catalog.onChange((namespace) => told.push(namespace));
    catalog.put('Stop', object('Stop', 's', { tool: 'x' }, 'acme'));
    catalog.put('Stop', object('Stop', 's', { cluster: true }, 'oz0-system'));
    catalog.put('ClusterToolPolicy', object('ClusterToolPolicy', 'floor', {}));
    expect(told).toEqual(['acme', EVERY_NAMESPACE, EVERY_NAMESPACE]);
  });

  test('[Y06] an Agent that names one account with another is stopped with it', () => {
    const catalog = createCatalog();
    catalog.put('Tool', object('Tool', 'gh', { image }, 'acme'));
    for (const name of ['one', 'two'])
      catalog.put('Agent', object('Agent', name, { serviceAccounts: ['bot'], tools: ['gh.*'] }, 'acme'));
    expect(catalog.stopFor('acme', 'bot', 'gh')).toBeUndefined();
    catalog.put('Stop', object('Stop', 's', { agent: 'two' }, 'acme'));
    expect(catalog.stopFor('acme', 'bot', 'gh')).toMatchObject({ name: 's' });
    expect(catalog.stopFor('acme', 'other', 'gh')).toBeUndefined();
  });

  test('[P07] a change of a Tool’s status compiles no schema anew', () => {
    const catalog = createCatalog();
    const spec = { image, functions: { get: { outputSchema: { type: 'object' } } } };
    catalog.put('Tool', object('Tool', 'gh', spec, 'acme'));
    const before = catalog.tool('acme', 'gh')?.overrides;
    catalog.put('Tool', { ...object('Tool', 'gh', spec, 'acme'), status: { pods: { ready: 1, desired: 1 } } });
    expect(catalog.tool('acme', 'gh')?.overrides).toBe(before);
    catalog.put('Tool', object('Tool', 'gh', { image }, 'acme'));
    expect(catalog.tool('acme', 'gh')?.overrides.byName.size).toBe(0);
  });

  test('[I9] [case 47] what cannot be read is told once for each problem', () => {
    const told: string[] = [];
    const catalog = createCatalog({ onProblem: (kind, namespace, name) => told.push(`${kind} ${namespace}/${name}`) });
    const broken: [CatalogKind, unknown][] = [
      ['Agent', { tools: 7 }],
      ['Tool', { image: 7 }],
      ['Stop', { tool: 7 }],
      ['ToolPolicy', { rules: 7 }],
    ];
    for (const [kind, spec] of broken) {
      catalog.put(kind, object(kind, 'x', spec, 'acme'));
      catalog.put(kind, object(kind, 'x', spec, 'acme'));
    }
    const rule = { name: 'r', functions: ['*'], when: 'args.', do: 'run' };
    catalog.put('ToolPolicy', object('ToolPolicy', 'y', { rules: [rule] }, 'acme'));
    const functions = { get: { outputSchema: { type: 'object', properties: { a: { pattern: '(?=x)' } } } } };
    catalog.put('Tool', object('Tool', 'y', { image, functions }, 'acme'));
    expect(told).toEqual([
      'Agent acme/x',
      'Tool acme/x',
      'Stop acme/x',
      'ToolPolicy acme/x',
      'ToolPolicy acme/y',
      'Tool acme/y',
    ]);
  });
});
