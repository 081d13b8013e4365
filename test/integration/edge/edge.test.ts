/** Edge over real TLS, before an API server of the test's. */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadEdgeSecret, readEdgeKeys } from '../../../src/edge/authority.ts';
import { publishTrustBundle } from '../../../src/edge/trustBundle.ts';
import { createClient } from '../../../src/kube/client.ts';
import { fixedConnection } from '../../../src/kube/connection.ts';
import { certificateRequest } from '../../../src/net/csr.ts';
import { identityRequest } from '../../../src/net/identityRequest.ts';
import { NAMESPACE, SEARCH_POD, startFakeApi, startTestCluster, type TestCluster, TRUST_DOMAIN } from './cluster.ts';

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startTestCluster();
});
afterAll(() => cluster.close());

const newRequest = () => certificateRequest(generateKeyPairSync('ec', { namedCurve: 'prime256v1' }));

function ask(token: string, csr = newRequest()) {
  return identityRequest({
    route: { kind: 'direct', host: '127.0.0.1', port: cluster.edge.port },
    trustDomain: TRUST_DOMAIN,
    trustBundlePem: async () => readFileSync(cluster.trustFile, 'utf8'),
    token: async () => token,
  })(csr, new AbortController().signal);
}

describe('a crowd at the signer', () => {
  test('requests whose bodies do not come take no place of those that do', async () => {
    const open = () =>
      new Promise<TLSSocket>((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port: cluster.edge.port, rejectUnauthorized: false }, () =>
          resolve(socket),
        );
        socket.on('error', reject);
      });
    const slow = await Promise.all(Array.from({ length: 70 }, open));
    for (const socket of slow) {
      socket.write(
        'POST /v1/identity HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer 0123456789abcdef\r\n' +
          'Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{',
      );
    }
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(await ask(cluster.api.addPod({ ...SEARCH_POD, name: 'oz0t-search-c', uid: 'uid-c' }))).toMatchObject({
      identity: expect.stringContaining('/pod/uid-c'),
    });
    for (const socket of slow) socket.destroy();
  });
});

describe('identities', () => {
  test('[D04] a tool pod gets a certificate for itself, for an hour, without session keys', async () => {
    const token = cluster.api.addPod(SEARCH_POD);
    const answer = await ask(token);
    expect(answer.identity).toBe('spiffe://oz0.test/ns/team/tool/search/pod/uid-1');
    const leaf = new X509Certificate(answer.certificate);
    expect(leaf.subjectAltName).toBe(`URI:${answer.identity}`);
    expect(answer.sessionKeys).toBeUndefined();
    const life = leaf.validToDate.getTime() - Date.now();
    expect(life).toBeGreaterThan(3_590_000);
    expect(life).toBeLessThanOrEqual(3_600_000);
    expect(Date.now() - leaf.validFromDate.getTime()).toBeGreaterThan(59_000);
    expect(cluster.edge.shell.lines.join('')).not.toContain(token);
  });

  test('[D04] a gateway gets its node, its names, and the session keys', async () => {
    const pod = {
      namespace: NAMESPACE,
      name: 'oz0-gateway-1',
      uid: 'g',
      account: 'oz0-gateway',
      labels: { 'oz0.ai/component': 'gateway' },
      node: 'node-7',
    };
    const answer = await ask(cluster.api.addPod(pod));
    expect(new X509Certificate(answer.certificate).subjectAltName?.split(', ')).toEqual([
      'URI:spiffe://oz0.test/gateway/node/node-7',
      'DNS:oz0-gateway.oz0-system.svc',
      'DNS:oz0-gateway.oz0-system.svc.cluster.local',
      'DNS:oz0-gateway-any.oz0-system.svc',
      'DNS:oz0-gateway-any.oz0-system.svc.cluster.local',
    ]);
    expect(answer.sessionKeys).toHaveLength(1);
    expect(Buffer.from(answer.sessionKeys?.[0]?.key ?? '', 'base64')).toHaveLength(32);
  });

  test.each<[string, (token: string) => Promise<unknown>, string]>([
    ['an unknown token', () => ask('x'.repeat(40)), 'unauthenticated'],
    ['a token that is none', () => ask('no token at all'), 'unauthenticated'],
    ['a token of another audience', (token) => withAudience(token, 'oz0-gateway'), 'unauthenticated'],
    ['a request that is none', (token) => ask(token, 'x'), 'bad-request'],
    ['a long request', (token) => ask(token, 'x'.repeat(20_000)), 'too-large'],
  ])('[D04] refused: %s', async (_name, attempt, code) => {
    const token = cluster.api.addPod({ ...SEARCH_POD, name: `pod-${code}`, uid: `uid-${code}` });
    await expect(attempt(token)).rejects.toMatchObject({ code });
  });

  test('[case 79] refused: a pod that has gone, and one that took its name', async () => {
    const pod = { ...SEARCH_POD, name: 'oz0t-search-2', uid: 'uid-2' };
    const token = cluster.api.addPod(pod);
    cluster.api.addPod({ ...pod, uid: 'uid-3' });
    await expect(ask(token)).rejects.toMatchObject({ code: 'pod-replaced' });
    cluster.api.pods.delete('/api/v1/namespaces/team/pods/oz0t-search-2');
    await expect(ask(token)).rejects.toMatchObject({ code: 'pod-gone' });
  });

  test('a pod that asks too often is refused, its neighbour is not', async () => {
    const token = cluster.api.addPod({ ...SEARCH_POD, name: 'often', uid: 'often' });
    for (let at = 0; at < 10; at++) await ask(token);
    await expect(ask(token)).rejects.toMatchObject({ code: 'too-many' });
    await ask(cluster.api.addPod({ ...SEARCH_POD, name: 'neighbour', uid: 'neighbour' }));
  });

  test('an API server that is down: told so, and then it works again', async () => {
    const token = cluster.api.addPod({ ...SEARCH_POD, name: 'patient', uid: 'patient' });
    cluster.api.failing = 500;
    await expect(ask(token)).rejects.toMatchObject({ code: 'unavailable' });
    cluster.api.failing = undefined;
    await ask(token);
  });
});

