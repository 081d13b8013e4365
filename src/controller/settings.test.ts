import { describe, expect, test } from 'vitest';
import { readSettings } from './settings.ts';
import { decideUserNamespaces } from './userNamespaces.ts';

const ENVIRONMENT = {
  OZ0_NAMESPACE: 'oz0-system',
  OZ0_POD_NAME: 'oz0-controller-a',
  OZ0_TRUST_DOMAIN: 'cluster.local',
  OZ0_IMAGE: 'oz0.example/oz0-operator:1',
};

describe('settings', () => {
  test('what the chart sets is enough', () => {
    expect(readSettings(ENVIRONMENT)).toMatchObject({
      userNamespaces: 'prefer',
      edge: { host: 'oz0-edge.oz0-system.svc', port: 443 },
      resources: { limits: { memory: '256Mi' } },
    });
  });

  test('[S07] defaults of tools are settable', () => {
    expect(readSettings({ ...ENVIRONMENT, OZ0_TOOL_LIMIT_MEMORY: '1Gi' }).resources.limits.memory).toBe('1Gi');
  });

  test.for<[string, Record<string, string>, RegExp]>([
    ['a missing variable', { OZ0_IMAGE: '' }, /OZ0_IMAGE: is missing/],
    ['another mode', { OZ0_USER_NAMESPACES: 'maybe' }, /OZ0_USER_NAMESPACES/],
    ['no quantity', { OZ0_TOOL_LIMIT_CPU: 'much' }, /OZ0_TOOL_LIMIT_CPU/],
    ['a request over its limit', { OZ0_TOOL_REQUEST_MEMORY: '1Gi' }, /request of memory is over/],
    ['no duration', { OZ0_CALL_RETENTION: 'long' }, /OZ0_CALL_RETENTION/],
    ['a duration that keeps nothing', { OZ0_CALL_RETENTION: '1s' }, /OZ0_CALL_RETENTION/],
    ['no port', { OZ0_EDGE_PORT: '0' }, /OZ0_EDGE_PORT/],
  ])('%s is named', ([, environment, message]) => {
    expect(() => readSettings({ ...ENVIRONMENT, ...environment })).toThrow(message);
  });
});

describe('[S01] user namespaces', () => {
  const node = (userNamespaces: boolean | undefined, name = '') => ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n' },
    status: {
      runtimeHandlers: [
        { name, features: { userNamespaces } },
        { name: 'gvisor', features: { userNamespaces: false } },
      ],
    },
  });
  const silent = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, status: {} };

  test.for([
    ['require', [node(false)], true],
    ['off', [node(true)], false],
    ['prefer', [node(true), silent], true],
    ['prefer', [node(true), node(false)], false],
    ['prefer', undefined, true],
  ] as const)('%s, nodes %j: %j', ([mode, nodes, wanted]) => {
    expect(decideUserNamespaces(mode, nodes)).toBe(wanted);
  });
});
