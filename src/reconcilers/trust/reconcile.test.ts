import { describe, expect, test } from 'vitest';
import type { KubeObject } from '../../engine/contract.ts';
import { textAt } from '../live.ts';
import { anAgent, aTool, OPERATOR, observe, type Seen } from '../testing/objects.ts';
import { trustReconciler } from './reconcile.ts';

const reconciler = trustReconciler(OPERATOR);
const NAMESPACE: KubeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'acme', uid: 'ns-uid' } };

const service = (clusterIP: string | undefined): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'a', namespace: 'oz0-system' },
  spec: { clusterIP, ports: [{ port: 9000 }, { port: 443 }] },
});
const published = (data: object): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'oz0-trust', namespace: 'oz0-system' },
  data,
});
const WHOLE: NonNullable<Seen['reads']> = {
  tools: [aTool()],
  published: [published({ 'ca.crt': 'PEM' })],
  egress: [service('10.96.0.20')],
  edge: [service('10.96.0.30')],
  apiServer: [service('10.96.0.1')],
};
const see = (reads: Seen['reads']) => reconciler.reconcile(observe(reconciler, NAMESPACE, reads ? { reads } : {}));

describe('trust in a namespace', () => {
  test('the ConfigMap says whom to trust and where the way out is', () => {
    expect(see(WHOLE)).toMatchObject({
      do: 'converge',
      children: [
        {
          metadata: { name: 'oz0', namespace: 'acme' },
          data: {
            'ca.crt': 'PEM',
            egress: '10.96.0.20:443',
            'egress-name': 'oz0-egress.oz0-system.svc',
            'trust-domain': 'cluster.local',
            'sandbox.json': '{"closed":["10.96.0.1:443","10.96.0.30:443"],"open":"10.96.0.20:443"}',
          },
        },
      ],
    });
  });

  test('further CAs of the admin are handed on, where there are any', () => {
    const keys = (upstream: readonly KubeObject[]) => {
      const outcome = see({ ...WHOLE, upstream });
      return outcome.do === 'converge' ? outcome.children.map((child) => textAt(child, 'data', 'upstream-ca.crt')) : [];
    };
    expect(keys([published({ 'ca.crt': 'PEM of a company' })])).toEqual(['PEM of a company']);
    expect(keys([published({ 'ca.crt': '' })])).toEqual([undefined]);
    expect(keys([])).toEqual([undefined]);
  });

  test('addresses of IPv6 are written as URLs write them', () => {
    const outcome = see({ ...WHOLE, egress: [service('fd00::20')] });
    expect(outcome).toMatchObject({ children: [{ data: { egress: '[fd00::20]:443' } }] });
  });

  test('an Agent alone needs it, and nobody else', () => {
    expect(see({ ...WHOLE, tools: [], agents: [anAgent([])] })).toMatchObject({
      children: [{ metadata: { name: 'oz0' } }],
    });
    expect(see({ ...WHOLE, tools: [] })).toEqual({ do: 'converge', children: [], facts: { conditions: [] } });
  });

  test.for(['published', 'egress', 'edge', 'apiServer'])('[I1] without %s it is left as it is', (name) => {
    expect(see({ ...WHOLE, [name]: [] })).toMatchObject({ do: 'hold' });
  });

  test.for<[string, Seen['reads']]>([
    ['an empty bundle', { published: [published({})] }],
    ['a Service without an address', { egress: [service(undefined)] }],
    ['a headless Service', { edge: [service('None')] }],
  ])('[I1] nor with %s', ([, reads]) => {
    expect(see({ ...WHOLE, ...reads })).toMatchObject({ do: 'hold' });
  });

  test('namespaces are not ours: no condition is written', () => {
    expect(reconciler.conditions).toEqual([]);
  });
});
