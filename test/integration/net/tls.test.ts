/** Mutual TLS between servers and diallers of ours, over real sockets on loopback. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect as connectTcp, type Socket } from 'node:net';
import { connect as connectTlsRaw } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import type { Identity } from '../../../src/domain/identity/identity.ts';
import { openPeer, type PeerOptions } from '../../../src/net/peer.ts';
import { changingCredentials, createTestAuthority, TRUST_DOMAIN } from '../../../src/net/testing/authority.ts';
import { connectTls } from '../../../src/net/tlsClient.ts';
import { startTlsServer, type TlsServerOptions } from '../../../src/net/tlsServer.ts';

const TOOL: Identity = { kind: 'tool', namespace: 'team', tool: 'search', podUid: 'uid-1' };
const GATEWAY: Identity = { kind: 'gateway', node: 'node-1' };
const ca = createTestAuthority();
const stops: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function serve(options: Partial<TlsServerOptions> = {}) {
  const credentials = changingCredentials(ca.issue(TOOL));
  const seen: (Identity | undefined)[] = [];
  const server = await startTlsServer({
    host: '127.0.0.1',
    port: 0,
    credentials,
    trustDomain: TRUST_DOMAIN,
    clientCertificate: 'required',
    handler(_request, response, peer) {
      seen.push(peer);
      response.end('hello');
    },
    signal: new AbortController().signal,
    ...options,
  });
  stops.push(() => server.close(0));
  return { server, credentials, seen, address: { host: '127.0.0.1', port: server.address.port } };
}

function dial(address: PeerOptions['address'], options: Partial<PeerOptions> = {}) {
  const peer = openPeer({
    address,
    expected: TOOL,
    trustDomain: TRUST_DOMAIN,
    credentials: changingCredentials(ca.issue(GATEWAY)),
    connections: 4,
    headersTimeoutMs: 5_000,
    ...options,
  });
  stops.push(() => peer.close());
  return {
    peer,
    async get(path = '/') {
      const { statusCode, body } = await peer.dispatcher().request({ method: 'GET', path });
      return { statusCode, text: await body.text() };
    },
  };
}

describe('a crowd from one address', () => {
  test('takes no more than its share of connections, whatever it does with them; the others are served', async () => {
    const { address } = await serve({ clientCertificate: 'none', limits: { maxConnectionsPerAddress: 3 } });
    const from = (localAddress: string) =>
      new Promise<Socket>((resolve) => {
        const socket = connectTcp({ ...address, localAddress }, () => resolve(socket));
        socket.on('error', () => {});
      });
    const crowd = await Promise.all(Array.from({ length: 10 }, () => from('127.0.0.2')));
    await expect.poll(() => crowd.filter((socket) => socket.closed || socket.readableEnded).length).toBe(7);
    expect(await dial(address).get()).toMatchObject({ statusCode: 200 });
    for (const socket of crowd) socket.destroy();
    // A share is given back.
    await expect
      .poll(async () => {
        const again = await from('127.0.0.2');
        await new Promise((resolve) => setTimeout(resolve, 50));
        const open = !again.closed && !again.readableEnded;
        again.destroy();
        return open;
      })
      .toBe(true);
  });
});

describe('mutual TLS', () => {
  test('[S04] both ends know each other by identity', async () => {
    const { address, seen } = await serve();
    expect(await dial(address).get()).toEqual({ statusCode: 200, text: 'hello' });
    expect(seen).toEqual([GATEWAY]);
  });

  test.each<[string, Partial<PeerOptions>, string]>([
    ['another pod at the address', { expected: { ...TOOL, podUid: 'uid-2' } }, 'OZ0_WRONG_PEER'],
    ['a predicate that says no', { expected: () => false }, 'OZ0_WRONG_PEER'],
    [
      'an authority that we do not know',
      {
        credentials: changingCredentials({
          ...ca.issue(GATEWAY),
          trustBundlePem: createTestAuthority().authority.certificatePem,
        }),
      },
      'SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_GET_ISSUER_CERT_LOCALLY|UNABLE_TO_VERIFY_LEAF_SIGNATURE|CERT_SIGNATURE_FAILURE',
    ],
    ['no certificate of our own yet', { credentials: changingCredentials() }, 'OZ0_NO_IDENTITY'],
  ])('[S04] nothing is sent to %s', async (_name, options, code) => {
    const { address, seen } = await serve();
    await expect(dial(address, options).get()).rejects.toMatchObject({ code: expect.stringMatching(code) });
    expect(seen).toEqual([]);
  });

  test.each([
    ['of another authority', createTestAuthority().issue(GATEWAY)],
    ['that has run out', ca.issue(GATEWAY, -1_000)],
  ])('[S04] a client certificate %s reaches no handler, required or optional', async (_name, shown) => {
    for (const clientCertificate of ['required', 'optional'] as const) {
      const { address, seen } = await serve({ clientCertificate });
      const credentials = changingCredentials({ ...shown, trustBundlePem: ca.authority.certificatePem });
      await expect(dial(address, { credentials }).get()).rejects.toThrow();
      expect(seen).toEqual([]);
    }
  });

  test('no client certificate: refused where required, nobody where optional', async () => {
    for (const clientCertificate of ['required', 'optional'] as const) {
      const { address, seen } = await serve({ clientCertificate });
      const socket = connectTlsRaw({
        ...address,
        ca: ca.authority.certificatePem,
        checkServerIdentity: () => undefined,
      });
      socket.end('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
      await closeOf(socket);
      expect(seen).toEqual(clientCertificate === 'required' ? [] : [undefined]);
    }
  });

  test('TLS 1.2 and HTTP/2 are not spoken', async () => {
    const { address, seen } = await serve({ clientCertificate: 'none' });
    for (const options of [{ maxVersion: 'TLSv1.2' as const }, { ALPNProtocols: ['h2'] }]) {
      const socket = connectTlsRaw({ ...address, ca: ca.authority.certificatePem, ...options });
      const [error] = await once(socket, 'error');
      socket.on('error', () => {});
      expect(error.code).toMatch(/ALERT|ECONNRESET/);
    }
    expect(seen).toEqual([]);
  });

  test('a connection does not outlive the certificate that proved it', async () => {
    const { address, seen } = await serve();
    const { get } = dial(address, { credentials: changingCredentials(ca.issue(GATEWAY, 1_500)), connections: 1 });
    expect((await get()).statusCode).toBe(200);
    await new Promise((resolve) => setTimeout(resolve, 1_600));
    expect((await get()).statusCode).toBe(403);
    expect(seen).toHaveLength(1);
  });
});

describe('renewal', () => {
  test('both ends renew, and the authority changes, while a call runs: none is dropped', async () => {
    const running: ServerResponse[] = [];
    const { address, credentials } = await serve({
      handler(request, response) {
        if (request.url !== '/slow') return void response.end('quick');
        response.write('begun ');
        running.push(response);
      },
    });
    const own = changingCredentials(ca.issue(GATEWAY));
    const { get } = dial(address, { credentials: own });
    const slow = get('/slow');
    while (running.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    // The new authority is trusted beside the old one first, as in a rotation.
    const next = createTestAuthority('next');
    const both = ca.authority.certificatePem + next.authority.certificatePem;
    credentials.set({ ...next.issue(TOOL), trustBundlePem: both });
    own.set({ ...next.issue(GATEWAY), trustBundlePem: both });
    expect((await get()).text).toBe('quick');
    running[0]?.end('ended');
    expect((await slow).text).toBe('begun ended');
  });
});

describe('limits', () => {
  function raw(address: { host: string; port: number }) {
    const socket = connectTlsRaw({ ...address, ca: ca.authority.certificatePem, checkServerIdentity: () => undefined });
    // The server may reset what it refuses, and does reset what is still open when a test ends.
    socket.on('error', () => {});
    return socket;
  }

  test('a handshake that never comes, and a head that never ends, are cut off', async () => {
    const { address, server } = await serve({
      clientCertificate: 'none',
      limits: { handshakeTimeoutMs: 200, headersTimeoutMs: 300 },
    });
    const silent = connectTcp(address.port, address.host);
    const slow = raw(address);
    slow.write('GET / HTTP/1.1\r\n');
    await Promise.all([closeOf(silent), closeOf(slow)]);
    await expect.poll(() => server.connections()).toBe(0);
  });

  test('a head over the limit is refused', async () => {
    const { address, seen } = await serve({ clientCertificate: 'none', limits: { maxHeaderBytes: 1_024 } });
    const socket = raw(address);
    socket.write(`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(4_096)}\r\n\r\n`);
    const [answer] = await once(socket, 'data');
    expect(String(answer)).toContain('400 Bad Request');
    expect(seen).toEqual([]);
  });

  test('connections over the limit are dropped, and room comes back', async () => {
    const { address } = await serve({ clientCertificate: 'none', limits: { maxConnections: 2 } });
    const open: Socket[] = [raw(address), raw(address)];
    await Promise.all(open.map((socket) => once(socket, 'secureConnect')));
    const third = raw(address);
    await expect(once(third, 'secureConnect')).rejects.toThrow();
    open[0]?.destroy();
    await expect
      .poll(async () =>
        once(raw(address), 'secureConnect').then(
          () => 'open',
          () => 'refused',
        ),
      )
      .toBe('open');
  });
});

describe('closing', () => {
  test('waits for what runs, takes nothing new, and cuts what overstays', async () => {
    const running: ServerResponse[] = [];
    const { server, address } = await serve({ handler: (_request, response) => void running.push(response) });
    const { get } = dial(address);
    const first = get();
    const second = get();
    second.catch(() => {});
    while (running.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    const closed = server.close(300);
    running[0]?.end('finished');
    expect((await first).text).toBe('finished');
    await expect(get()).rejects.toThrow();
    await closed;
    await expect(second).rejects.toThrow();
    await expect.poll(() => server.connections()).toBe(0);
  });

  test('aborting while it waits for credentials opens nothing', async () => {
    const abort = new AbortController();
    const starting = serve({ credentials: changingCredentials(), signal: abort.signal });
    abort.abort(new Error('stopped'));
    await expect(starting).rejects.toThrow('stopped');
  });
});

test('dialling is bounded: a peer that never shakes hands', async () => {
  const { createServer } = await import('node:net');
  const mute = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1');
  await once(mute, 'listening');
  const address = mute.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const shown = ca.issue(GATEWAY);
  const begun = Date.now();
  await expect(
    connectTls({
      over: { host: '127.0.0.1', port },
      ...shown,
      trustDomain: TRUST_DOMAIN,
      expected: TOOL,
      timeoutMs: 200,
    }),
  ).rejects.toMatchObject({ code: 'OZ0_CONNECT_TIMEOUT' });
  expect(Date.now() - begun).toBeLessThan(5_000);
  mute.close();
});

/** Resolves when the socket has closed, with an error or without. */
function closeOf(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.on('error', () => {});
    socket.once('close', () => resolve());
    socket.resume();
  });
}
