/** Egress over real TLS: one route without a certificate, and nothing else for anybody. */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { certificateRequest } from '../../../src/net/csr.ts';
import { acceptIdentity } from '../../../src/net/identity.ts';
import { identityRequest } from '../../../src/net/identityRequest.ts';
import { SEARCH_POD, startTestCluster, type TestCluster, TRUST_DOMAIN } from '../edge/cluster.ts';

let cluster: TestCluster;
let shown: { cert: string; key: string };
beforeAll(async () => {
  cluster = await startTestCluster({ signerBounds: { maxMs: 1_000, maxBytes: 16_384 } });
  shown = await identityThroughEgress();
});
afterAll(() => cluster.close());

async function identityThroughEgress() {
  const keys = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const answer = await identityRequest({
    route: { kind: 'egress', host: '127.0.0.1', port: cluster.egress.port, servername: 'oz0-egress.oz0-system.svc' },
    trustDomain: TRUST_DOMAIN,
    trustBundlePem: async () => readFileSync(cluster.trustFile, 'utf8'),
    token: async () => cluster.api.addPod(SEARCH_POD),
  })(certificateRequest(keys), new AbortController().signal);
  const held = acceptIdentity(answer, keys.privateKey, TRUST_DOMAIN, Date.now());
  return { cert: held.certificatePem, key: held.keyPem };
}

async function open(options: object = {}): Promise<TLSSocket> {
  const socket = connect({
    host: '127.0.0.1',
    port: cluster.egress.port,
    ca: readFileSync(cluster.trustFile),
    servername: 'oz0-egress.oz0-system.svc',
    ...options,
  });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  return socket;
}

/** What comes back until the other side closes. */
async function exchange(text: string, options: object = {}): Promise<string> {
  const socket = await open(options);
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    answer += chunk;
  });
  socket.write(text);
  await new Promise((resolve) => socket.once('close', resolve));
  return answer;
}

const to = (target: string, host = target) => `CONNECT ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;

describe('egress', () => {
  test('[S05] [D04] a pod without a certificate gets one through the signer route', () => {
    expect(shown.cert).toContain('BEGIN CERTIFICATE');
  });

  test.each<[string, string, boolean, RegExp]>([
    ['a host, without a certificate', to('example.com:443'), false, /^HTTP\/1.1 403 .*"no-identity"/s],
    ['a host, with a tool’s certificate', to('example.com:443'), true, /^HTTP\/1.1 403 .*"host-not-allowed"/s],
    ['itself', to('oz0-egress.oz0-system.svc:443'), true, /"host-not-allowed"/],
    ['the API server', to('kubernetes.default.svc:443'), true, /"host-not-allowed"/],
    ['an address', to('127.0.0.1:443'), true, /"host-not-allowed"/],
    ['edge by its own name', to('oz0-edge.oz0-system.svc:443'), false, /"no-identity"/],
    ['another port of the signer', to('edge.oz0.internal:8443'), false, /"no-identity"/],
    ['no port', to('edge.oz0.internal'), false, /^HTTP\/1.1 400 /],
    ['a Host that differs', to('edge.oz0.internal:443', 'example.com:443'), false, /^HTTP\/1.1 400 /],
    ['GET', 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', false, /^HTTP\/1.1 405 .*"bad-request"/s],
    ['an absolute URL', 'GET http://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n', true, /^HTTP\/1.1 405 /],
    [
      'an upgrade',
      'GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n',
      true,
      /^HTTP\/1.1 405 /,
    ],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', false, /^HTTP\/1.1 400 /],
    ['no HTTP at all', '\u0000\u0001\u0002\r\n\r\n', false, /^HTTP\/1.1 400 /],
  ])('[S05] [case 104] refused: %s', async (_name, text, certificate, expected) => {
    expect(await exchange(text, certificate ? shown : {})).toMatch(expected);
  });

  test('the signer route is bounded in time and in bytes', async () => {
    const socket = await open();
    socket.write(to('edge.oz0.internal:443'));
    await once(socket, 'data');
    const begun = Date.now();
    await new Promise((resolve) => socket.resume().once('close', resolve));
    expect(Date.now() - begun).toBeLessThan(3_000);

    const flood = await open();
    flood.write(to('edge.oz0.internal:443'));
    await once(flood, 'data');
    flood.write(Buffer.alloc(64 * 1024));
    await new Promise((resolve) => flood.resume().once('close', resolve));
  });

  test('the signer route is limited in rate and number for one address', async () => {
    const opened = await Promise.all(Array.from({ length: 8 }, () => open()));
    const answers = await Promise.all(
      opened.map(async (socket) => {
        socket.write(to('edge.oz0.internal:443'));
        const [answer] = await once(socket, 'data');
        return String(answer).slice(9, 12);
      }),
    );
    for (const socket of opened) socket.destroy();
    expect(answers.filter((status) => status === '200').length).toBeLessThanOrEqual(4);
    expect(answers).toContain('429');
  });

  test('what is refused is logged with its reason and counted', async () => {
    const text = await cluster.egress.shell.metrics.text();
    expect(text).toMatch(/oz0_egress_connects_total\{outcome="no-identity"\} [1-9]/);
    expect(cluster.egress.shell.lines.join('')).toContain('"reason":"no-identity"');
  });
});
