/** TLS and tunnels: who gets a handshake, whom the proxy believes, what ends, what is limited. */
import { X509Certificate } from 'node:crypto';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { rootCertificates, connect as tlsConnect } from 'node:tls';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { connectTunnel } from '../../../src/net/connectTunnel.ts';
import { createPodAuthority } from '../../../src/sidecar/proxy/podAuthority.ts';
import {
  binding,
  codeOf,
  dialProxy,
  get,
  HOST,
  inner,
  OTHER,
  openInner,
  startWorld,
  statusOf,
  type World,
} from './support/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld({ refused: ['refused.example.test'], limits: { handshakeMs: 500, tunnelIdleMs: 400 } });
});
afterAll(() => world.close());
beforeEach(() => {
  world.seen.length = 0;
});

describe('the handshake with the tool', () => {
  test('HTTP/1.1 is agreed on; a client that speaks no ALPN is fine', async () => {
    for (const alpn of [['http/1.1'], ['h2', 'http/1.1'], []]) {
      const line = await openInner(world, `${HOST}:443`, { alpn });
      line.socket.write(get([]));
      expect(statusOf(await line.ended)).toBe(200);
    }
  });
  test.each([
    ['another name', { servername: OTHER }],
    ['no name', { servername: '' }],
    ['the name in upper case with a dot', { servername: `${HOST}.` }],
    ['a name below', { servername: `x.${HOST}` }],
    ['HTTP/2 alone', { alpn: ['h2'] }],
    ['TLS 1.1', { maxVersion: 'TLSv1.1' }],
  ] as const)('%s: none', async (_, choice) => {
    await expect(openInner(world, `${HOST}:443`, choice)).rejects.toThrow();
    expect(world.seen).toEqual([]);
  });
  test('TLS 1.2 is', async () => {
    const line = await openInner(world, `${HOST}:443`, { maxVersion: 'TLSv1.2' });
    line.socket.write(get([]));
    expect(statusOf(await line.ended)).toBe(200);
  });
  test.each([
    ['plaintext HTTP', get([])],
    ['a banner of SSH', 'SSH-2.0-x\r\n'],
    ['nothing', ''],
    ['half a hello', '\x16\x03\x01\x02\x00\x01\x00'],
    ['a name of 255 bytes with a NUL', `\x16\x03\x01\x01\x20\x01\x00\x01\x1c\x03\x03${'\0'.repeat(300)}`],
  ])('%s in the tunnel: hung up', async (_, bytes) => {
    const line = dialProxy(world);
    line.socket.write(`CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`);
    await line.until('\r\n\r\n');
    line.socket.write(Buffer.from(bytes, 'latin1'));
    expect(await line.ended).not.toContain('HTTP/1.1 2000');
    expect(world.seen).toEqual([]);
  });
  test('the first bytes of TLS in one packet with CONNECT', async () => {
    const socket = connect(world.proxy.port, '127.0.0.1');
    const { Duplex } = await import('node:stream');
    let first = true;
    const wrapped: import('node:stream').Duplex = new Duplex({
      read() {},
      write(chunk, _encoding, done) {
        socket.write(
          first
            ? Buffer.concat([Buffer.from(`CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`), chunk])
            : chunk,
          done,
        );
        first = false;
      },
    });
    let head = '';
    socket.on('data', (data: Buffer) => {
      if (head.endsWith('\r\n\r\n')) return void wrapped.push(data);
      const text = head + data.toString('latin1');
      const end = text.indexOf('\r\n\r\n') + 4;
      head = text.slice(0, end);
      if (text.length > end) wrapped.push(Buffer.from(text.slice(end), 'latin1'));
    });
    const tls = tlsConnect({ socket: wrapped, servername: HOST, ca: world.podCa });
    await new Promise((resolve, reject) => tls.once('secureConnect', resolve).once('error', reject));
    socket.destroy();
    tls.destroy();
  });
});

describe("[case 87] the pod's authority", () => {
  test('is EC P-256, good for the bound hosts only, signs no authority, and is no other pod’s', () => {
    const ca = new X509Certificate(world.podCa);
    expect(ca.publicKey.asymmetricKeyDetails?.namedCurve).toBe('prime256v1');
    expect(ca.ca).toBe(true);
    expect(ca.checkIssued(ca)).toBe(true);
    const other = new X509Certificate(createPodAuthority([HOST], Date.now).certificatePem);
    expect(other.verify(ca.publicKey)).toBe(false);
    // Name constraints (2.5.29.30), critical.
    expect(ca.raw.includes(Buffer.from('0603551d1e0101ff', 'hex'))).toBe(true);
  });
  test("another pod's tool does not trust it", async () => {
    const ca = createPodAuthority([HOST], Date.now).certificatePem;
    await expect(openInner(world, `${HOST}:443`, { ca })).rejects.toThrow(/verify|signature|certificate/i);
  });
  test('makes no certificate for another host', () => {
    expect(createPodAuthority([HOST], Date.now).contextFor(OTHER)).toBeUndefined();
  });
  test('its bundle holds the public authorities, and no key', () => {
    const [ca, bundle] = world.proxy.bundleFiles();
    expect(String(bundle?.content).match(/BEGIN CERTIFICATE/g)).toHaveLength(rootCertificates.length + 2);
    expect(`${ca?.content}${bundle?.content}`).not.toMatch(/PRIVATE KEY/);
  });
});

