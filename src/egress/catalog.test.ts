import { describe, expect, test } from 'vitest';
import { judgeAddress, NO_NETWORKS } from '../domain/egress/judgeAddress.ts';
import type { KubeObject } from '../engine/contract.ts';
import { createEgressCatalog } from './catalog.ts';
import { compileToolHosts } from './toolHosts.ts';

const object = (kind: string, name: string, rest: object, namespace?: string): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, uid: name, resourceVersion: '1', ...(namespace === undefined ? {} : { namespace }) },
  ...rest,
});
const NODE = object('Node', 'n', {
  spec: { podCIDR: '10.244.1.0/24', podCIDRs: ['10.244.1.0/24', 'fd00:244::/80'] },
  status: {
    addresses: [
      { type: 'InternalIP', address: '10.0.0.4' },
      { type: 'ExternalIP', address: '51.15.0.4' },
      { type: 'InternalIP', address: 'fd00:9::4' },
      { type: 'Hostname', address: 'n' },
      { type: 'ExternalDNS' },
      null,
    ],
  },
});
const SLICE = object('EndpointSlice', 's', { endpoints: [{ addresses: ['34.1.1.1'] }, {}] }, 'default');
const RANGES = object('ServiceCIDR', 'kubernetes', { spec: { cidrs: ['10.96.0.0/12', 'fd00:96::/108', 'odd'] } });
const TOOL = { kind: 'tool', namespace: 'team', tool: 'search', podUid: 'u' } as const;

describe('[N09] addresses that are the cluster’s own', () => {
  const catalog = createEgressCatalog({ fixed: NO_NETWORKS, synced: () => true });
  catalog.put('Node', NODE);
  catalog.put('EndpointSlice', SLICE);
  catalog.put('ServiceCIDR', RANGES);
  const classOf = (address: string) =>
    judgeAddress(address, { namespace: 'team', port: 443 }, catalog.networks()).class;

  test.each([
    ['10.0.0.4', 'cluster-node'],
    ['51.15.0.4', 'cluster-node'],
    ['fd00:9::4', 'cluster-node'],
    ['10.244.1.9', 'cluster-pod'],
    ['fd00:244::9', 'cluster-pod'],
    ['34.1.1.1', 'cluster-api'],
    ['10.96.0.10', 'cluster-service'],
    ['fd00:96::a', 'cluster-service'],
    ['51.15.0.5', 'public'],
  ])('%s is %s', (address, expected) => expect(classOf(address)).toBe(expected));

  test('what goes is forgotten, and listeners are told', () => {
    let told = 0;
    const stop = catalog.onChange(() => told++);
    catalog.remove('Node', NODE);
    expect([classOf('51.15.0.4'), told]).toEqual(['public', 1]);
    stop();
    catalog.put('Node', NODE);
    expect(told).toBe(1);
  });
});

describe('[I1] ready', () => {
  test('only when all is seen, and what every cluster has is among it', () => {
    let synced = false;
    const catalog = createEgressCatalog({ fixed: NO_NETWORKS, synced: () => synced });
    catalog.put('Tool', object('Tool', 'search', { spec: { hosts: ['a.example.com'] } }, 'team'));
    expect(catalog.policy.held?.(TOOL)).toBe('not-ready');
    synced = true;
    for (const [kind, one, expected] of [
      ['Node', NODE, /node/],
      ['EndpointSlice', SLICE, /API server/],
      ['ServiceCIDR', RANGES, /Services/],
    ] as const) {
      expect(catalog.notReady()).toMatch(expected);
      catalog.put(kind, one);
    }
    expect(catalog.notReady()).toBeUndefined();
    expect(catalog.policy.held?.(TOOL)).toBeUndefined();
    expect(catalog.policy.held?.({ ...TOOL, namespace: 'other' })).toBe('no-such-tool');
  });
});

describe('[I9] hosts of a Tool', () => {
  const compile = (spec: unknown) => compileToolHosts(object('Tool', 't', { spec }, 'team'));

  test.each<[string, unknown, readonly string[]]>([
    ['none', {}, []],
    ['hosts', { hosts: ['a.example.com', 'b.example.com:8443'] }, ['a.example.com:443', 'b.example.com:8443']],
    ['a url', { url: 'https://mcp.example.com/mcp' }, ['mcp.example.com:443']],
    ['a url with a parameter, whose host is known elsewhere', { url: 'https://{params.host}/mcp' }, []],
  ])('%s', (_name, spec, expected) => {
    const { patterns, problems, broken } = compile(spec);
    expect(patterns.map(({ host, port }) => `${host}:${port}`)).toEqual(expected);
    expect([problems, broken]).toEqual([[], false]);
  });

  test('an entry that is none opens nothing, and the others hold', () => {
    const { patterns, problems, broken } = compile({ hosts: ['a.example.com', '*', 7], url: 'https://localhost/' });
    expect([patterns.length, problems.length, broken]).toEqual([1, 3, false]);
  });

  test.each([
    undefined,
    null,
    'x',
    [],
    { hosts: 'a.example.com' },
    { hosts: {} },
    { hosts: new Array(257).fill('a.b') },
  ])('%j cannot be read, and opens nothing', (spec) =>
    expect(compile(spec)).toMatchObject({ patterns: [], broken: true }),
  );
});