describe('authority', () => {
  test('replicas that start at once have one authority, and publish once', async () => {
    const api = await startFakeApi();
    const client = createClient(fixedConnection({ server: api.url, tls: { verify: true } }));
    const { signal } = new AbortController();
    const loaded = await Promise.all(
      [1, 2, 3].map(async () => readEdgeKeys(await loadEdgeSecret(client, NAMESPACE, signal))),
    );
    expect(new Set(loaded.map((keys) => keys.authority.certificatePem)).size).toBe(1);
    const pem = loaded[0]?.authority.certificatePem ?? '';
    expect(new X509Certificate(pem).validToDate.getTime() - Date.now()).toBeGreaterThan(9.9 * 365 * 86_400_000);
    await Promise.all([1, 2].map(() => publishTrustBundle(client, NAMESPACE, pem, signal)));
    expect(await publishTrustBundle(client, NAMESPACE, pem, signal)).toBe('unchanged');
    // Someone overwrote it.
    api.objects.set(`/api/v1/namespaces/${NAMESPACE}/configmaps/oz0-trust`, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'oz0-trust', namespace: NAMESPACE },
    });
    expect(await publishTrustBundle(client, NAMESPACE, pem, signal)).toBe('written');
    await client.close();
    await api.close();
  });

  test('a Secret that is broken is not overwritten', async () => {
    const api = await startFakeApi();
    const client = createClient(fixedConnection({ server: api.url, tls: { verify: true } }));
    const broken = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'oz0-edge' }, data: { 'ca.crt': '' } };
    api.objects.set(`/api/v1/namespaces/${NAMESPACE}/secrets/oz0-edge`, broken);
    const load = async () => readEdgeKeys(await loadEdgeSecret(client, NAMESPACE, new AbortController().signal));
    await expect(load()).rejects.toThrow('oz0-edge');
    expect(api.requests.every((line) => line.startsWith('GET'))).toBe(true);
    await client.close();
    await api.close();
  });
});

async function withAudience(token: string, audience: string) {
  const known = cluster.api.tokens.get(token);
  if (known !== undefined) cluster.api.tokens.set(token, { ...known, audience });
  return ask(token);
}
