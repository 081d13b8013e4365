/** Egress' process before an API server of a few sets: what it watches is what it decides by. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { startEgressProcess } from '../../../src/egress/main.ts';
import { readSettings } from '../../../src/egress/settings.ts';
import type { KubeObject } from '../../../src/engine/contract.ts';
import { createClient } from '../../../src/kube/client.ts';
import { fixedConnection } from '../../../src/kube/connection.ts';
import { createResolver } from '../../../src/net/resolve.ts';
import { startTestCluster, TRUST_DOMAIN, testShell } from '../edge/cluster.ts';
import { fixedZone, startLyingDns } from './lyingDns.ts';
import { ask, identityOf, MAIL_POD, node, serviceCidr, slice, tool } from './world.ts';

/** Lists and watches by path, and 404 for what is not there. */
async function startSets(sets: Record<string, KubeObject[]>) {
  const watches = new Map<string, Set<ServerResponse>>();
  const asked: string[] = [];
  let version = 10;
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://x');
    const items = sets[url.pathname];
    asked.push(
      `${url.pathname}${url.searchParams.has('watch') ? ' watch' : ''}${url.searchParams.get('labelSelector') ?? ''}`,
    );
    response.writeHead(items === undefined ? 404 : 200, { 'content-type': 'application/json' });
    if (items === undefined) return response.end(JSON.stringify({ kind: 'Status', code: 404, reason: 'NotFound' }));
    if (!url.searchParams.has('watch')) {
      return response.end(JSON.stringify({ kind: 'List', metadata: { resourceVersion: String(version) }, items }));
    }
    response.flushHeaders();
    const open = watches.get(url.pathname) ?? new Set();
    watches.set(url.pathname, open.add(response));
    return response;
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    sets,
    tell(path: string, type: 'ADDED' | 'MODIFIED' | 'DELETED', object: KubeObject) {
      version++;
      const told = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } };
      for (const response of watches.get(path) ?? []) response.write(`${JSON.stringify({ type, object: told })}\n`);
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const TOOLS = '/apis/oz0.ai/v1alpha1/tools';
const RANGES = '/apis/networking.k8s.io/v1/servicecidrs';

test('[S05] [N09] [I1] hosts and addresses come from the API server, live; before that nothing is opened', async () => {
  const own = await startSets({
    [TOOLS]: [],
    '/api/v1/nodes': [node('n', ['10.0.0.4'], ['10.244.0.0/24'])],
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices': [slice('kubernetes', ['10.0.0.2'])],
  });
  const dns = await startLyingDns(
    fixedZone({
      'node.example.com': ['10.0.0.4'],
      'pod.example.com': ['10.244.0.3'],
      'service.example.com': ['10.96.0.1'],
    }),
  );
  const cluster = await startTestCluster();
  const mail = await identityOf(cluster, MAIL_POD);
  const shell = testShell('egress');
  const egress = startEgressProcess(shell, {
    settings: {
      ...readSettings({
        OZ0_NAMESPACE: 'oz0-system',
        OZ0_TRUST_DOMAIN: TRUST_DOMAIN,
        OZ0_CONNECT_ALLOW_NET: '10.0.0.0/8',
      }),
      edge: { host: '127.0.0.1', port: cluster.edge.port },
      trustFile: cluster.trustFile,
      tokenFile: `${cluster.folder}/egress-token`,
      port: 0,
    },
    client: createClient(fixedConnection({ server: own.url, tls: { verify: true } })),
    resolve: createResolver({ servers: [dns.server], timeoutMs: 500 }),
    host: '127.0.0.1',
    drainMs: 0,
  });
  try {
    const port = await egress.listening;
    const world = { cluster: { trustFile: cluster.trustFile, egress: { port } } };
    const code = async (target: string) => {
      const { body, status } = await ask(world, target, mail);
      return body.error?.class ?? body.error?.code ?? status;
    };
    expect(await code('node.example.com:443')).toBe('not-ready');
    expect(shell.health.notReady()).toHaveProperty('cluster');

    own.sets[RANGES] = [serviceCidr('kubernetes', ['10.96.0.0/12'])];
    await expect.poll(() => shell.health.notReady(), { timeout: 15_000 }).toEqual({});
    expect(await code('node.example.com:443')).toBe('no-such-tool');
    own.tell(TOOLS, 'ADDED', tool('mail', { hosts: ['node.example.com', 'pod.example.com', 'service.example.com'] }));
    await expect.poll(() => code('other.example.com:443')).toBe('host-not-allowed');
    expect(await code('node.example.com:443')).toBe('cluster-node');
    expect(await code('pod.example.com:443')).toBe('cluster-pod');
    expect(await code('service.example.com:443')).toBe('cluster-service');
    own.tell(TOOLS, 'DELETED', tool('mail', {}));
    await expect.poll(() => code('node.example.com:443')).toBe('no-such-tool');
    expect(own.asked.some((line) => line.includes('endpointslices') && line.includes('service-name=kubernetes'))).toBe(
      true,
    );
  } finally {
    await egress.close();
    await cluster.close();
    await dns.close();
    own.close();
  }
});
