import { describe, expect, test } from 'vitest';
import { judge } from '../../api/judge.ts';
import { tool as toolKind } from '../../api/tool.ts';
import { probeLabel } from '../../domain/naming.ts';
import { createCatalog } from './catalog.ts';
import { routesOfPod, routesOfSlice } from './route.ts';
import type { CompiledTool } from './tool.ts';

const pod = (change: { metadata?: object; spec?: object; status?: object } = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', namespace: 'acme', uid: 'u', labels: { 'oz0.ai/tool': 'search' }, ...change.metadata },
  spec: { nodeName: 'node1', ...change.spec },
  status: { podIP: '10.0.0.1', conditions: [{ type: 'Ready', status: 'True' }], ...change.status },
});

describe('routes of pods', () => {
  test.each([
    ['ready', {}, 1],
    ['not ready', { status: { conditions: [{ type: 'Ready', status: 'False' }] } }, 0],
    ['without conditions', { status: { conditions: undefined } }, 0],
    ['without an address', { status: { podIP: undefined } }, 0],
    ['being deleted', { metadata: { deletionTimestamp: 'x' } }, 0],
    ['without a node', { spec: { nodeName: undefined } }, 0],
  ])('%s', (_, change, count) => {
    expect(routesOfPod(pod(change))?.routes).toHaveLength(count);
  });

  test('a pod in which a new version is tried is of no tool that anybody could name', () => {
    const { tool = '' } = routesOfPod(pod({ metadata: { labels: { 'oz0.ai/tool': probeLabel('search') } } })) ?? {};
    expect(tool).toBe('search.probe');
    const named = { apiVersion: 'oz0.ai/v1alpha1', kind: 'Tool', metadata: { name: tool }, spec: {} };
    expect(judge(toolKind.schema, { ...named, spec: { image: { reference: 'a', command: ['a'] } } })).toMatchObject({
      ok: false,
      problems: [{ message: expect.stringContaining('single dashes') }],
    });
  });

  test('a pod without the label is no tool’s', () => {
    expect(routesOfPod(pod({ metadata: { labels: {} } }))).toBeUndefined();
  });
});

const slice = (
  endpoints: unknown,
  labels: Record<string, string> = { 'kubernetes.io/service-name': 'oz0t-search' },
) => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 's', namespace: 'acme', labels },
  endpoints,
});
const endpoint = { addresses: ['10.0.0.2'], nodeName: 'node2', targetRef: { kind: 'Pod', uid: 'v', name: 'v' } };

describe('routes of slices', () => {
  test.each([
    ['ready said', [{ ...endpoint, conditions: { ready: true } }], 1],
    ['ready not said', [endpoint], 1],
    ['not ready', [{ ...endpoint, conditions: { ready: false } }], 0],
    ['terminating', [{ ...endpoint, conditions: { ready: true, terminating: true } }], 0],
    ['no pod behind it', [{ ...endpoint, targetRef: undefined }], 0],
    ['a pod of another namespace', [{ ...endpoint, targetRef: { ...endpoint.targetRef, namespace: 'other' } }], 0],
    ['no address', [{ ...endpoint, addresses: [] }], 0],
    ['[I5] a host name for an address', [{ ...endpoint, addresses: ['metadata.internal'] }], 0],
    ['null', null, 0],
    ['junk among sound ones', [7, null, endpoint], 1],
  ])('%s', (_, endpoints, count) => {
    expect(routesOfSlice(slice(endpoints))?.routes).toHaveLength(count);
  });

  test('a Service of another name is no tool’s', () => {
    expect(routesOfSlice(slice([endpoint], { 'kubernetes.io/service-name': 'search' }))).toBeUndefined();
  });
});

test('an endpoint in two slices is one route; a `node` tool takes this node’s pods, an `any` tool endpoints', () => {
  const catalog = createCatalog();
  const tool: CompiledTool = {
    namespace: 'acme',
    name: 'search',
    id: 'search',
    affinity: 'any',
    timeoutMs: 1,
    remote: false,
    approved: undefined,
    overrides: { text: '{}', byName: new Map() },
    honoursKey: new Set(),
  };
  catalog.put('Pod', pod());
  catalog.put('EndpointSlice', slice([endpoint]));
  catalog.put('EndpointSlice', { ...slice([endpoint]), metadata: { ...slice([]).metadata, name: 's2' } });
  expect(catalog.routes(tool).map(({ podUid }) => podUid)).toEqual(['v']);
  expect(catalog.routes({ ...tool, name: 'other' })).toEqual([]);
  const local = createCatalog();
  local.put('Pod', pod());
  expect(local.routes({ ...tool, affinity: 'node' }).map(({ podUid }) => podUid)).toEqual(['u']);
  local.remove('Pod', pod());
  expect(local.routes({ ...tool, affinity: 'node' })).toEqual([]);
});
