import { once } from 'node:events';
import { createServer } from 'node:net';
import { connect } from 'node:tls';
import { beforeAll, describe, expect, test } from 'vitest';
import { decideHello, HELLO_MAX_BYTES, readClientHello } from './clientHello.ts';
import { parseTarget } from './host.ts';

/** What a real client sends first. */
async function realHello(options: object): Promise<Buffer> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const arrived = once(server, 'connection');
  const client = connect({
    host: '127.0.0.1',
    port: typeof address === 'object' ? (address?.port ?? 0) : 0,
    ...options,
  });
  client.on('error', () => {});
  const [socket] = await arrived;
  const [data] = await once(socket, 'data');
  client.destroy();
  socket.destroy();
  server.close();
  return data;
}

let hello: Buffer;
beforeAll(async () => {
  hello = await realHello({ servername: 'api.example.com' });
});

interface Made {
  readonly names?: readonly string[];
  readonly extensions?: readonly (readonly [number, readonly number[]])[];
}

const wide = (n: number): number[] => [n >> 8, n & 0xff];
const ascii = (text: string): number[] => [...Buffer.from(text, 'latin1')];

/** A hello made by hand; `names` undefined: none. */
function made({ names, extensions = [] }: Made): number[] {
  const entries = (names ?? []).flatMap((name) => [0, ...wide(name.length), ...ascii(name)]);
  const all = [
    ...(names === undefined ? [] : [[0, [...wide(entries.length), ...entries]] as const]),
    ...extensions,
  ].flatMap(([type, data]) => [...wide(type), ...wide(data.length), ...data]);
  return [3, 3, ...new Array<number>(32).fill(7), 0, 0, 2, 0x13, 1, 1, 0, ...wide(all.length), ...all];
}

function records(body: readonly number[], ...sizes: readonly number[]): Uint8Array {
  let rest = [1, 0, ...wide(body.length), ...body];
  const out: number[] = [];
  for (const size of [...sizes, rest.length]) {
    const part = rest.slice(0, size);
    rest = rest.slice(size);
    if (part.length > 0) out.push(22, 3, 1, ...wide(part.length), ...part);
  }
  return Uint8Array.from(out);
}

function decide(bytes: Uint8Array, target = 'api.example.com:443'): string {
  const asked = parseTarget(target);
  if (asked === undefined) throw new Error('no target');
  return decideHello(readClientHello(bytes), asked);
}

