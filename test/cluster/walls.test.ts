/**
 * The operator's own pods under their own NetworkPolicies, with real connections: every target listens, so what does not
 * open was stopped by a policy.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../../hack/shell/wait.ts';
import { components } from './actors.ts';
import {
  apply,
  exec,
  get,
  image,
  kubectl,
  type Live,
  OPERATOR_NAMESPACE,
  storyNamespace,
  waitForPod,
} from './cluster.ts';

type Target = readonly [host: string, port: number];

const CONNECT = `
const { connect } = require('node:net');
Promise.all(JSON.parse(process.argv[1]).map(([host, port]) => new Promise((done) => {
  const socket = connect({ host, port, timeout: 3000 });
  const end = (result) => { socket.destroy(); done(result); };
  socket.on('connect', () => end('open')).on('timeout', () => end('stopped')).on('error', () => end('stopped'));
}))).then((results) => console.log(JSON.stringify(results)));`;

/** Addresses on which something in this pod listens, as the kernel tells it. */
const LISTENING = `
const { readFileSync } = require('node:fs');
const listening = ['tcp', 'tcp6'].flatMap((family) =>
  readFileSync('/proc/net/' + family, 'utf8').trim().split('\\n').slice(1)
    .map((line) => line.trim().split(/\\s+/))
    .filter(([, , , state]) => state === '0A')
    .map(([, local]) => local.split(':'))
    .map(([address, port]) => (/^0+$/.test(address) ? '*' : address) + ':' + parseInt(port, 16)));
console.log(JSON.stringify([...new Set(listening)].sort()));`;

/** What becomes of connections from a pod, one after another. */
async function from(namespace: string, pod: string, ...targets: Target[]): Promise<string[]> {
  const { stdout, stderr } = await exec(namespace, pod, ['node', '-e', CONNECT, JSON.stringify(targets)]);
  if (!stdout.startsWith('[')) throw new Error(stderr || stdout);
  return JSON.parse(stdout);
}

describe('[case 106] the operator behind its own walls', () => {
  let space: Awaited<ReturnType<typeof storyNamespace>>;
  let tenant = '';
  const stranger = () => [tenant, 'stranger'] as const;
  const pods: Record<string, { name: string; address: string }> = {};
  let strangerAddress = '';
  const service = (name: string): Target => [`${name}.${OPERATOR_NAMESPACE}.svc.cluster.local`, 443];
  const at = (component: string, port: number): Target => [pods[component]?.address ?? '', port];
  const own = (component: string) => [OPERATOR_NAMESPACE, pods[component]?.name ?? ''] as const;

  beforeAll(async () => {
    space = await storyNamespace('walls');
    tenant = space.name;
    await apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'stranger', namespace: tenant },
      spec: {
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 1,
        securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            name: 'main',
            image: image('agent'),
            command: [
              'node',
              '-e',
              'for (const port of [8443, 8080]) require("node:http").createServer().listen(port)',
            ],
            securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
          },
        ],
      },
    });
    for (const component of components) {
      await waitFor(
        `a ready ${component}`,
        async () => {
          const { items } = await get(
            'pods',
            `--namespace=${OPERATOR_NAMESPACE}`,
            `--selector=oz0.ai/component=${component}`,
          );
          const ready = items.find(
            ({ metadata, status }: Live) =>
              metadata.deletionTimestamp === undefined &&
              status.conditions?.some(({ type, status }: Live) => type === 'Ready' && status === 'True'),
          );
          if (ready === undefined) return undefined;
          pods[component] = { name: ready.metadata.name, address: ready.status.podIP };
          return true;
        },
        { timeoutSeconds: 120, everyMs: 1000 },
      );
    }
    await waitForPod(tenant, 'stranger');
    strangerAddress = (await get('pod', 'stranger', `--namespace=${tenant}`)).status.podIP;
    // Its first open connection says that the node's policies for this new pod are in place.
    await waitFor(
      'a stranger reaches a gateway',
      async () => (await from(...stranger(), at('gateway', 8443)))[0] === 'open' || undefined,
      {
        timeoutSeconds: 60,
      },
    );
  });

  afterAll(async () => {
    await space?.[Symbol.asyncDispose]();
  });

  test('[S04] a stranger reaches the gateway, and of the operator nothing else', async () => {
    expect(await from(...stranger(), service('oz0-gateway'), service('oz0-gateway-any'))).toEqual(['open', 'open']);
    const closed = [
      service('oz0-edge'),
      service('oz0-egress'),
      at('edge', 8443),
      at('egress', 8443),
      ...components.flatMap((component) => [at(component, 8081), at(component, 9090)]),
    ];
    expect(await from(...stranger(), ...closed)).toEqual(closed.map(() => 'stopped'));
  });

  test('the gateway reaches edge and the API server, and no pod that is no tool', async () => {
    expect(await from(...own('gateway'), service('oz0-edge'), ['kubernetes.default.svc.cluster.local', 443])).toEqual([
      'open',
      'open',
    ]);
    const closed: Target[] = [
      [strangerAddress, 8443],
      [strangerAddress, 8080],
      at('egress', 8443),
      at('controller', 9090),
    ];
    expect(await from(...own('gateway'), ...closed)).toEqual(closed.map(() => 'stopped'));
  });

  test('egress reaches edge and the API server, and no pod of the cluster', async () => {
    expect(await from(...own('egress'), service('oz0-edge'), ['kubernetes.default.svc.cluster.local', 443])).toEqual([
      'open',
      'open',
    ]);
    const closed: Target[] = [[strangerAddress, 8443], at('gateway', 8443), at('controller', 9090)];
    expect(await from(...own('egress'), ...closed)).toEqual(closed.map(() => 'stopped'));
  });

  test('edge reaches the API server, and nothing else, and resolves no name', async () => {
    const apiServer = (
      await kubectl('get', 'service', 'kubernetes', '--namespace=default', '--output=jsonpath={.spec.clusterIP}')
    ).trim();
    expect(await from(...own('edge'), [apiServer, 443])).toEqual(['open']);
    const closed: Target[] = [[strangerAddress, 8443], at('gateway', 8443), at('egress', 8443), service('oz0-edge')];
    expect(await from(...own('edge'), ...closed)).toEqual(closed.map(() => 'stopped'));
  });

  test('[case 130] what listens is what is documented: no inspector, no admin port, on loopback neither', async () => {
    for (const component of components) {
      const read = await exec(...own(component), ['node', '-e', LISTENING]);
      // Nobody calls the controller.
      const serves = component === 'controller' ? [] : ['*:8443'];
      expect(JSON.parse(read.stdout), component).toEqual(['*:8081', ...serves, '*:9090']);
    }
  });
});
