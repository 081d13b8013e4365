/**
 * The authority is replaced while everything goes on: two replicas of edge, egress before one of them, a tool's server and a gateway's
 * client that renew by themselves, with certificates of seconds. A replica dies on the way and comes back.
 */
import { X509Certificate } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { advanced, loadEdgeSecret, ROTATE_ANNOTATION, readEdgeKeys } from '../../../src/edge/authority.ts';
import { startEdge } from '../../../src/edge/main.ts';
import { startEgress } from '../../../src/egress/main.ts';
import type { KubeObject } from '../../../src/engine/contract.ts';
import { createClient, type KubeClient } from '../../../src/kube/client.ts';
import { fixedConnection } from '../../../src/kube/connection.ts';
import { startIdentity } from '../../../src/net/identity.ts';
import { identityRequest, type SignerRoute } from '../../../src/net/identityRequest.ts';
import { openPeer } from '../../../src/net/peer.ts';
import { startTlsServer } from '../../../src/net/tlsServer.ts';
import { type FakeApi, NAMESPACE, SEARCH_POD, startFakeApi, TRUST_DOMAIN, testShell } from './cluster.ts';

const SECRET = `/api/v1/namespaces/${NAMESPACE}/secrets/oz0-edge`;
const BUNDLE = `/api/v1/namespaces/${NAMESPACE}/configmaps/oz0-trust`;
const SCOPE = { namespace: NAMESPACE, trustDomain: TRUST_DOMAIN, clusterDomain: 'cluster.local' };
const LIFE_MS = 6_000;
const TIMING = { pollMs: 100, retryMs: 50, freshMs: 800, stepMs: 8_500 };
const SECOND = { namespace: NAMESPACE, account: 'oz0-gateway', labels: { 'oz0.ai/component': 'gateway' } };
const EGRESS = { namespace: NAMESPACE, account: 'oz0-egress', labels: { 'oz0.ai/component': 'egress' } };

let api: FakeApi;
let client: KubeClient;
let folder: string;
const stop = new AbortController();

beforeAll(async () => {
  api = await startFakeApi();
  client = createClient(fixedConnection({ server: api.url, tls: { verify: true } }));
  folder = mkdtempSync(join(tmpdir(), 'oz0-rotation-'));
});
afterAll(async () => {
  stop.abort();
  await client.close();
  await api.close();
  rmSync(folder, { recursive: true, force: true });
});

const bundle = () => String((api.objects.get(BUNDLE) as { data: Record<string, string> }).data['ca.crt']);
const authorities = (pem: string) => pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
const keysNow = () => readEdgeKeys(api.objects.get(SECRET) as never);
const phasesPut = () =>
  api.puts.filter(({ path }) => path === SECRET).map(({ object }) => readEdgeKeys(object as never).rotation.phase);

function ask(request: string) {
  const secret = api.objects.get(SECRET) as { metadata: object };
  api.objects.set(SECRET, {
    ...secret,
    metadata: {
      ...secret.metadata,
      annotations: { [ROTATE_ANNOTATION]: request },
      resourceVersion: `asked-${request}`,
    },
  });
}

function replica(port = 0) {
  const own = createClient(fixedConnection({ server: api.url, tls: { verify: true } }));
  const shell = testShell('edge');
  const options = { client: own, scope: SCOPE, host: '127.0.0.1', timing: TIMING, certificateLifeMs: LIFE_MS };
  const edge = startEdge(shell, { ...options, port });
  return {
    shell,
    listening: edge.listening,
    async close() {
      await edge.close();
      await own.close();
    },
  };
}