describe('whom the proxy believes', () => {
  test('a host of an authority that is not known: 502, and the secret does not go there', async () => {
    const untrusting = await startWorld({ trustHosts: false });
    const answer = await inner(untrusting, get([`Authorization: Bearer ${untrusting.placeholder()}`]));
    expect([statusOf(answer), codeOf(answer)]).toEqual([502, 'upstream-not-trusted']);
    expect(untrusting.seen).toEqual([]);
    await untrusting.close();
  });
  test('a host that shows the certificate of another: 502, whatever the environment says', async () => {
    const { NODE_TLS_REJECT_UNAUTHORIZED: before } = process.env;
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    const host = 'mislabelled.example.test';
    const fooled = await startWorld({ bindings: [binding({ host })] });
    const line = await openInner(fooled, `${host}:443`, { servername: host });
    line.socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${fooled.placeholder()}\r\n\r\n`);
    expect(codeOf(await line.ended)).toBe('upstream-not-trusted');
    expect(fooled.seen).toEqual([]);
    await fooled.close();
    if (before === undefined) delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    else process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = before;
  });
  test("egress' refusal is told in its own words", async () => {
    const line = dialProxy(world);
    line.socket.write('CONNECT refused.example.test:443 HTTP/1.1\r\nHost: refused.example.test:443\r\n\r\n');
    const answer = await line.ended;
    expect([statusOf(answer), codeOf(answer)]).toEqual([403, 'egress-refused']);
    expect(answer).toContain('host-not-allowed: not on the list');
  });
});

describe('a tunnel to another host', () => {
  test('its TLS is not ended: the tool sees the host’s own certificate', async () => {
    const socket = connect(world.proxy.port, '127.0.0.1');
    await connectTunnel(socket, `${OTHER}:443`, AbortSignal.timeout(2_000));
    const tls = tlsConnect({ socket, servername: OTHER, rejectUnauthorized: false });
    await new Promise((resolve) => tls.once('secureConnect', resolve));
    const shown = tls.getPeerX509Certificate();
    expect(shown?.checkHost(OTHER)).toBe(OTHER);
    expect(shown?.verify(new X509Certificate(world.podCa).publicKey)).toBe(false);
    tls.write(`GET / HTTP/1.1\r\nHost: ${OTHER}\r\nAuthorization: Bearer ${world.placeholder()}\r\n\r\n`);
    await new Promise((resolve) => tls.once('data', resolve));
    // The placeholder at most.
    expect(world.seen[0]?.rawHeaders).toContain(`Bearer ${world.placeholder()}`);
    tls.destroy();
  });
  test('one that carries nothing is closed, and what the tool closes is closed at the host', async () => {
    const line = dialProxy(world);
    line.socket.write(`CONNECT ${OTHER}:443 HTTP/1.1\r\nHost: ${OTHER}:443\r\n\r\n`);
    await line.until('\r\n\r\n');
    await line.ended;
    const again = dialProxy(world);
    again.socket.write(`CONNECT ${OTHER}:443 HTTP/1.1\r\nHost: ${OTHER}:443\r\n\r\n`);
    await again.until('\r\n\r\n');
    again.socket.destroy();
    await sleep(50);
    expect(world.openTunnels()).toBe(0);
    expect(world.proxy.connections()).toBe(0);
  });
});

describe('limits', () => {
  test('a connection too many is told so; the others go on; closing leaves nothing', async () => {
    const small = await startWorld({ limits: { maxConnections: 4 } });
    const lines = Array.from({ length: 4 }, () => dialProxy(small));
    await sleep(50);
    const answer = await dialProxy(small).ended;
    expect([statusOf(answer), codeOf(answer)]).toEqual([503, 'too-many-connections']);
    lines[0]?.socket.destroy();
    await sleep(20);
    expect(statusOf(await inner(small, get([])))).toBe(200);
    await sleep(50);
    const open = await openInner(small);
    await small.proxy.close();
    await open.ended;
    expect(small.proxy.connections()).toBe(0);
    await small.close();
  });
  test('a body over the cap', async () => {
    const small = await startWorld({ limits: { maxRequestBodyBytes: 1_000 } });
    const announced = await inner(small, `POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 4294967296\r\n\r\n`);
    expect([statusOf(announced), codeOf(announced)]).toEqual([413, 'body-too-large']);
    const chunked = await inner(
      small,
      `POST / HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n${`200\r\n${'x'.repeat(512)}\r\n`.repeat(3)}`,
    );
    expect(codeOf(chunked)).toBe('body-too-large');
    expect(small.seen).toEqual([]);
    await small.close();
  });
  test('a binding that is wrong starts nothing', async () => {
    for (const wrong of [
      { host: '*.example.test' },
      { host: 'API.example.test' },
      { host: '10.0.0.1' },
      { format: 'x' },
      { name: 'Host' },
      { port: 0 },
      { secret: 'NONE' },
    ]) {
      await expect(startWorld({ bindings: [binding(wrong)] })).rejects.toThrow(/binding of/);
    }
  });
});