describe('[case 104] first bytes of a tunnel', () => {
  test('a real client of that name passes', () => expect(decide(hello)).toBe('pass'));
  test('TLS 1.2 alone passes', async () => {
    expect(decide(await realHello({ servername: 'api.example.com', maxVersion: 'TLSv1.2' }))).toBe('pass');
  });
  test('HTTP/2 alone passes: what is spoken within is not looked at', async () => {
    expect(decide(await realHello({ servername: 'api.example.com', ALPNProtocols: ['h2'] }))).toBe('pass');
  });
  test('CONNECT good, name evil', async () => {
    expect(decide(await realHello({ servername: 'evil.example.com' }))).toBe('other-server-name');
  });
  test('CONNECT good, no name', async () => {
    expect(decide(await realHello({ servername: '' }))).toBe('no-server-name');
  });
  test('CONNECT address, name good', () => expect(decide(hello, '10.0.0.1:443')).toBe('other-server-name'));
  test('CONNECT address, no name', async () => {
    expect(decide(await realHello({ servername: '' }), '10.0.0.1:443')).toBe('pass');
  });

  test('every beginning of a hello is one that goes on', () => {
    for (let length = 0; length < hello.length; length++)
      expect(readClientHello(hello.subarray(0, length)).kind).toBe('more');
  });

  test('what follows in records of its own is not looked at', () => {
    expect(decide(Buffer.concat([hello, Buffer.from([20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 1, 0])]))).toBe('pass');
  });

  test.each<[string, Uint8Array, string]>([
    ['in capitals', records(made({ names: ['API.Example.COM'] })), 'pass'],
    [
      'over records of one byte',
      records(made({ names: ['api.example.com'] }), ...new Array<number>(40).fill(1)),
      'pass',
    ],
    ['with a dot at its end', records(made({ names: ['api.example.com.'] })), 'other-server-name'],
    ['of a subdomain', records(made({ names: ['x.api.example.com'] })), 'other-server-name'],
    ['an address', records(made({ names: ['127.0.0.1'] })), 'other-server-name'],
    ['with NUL in it', records(made({ names: ['api.example.com\0.evil.com'] })), 'odd-hello'],
    ['of 255 bytes', records(made({ names: ['a'.repeat(255)] })), 'other-server-name'],
    ['of 256 bytes', records(made({ names: ['a'.repeat(256)] })), 'odd-hello'],
    ['empty', records(made({ names: [''] })), 'odd-hello'],
    ['two names', records(made({ names: ['api.example.com', 'evil.com'] })), 'odd-hello'],
    ['a list of none', records(made({ names: [] })), 'odd-hello'],
    [
      'two extensions of names',
      records(made({ names: ['api.example.com'], extensions: [[0, [0, 4, 0, 0, 1, 97]]] })),
      'odd-hello',
    ],
    ['no extensions', records(made({}).slice(0, -2)), 'no-server-name'],
    ['ECH', records(made({ names: ['api.example.com'], extensions: [[0xfe0d, [0]]] })), 'encrypted-hello'],
    ['an extension past the end', records([...made({}).slice(0, -2), 0, 4, 0, 5, 0, 9]), 'odd-hello'],
    [
      'more than it says',
      Uint8Array.from(
        [...records(made({ names: ['api.example.com'] }), 10)]
          .slice(0, 15)
          .concat([22, 3, 1, 0, 200], new Array(200).fill(0)),
      ),
      'odd-hello',
    ],
    ['a message that is none', Uint8Array.from([22, 3, 1, 0, 4, 2, 0, 0, 0]), 'odd-hello'],
    ['a length beyond all bounds', Uint8Array.from([22, 3, 1, 0, 4, 1, 255, 255, 255]), 'odd-hello'],
    ['an empty record', Uint8Array.from([22, 3, 1, 0, 0]), 'odd-hello'],
    ['HTTP', Uint8Array.from(ascii('GET / HTTP/1.1\r\n')), 'tls-required'],
    ['SSH', Uint8Array.from(ascii('SSH-2.0-x\r\n')), 'tls-required'],
    ['SSLv2', Uint8Array.from([0x80, 0x2e, 1, 3, 1]), 'tls-required'],
    ['22 alone is not enough', Uint8Array.from([22, 9]), 'tls-required'],
  ])('%s', (_name, bytes, expected) => expect(decide(bytes)).toBe(expected));

  test('on a port that was listed for something else, plaintext passes and a wrong name does not', () => {
    expect(decide(Uint8Array.from(ascii('SSH-2.0-x\r\n')), 'api.example.com:22')).toBe('pass');
    expect(decide(records(made({ names: ['evil.com'] })), 'api.example.com:22')).toBe('other-server-name');
  });

  test('a hello that never ends is given up', () => {
    const parts = Array.from({ length: 40 }, () => [
      22,
      3,
      1,
      ...wide(1_000),
      1,
      0,
      0x3f,
      0,
      ...new Array<number>(996).fill(0),
    ]).flat();
    expect(['odd']).toContain(readClientHello(Uint8Array.from(parts)).kind);
    expect(parts.length).toBeGreaterThan(2 * HELLO_MAX_BYTES);
  });

  test('[case 104] bytes of any kind are read without a fault', () => {
    let seed = 1;
    for (let i = 0; i < 5_000; i++) {
      const bytes = Uint8Array.from(hello);
      for (let n = 0; n < 4; n++) {
        seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
        bytes[seed % bytes.length] = (seed >>> 11) & 0xff;
      }
      expect(['more', 'not-tls', 'odd', 'hello']).toContain(readClientHello(bytes).kind);
    }
  });
});