describe('the authority is replaced', () => {
  test('without a dropped call, step by step, by two replicas of which one dies', {
    timeout: 90_000,
  }, async () => {
    let a = replica();
    const b = replica();
    const [portA, portB] = await Promise.all([a.listening, b.listening]);
    // As a kubelet writes it, some time after.
    const trustFile = join(folder, 'ca.crt');
    const mount = () => writeFileSync(trustFile, bundle());
    mount();
    const mounting = setInterval(mount, 700);
    const egressToken = join(folder, 'egress-token');
    writeFileSync(egressToken, api.addPod({ ...EGRESS, name: 'oz0-egress-1', uid: 'e' }));
    const egressShell = testShell('egress');
    const egress = startEgress(egressShell, {
      trustDomain: TRUST_DOMAIN,
      edge: { host: '127.0.0.1', port: portA },
      tokenFile: egressToken,
      trustFile,
      policy: { hosts: () => [] },
      host: '127.0.0.1',
      port: 0,
      drainMs: 0,
    });
    const egressPort = await egress.listening;

    const problems: string[] = [];
    // Pods that live for ever read the bundle once; what they hold carries them.
    const firstBundle = bundle();
    const identityOf = (route: SignerRoute, token: string, trust: () => string) =>
      startIdentity({
        request: identityRequest({
          route,
          trustDomain: TRUST_DOMAIN,
          trustBundlePem: async () => trust(),
          token: async () => token,
        }),
        trustDomain: TRUST_DOMAIN,
        log: (level, event, fields) => level === 'info' || problems.push(`${event} ${JSON.stringify(fields)}`),
        signal: stop.signal,
      });
    const tool = identityOf(
      { kind: 'egress', host: '127.0.0.1', port: egressPort, servername: 'oz0-egress.oz0-system.svc' },
      api.addPod(SEARCH_POD),
      () => firstBundle,
    );
    const gateway = identityOf(
      { kind: 'direct', host: '127.0.0.1', port: portB },
      api.addPod({ ...SECOND, name: 'oz0-gateway-1', uid: 'g', node: 'n' }),
      bundle,
    );
    await Promise.all([tool.ready, gateway.ready]);
    const sealedBefore = gateway.current()?.sessionKeys?.[0]?.id;
    const server = await startTlsServer({
      host: '127.0.0.1',
      port: 0,
      credentials: tool,
      trustDomain: TRUST_DOMAIN,
      clientCertificate: 'required',
      handler: (_request, response) => response.end('ok'),
      signal: stop.signal,
    });
    const peer = openPeer({
      address: { host: '127.0.0.1', port: server.address.port },
      expected: ({ kind }) => kind === 'tool',
      trustDomain: TRUST_DOMAIN,
      credentials: gateway,
      connections: 4,
    });
    let calls = 0;
    const failed: string[] = [];
    let calling = true;
    const caller = (async () => {
      while (calling) {
        try {
          const { statusCode, body } = await peer
            .dispatcher()
            .request({ origin: `https://127.0.0.1:${server.address.port}`, path: '/', method: 'GET' });
          if (statusCode !== 200 || (await body.text()) !== 'ok') failed.push(`status ${statusCode}`);
        } catch (error) {
          failed.push(String(error));
        }
        calls++;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();

    try {
      const old = keysNow().authority.certificatePem;
      ask('because');
      await expect.poll(() => keysNow().rotation.phase, { timeout: 5_000 }).toBe('published');
      // Published beside the old one, which signs.
      expect(authorities(bundle())).toHaveLength(2);
      expect(keysNow().authority.certificatePem).toBe(old);
      expect((api.objects.get(BUNDLE) as { metadata: { annotations: object } }).metadata.annotations).toEqual({
        'oz0.ai/rotation': expect.stringContaining('signs from'),
      });
      await a.close();
      a = replica(portA);
      await a.listening;

      await expect.poll(() => keysNow().rotation.phase, { timeout: 30_000 }).toBe('used');
      expect(keysNow().authority.certificatePem).not.toBe(old);
      expect(bundle()).toContain(old.trim());

      await expect.poll(() => keysNow().rotation.phase, { timeout: 30_000 }).toBe('steady');
      await expect.poll(() => authorities(bundle()), { timeout: 5_000 }).toHaveLength(1);
      expect(bundle()).not.toContain(old.trim());
      // And everybody lives on the new one alone.
      const callsThen = calls;
      const renewed = () => [tool, gateway].map((each) => each.current()?.trustBundlePem);
      await expect.poll(renewed, { timeout: 10_000 }).toEqual([bundle(), bundle()]);
      await expect.poll(() => calls, { timeout: 10_000 }).toBeGreaterThan(callsThen + 20);
      for (const each of [tool, gateway]) {
        const leaf = new X509Certificate(each.current()?.certificatePem ?? '');
        expect(leaf.verify(new X509Certificate(bundle()).publicKey)).toBe(true);
      }
      // The key that sealed sessions before still opens them.
      const ids = gateway.current()?.sessionKeys?.map(({ id }) => id) ?? [];
      expect(ids).toHaveLength(2);
      expect(ids[1]).toBe(sealedBefore);
      expect(failed).toEqual([]);
      expect(calls).toBeGreaterThan(200);
      expect(phasesPut()).toEqual(['made', 'published', 'used', 'steady']);
      expect(await b.shell.metrics.text()).toMatch(/oz0_edge_authority_expiry_seconds \d+/);
      expect(await b.shell.metrics.text()).toContain('oz0_edge_authority_phase{phase="steady"} 1');
      expect(`${a.shell.lines.join('')}${b.shell.lines.join('')}`).toContain('a step of its rotation is made');
      // The same request is met once.
      await new Promise((resolve) => setTimeout(resolve, 5 * TIMING.pollMs));
      expect(phasesPut()).toHaveLength(4);
    } finally {
      calling = false;
      await caller;
      clearInterval(mounting);
      await peer.close();
      await server.close(0);
      tool.close();
      gateway.close();
      await egress.close();
      await a.close();
      await b.close();
    }
  });

  test('a replica that cannot read the Secret for too long signs nothing, and is not ready', async () => {
    const edge = replica();
    await edge.listening;
    expect(edge.shell.health.notReady()).toEqual({});
    api.failing = 500;
    await expect.poll(() => edge.shell.health.notReady(), { timeout: 5_000 }).toHaveProperty('signer');
    api.failing = undefined;
    await expect.poll(() => edge.shell.health.notReady(), { timeout: 5_000 }).toEqual({});
    await edge.close();
  });

  test('each step keeps what the others need, and no key of an authority that has gone', async () => {
    const secret = await loadEdgeSecret(client, NAMESPACE, stop.signal);
    const fields = (object: KubeObject) => Object.keys(object['data'] ?? {}).sort();
    const before = readEdgeKeys(secret);
    const made = advanced(secret, 'make', Date.now());
    expect(fields(made)).toEqual(['ca.crt', 'ca.key', 'next.crt', 'next.key', 'rotation.json', 'session-keys.json']);
    const used = advanced(advanced(made, 'publish', Date.now()), 'use', Date.now());
    expect(fields(used)).toEqual(['ca.crt', 'ca.key', 'former.crt', 'rotation.json', 'session-keys.json']);
    expect(readEdgeKeys(used).bundlePem.endsWith(before.authority.certificatePem)).toBe(true);
    const dropped = advanced(used, 'drop', Date.now());
    expect(fields(dropped)).toEqual(['ca.crt', 'ca.key', 'rotation.json', 'session-keys.json']);
    expect(readEdgeKeys(dropped).sessionKeys[0]).not.toEqual(before.sessionKeys[0]);
    expect(() => advanced(secret, 'use', Date.now())).toThrow('lacks next.crt');
  });
});
