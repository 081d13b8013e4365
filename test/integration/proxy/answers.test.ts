/** What comes back: a host that returns the secret in any of many forms, redirects, framing that lies, streams. */
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  binding,
  bodyOf,
  canariesIn,
  codeOf,
  get,
  HOST,
  inner,
  lineOf,
  openInner,
  type Script,
  SECRET,
  startWorld,
  statusOf,
  type World,
} from './support/world.ts';

const hex = Buffer.from(SECRET).toString('hex');
const each = (form: (code: number) => string): string => [...SECRET].map((c) => form(c.charCodeAt(0))).join('');
const two = (code: number): string => code.toString(16).padStart(2, '0');

/** Forms that must not come back. */
const FORMS: readonly (readonly [string, string])[] = [
  ['as it is', SECRET],
  ['in upper case', SECRET.toUpperCase()],
  ['base64', Buffer.from(SECRET).toString('base64')],
  ['base64 of Bearer and it', Buffer.from(`Bearer ${SECRET}`).toString('base64')],
  ['base64, one byte before', Buffer.from(`x${SECRET}y`).toString('base64')],
  ['base64, two bytes before', Buffer.from(`xx${SECRET}yyy`).toString('base64')],
  ['base64url', Buffer.from(`xy${SECRET}z`).toString('base64url')],
  ['percent-encoded', encodeURIComponent(SECRET)],
  ['percent-encoded in lower case', encodeURIComponent(SECRET).replace(/%[0-9A-F]{2}/g, (c) => c.toLowerCase())],
  ['percent-encoded, each byte', each((code) => `%${two(code)}`)],
  ['hex', hex],
  ['hex in upper case', hex.toUpperCase()],
  ['JSON', JSON.stringify(SECRET)],
  ['JSON with escaped slashes', JSON.stringify(SECRET).replaceAll('/', '\\/')],
  ['JSON as Go writes it', JSON.stringify(SECRET).replace(/[<>&]/g, (c) => `\\u00${two(c.charCodeAt(0))}`)],
  ['JSON, each character escaped', each((code) => `\\u00${two(code)}`)],
  ['HTML', SECRET.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')],
  ['HTML, each character', each((code) => `&#${code};`)],
  ['HTML, each character in hex', each((code) => `&#x${two(code).toUpperCase()};`)],
  ['UTF-16', Buffer.from(SECRET, 'utf16le').toString('latin1')],
];

let world: World;
beforeAll(async () => {
  world = await startWorld({
    limits: { responseIdleMs: 2_000, maxResponseBodyBytes: 8_000_000 },
    bindings: [binding({ websocket: true })],
  });
});
afterAll(() => world.close());
afterEach(() => {
  world.script = undefined;
  world.raw = undefined;
  world.seen.length = 0;
});

const ask = (): Promise<string> => inner(world, get([`Authorization: Bearer ${world.placeholder()}`]));
const clean = (text: string): void => {
  expect(canariesIn(text, SECRET)).toEqual([]);
  for (const [name, form] of FORMS) expect(text.toLowerCase().includes(form.toLowerCase()), name).toBe(false);
};

describe('[C03] [case 84] a host that returns the secret', () => {
  test('[case 83] the search finds a canary that was planted, in each form', () => {
    for (const [name, form] of FORMS.slice(0, 13)) {
      if (name.startsWith('percent-encoded, each')) continue;
      expect(canariesIn(`..${form}..`, SECRET), name).not.toEqual([]);
    }
    expect(canariesIn(`..${[...SECRET].reverse().join('')}..`, SECRET)).toEqual(['reversed']);
    expect(canariesIn('nothing of it', SECRET)).toEqual([]);
  });

  test.each(FORMS)('%s', async (_, form) => {
    const body = `before ${form} after`;
    world.script = (_request, response) =>
      response.writeHead(200, { 'content-length': body.length }).end(body, 'latin1');
    const answer = await ask();
    expect(statusOf(answer)).toBe(200);
    // As long as it was, so that the length is still right.
    expect(bodyOf(answer)).toHaveLength(body.length);
    expect(bodyOf(answer)).toMatch(/^before [\s\S]* after$/);
    clean(answer);
  });

  test.each(FORMS)('%s, one byte at a time', async (_, form) => {
    const body = `{"a":"${form}"}`;
    world.script = async (_request, response) => {
      response.writeHead(200);
      for (const char of body) {
        response.write(Buffer.from(char, 'latin1'));
        await new Promise(setImmediate);
      }
      response.end();
    };
    const answer = await ask();
    expect(bodyOf(answer)).toHaveLength(body.length);
    clean(bodyOf(answer));
  });

  test('across each border of a long body', async () => {
    const body = Buffer.concat(
      Array.from({ length: 40 }, (_, at) => Buffer.concat([Buffer.alloc(16_384 - 20 + at, 'x'), Buffer.from(SECRET)])),
    );
    world.script = (_request, response) => response.writeHead(200, { 'content-length': body.length }).end(body);
    const answer = await ask();
    expect(bodyOf(answer)).toHaveLength(body.length);
    clean(answer);
  });

  const compressors = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync, zstd: zstdCompressSync };
  test.each(Object.entries(compressors))(
    'compressed with %s, although identity was asked for',
    async (name, compress) => {
      world.script = (request, response) => {
        expect(request.headers['accept-encoding']).toBe('identity');
        const bytes = compress(Buffer.from(`${'z'.repeat(100_000)}${SECRET}`));
        response.writeHead(200, { 'content-encoding': name, 'content-length': bytes.length }).end(bytes);
      };
      const answer = await ask();
      expect(answer).not.toMatch(/content-encoding/i);
      expect(bodyOf(answer)).toHaveLength(100_000 + SECRET.length);
      clean(answer);
    },
  );

  test.each(['compress', 'gzip, gzip', 'aws-chunked'])(
    'an encoding that is not known (%s) is refused',
    async (name) => {
      world.script = (_request, response) => response.writeHead(200, { 'content-encoding': name }).end(SECRET);
      expect([statusOf(await ask()), codeOf(await ask())]).toEqual([502, 'upstream-bad-answer']);
    },
  );

  test('a bomb is cut off', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    world.script = (_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
    const answer = await ask();
    expect(answer.endsWith('0\r\n\r\n')).toBe(false);
    expect(answer.length).toBeLessThan(9_000_000);
  });

  test('in headers, trailers, interim answers, and the words of the status', async () => {
    const basic = Buffer.from(`user:${SECRET}`).toString('base64');
    world.raw = (socket, heard) => {
      if (!heard.includes('\r\n\r\n')) return;
      socket.end(
        `HTTP/1.1 103 Early ${SECRET}\r\nLink: ${SECRET}\r\n\r\nHTTP/1.1 401 No ${SECRET}\r\nWWW-Authenticate: Bearer realm="${SECRET}"\r\n` +
          `Location: https://x/?t=${encodeURIComponent(SECRET)}\r\nX-Debug: ${basic}\r\nSet-Cookie: t=${SECRET}\r\nAlt-Svc: h3=":443"\r\n` +
          `Clear-Site-Data: "*"\r\nX-${hex}: 1\r\nX-Kept: 1\r\nTrailer: X-T\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\nX-T: ${SECRET}\r\n\r\n`,
      );
    };
    const answer = await ask();
    expect(statusOf(answer)).toBe(401);
    expect(answer).toContain('X-Kept: 1');
    expect(answer).not.toMatch(/set-cookie|alt-svc|clear-site-data|trailer|103/i);
    expect(bodyOf(answer)).toBe('hi');
    clean(answer);
  });

  test('an event stream: events come at once, a secret in one of them does not', async () => {
    const seen = Promise.withResolvers<void>();
    world.script = async (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      response.write('data: one\n\n');
      await seen.promise;
      response.write(`data: ${SECRET.slice(0, 10)}`);
      await sleep(50);
      response.write(`${SECRET.slice(10)}\n\n`);
      await sleep(150);
      response.end('data: end\n\n');
    };
    const line = await openInner(world);
    line.socket.write(get([`Authorization: Bearer ${world.placeholder()}`]));
    await line.until('data: one\n\n');
    seen.resolve();
    const answer = await line.ended;
    expect(bodyOf(answer)).toMatch(/data: end\n\n$/);
    clean(bodyOf(answer));
  });

  const halves = [SECRET.slice(0, 13), SECRET.slice(13)].map((half) => JSON.stringify(half));
  const streams: [string, string][] = [
    ['two events', `data: ${SECRET.slice(0, 13)}\n\ndata: ${SECRET.slice(13)}\n\n`],
    ['strings of JSON in two events', halves.map((half) => `data: {"delta":{"text":${half}}}\n\n`).join('')],
    ['with a ping between', halves.map((half) => `data: {"text":${half}}\n\n`).join('event: ping\ndata: {}\n\n')],
  ];
  test.each(streams)(
    'an event stream with the secret in %s, sent one by one, and compressed',
    async (_name, stream) => {
      const sendings: Script[] = [
        async (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream' });
          for (const event of stream.split(/(?<=\n\n)/)) {
            response.write(event);
            await sleep(20);
          }
          response.end('data: end\n\n');
        },
        (_request, response) => {
          response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'content-encoding': 'gzip' });
          const bytes = gzipSync(`${stream}data: end\n\n`);
          response.write(bytes.subarray(0, 30));
          response.end(bytes.subarray(30));
        },
      ];
      for (const sending of sendings) {
        world.script = sending;
        const answer = bodyOf(await ask());
        expect(answer).toHaveLength(`${stream}data: end\n\n`.length);
        expect(answer).toMatch(/data: end\n\n$/);
        for (const half of [SECRET.slice(0, 13), SECRET.slice(13, 20)]) expect(answer).not.toContain(half);
      }
    },
  );

  test('in more than one spelling at once', async () => {
    const mixed = SECRET.replace('c', '\\u0063').replace('s3', '%733').replaceAll('"', '\\"').replace('&', '&amp;');
    world.script = (_request, response) => response.end(`{"a":"${mixed}"}`);
    const answer = bodyOf(await ask());
    expect(answer).toMatch(/^\{"a":"0+"\}$/);
  });

  test('stated limits: reversed, and one character an event', async () => {
    const reversed = [...SECRET].reverse().join('');
    world.script = (_request, response) => response.end(`${reversed} ${[...SECRET].join('\n')}`);
    expect(bodyOf(await ask())).toContain(reversed);
  });
});

describe('[case 76] redirects are answers', () => {
  const targets: readonly (readonly [number, string])[] = [
    ...[301, 302, 303, 307, 308].map((status) => [status, 'https://evil.example.test/'] as const),
    [302, 'https://10.0.0.1/'],
    [302, `https://${HOST}:8443/`],
    [307, `http://${HOST}/`],
    [302, `https://a:b@${HOST}/`],
    [302, '//evil.example.test/'],
    [302, '\\\\evil.example.test'],
    [302, '../../x'],
    [302, 'data:text/plain,x'],
    [302, 'file:///etc/passwd'],
    [302, 'ftp://evil.example.test/'],
    [302, '/'],
  ];
  test.each(targets)('%i to %s is returned, and nobody went there', async (status, location) => {
    const before = world.tunnels.length;
    world.script = (_request, response) => response.writeHead(status, { location, refresh: `0;url=${location}` }).end();
    const answer = await ask();
    expect(statusOf(answer)).toBe(status);
    expect(answer).toContain(location);
    expect(world.seen).toHaveLength(1);
    expect(world.tunnels.slice(before)).toEqual([`${HOST}:443`]);
  });
  test('two Locations are returned as they came', async () => {
    world.script = (_request, response) => response.writeHead(302, ['Location', '/a', 'Location', '/b']).end();
    expect((await ask()).match(/location: /gi)).toHaveLength(2);
  });
});

describe('an upstream that answers oddly', () => {
  const head = 'HTTP/1.1 200 OK\r\n';
  const broken: readonly (readonly [string, string])[] = [
    ['length and chunks', `${head}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['two lengths', `${head}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`],
    ['TE: gzip, chunked', `${head}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`],
    ['chunks in HTTP/1.0', 'HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['bare LF', 'HTTP/1.1 200 OK\nContent-Length: 0\n\n'],
    ['a folded header', `${head}X: 1\r\n 2\r\nContent-Length: 0\r\n\r\n`],
    ['no HTTP', 'SSH-2.0-OpenSSH_9.9\r\n\r\n\r\n'],
    ['HTTP/2', 'HTTP/2 200\r\n\r\n'],
    ['101, unasked', 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n'],
    ['a head of 70 KiB', `${head}X: ${'x'.repeat(70_000)}\r\n\r\n`],
    ['interim answers without end', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(50)],
    ['nothing', ''],
    ['half a head', 'HTTP/1.1 200 OK\r\nX: '],
  ];
  test.each(broken)('%s: 502', async (_, bytes) => {
    world.raw = (socket, heard) => {
      if (heard.includes('\r\n\r\n')) socket.end(bytes);
    };
    const answer = await ask();
    expect([statusOf(answer), codeOf(answer)]).toEqual([502, 'upstream-bad-answer']);
  });

  const cut: readonly (readonly [string, string])[] = [
    ['a length that is not reached', `${head}Content-Length: 50\r\n\r\nhello`],
    ['chunks that end too early', `${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`],
    ['a broken chunk', `${head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n`],
  ];
  test.each(cut)('%s: the tool sees that it is cut off', async (_, bytes) => {
    world.raw = (socket, heard) => {
      if (heard.includes('\r\n\r\n')) socket.end(bytes);
    };
    const answer = await ask();
    expect(answer).toContain('hello');
    expect(answer.endsWith('0\r\n\r\n')).toBe(false);
  });

  test('an unasked 100 before the answer is passed over', async () => {
    world.raw = (socket, heard) => {
      if (heard.includes('\r\n\r\n')) socket.end(`HTTP/1.1 100 Continue\r\n\r\n${head}Content-Length: 2\r\n\r\nok`);
    };
    expect(bodyOf(await ask())).toBe('ok');
  });

  test('no length: until it closes', async () => {
    world.raw = (socket, heard) => {
      if (heard.includes('\r\n\r\n')) socket.end(`${head}\r\nall of it`);
    };
    expect(bodyOf(await ask())).toBe('all of it');
  });

  test('bytes after an answer are nobody’s: the connection is not used again', async () => {
    world.raw = (socket, heard) => {
      if (heard.includes('\r\n\r\n'))
        socket.write(`${head}Content-Length: 2\r\n\r\nok${head}Content-Length: 4\r\n\r\nevil`);
    };
    const line = await openInner(world);
    const request = `GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
    line.socket.write(request);
    await line.until('ok');
    line.socket.write(request);
    expect(await line.ended).not.toContain('evil');
  });

  test('an answer before the request has ended', async () => {
    world.raw = (socket, heard) => {
      if (heard.includes('\r\n\r\n')) socket.end(`HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno`);
    };
    const line = await openInner(world);
    line.socket.write(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 1000000\r\n\r\n`);
    expect(bodyOf(await line.ended)).toBe('no');
  });

  test('HEAD, 204 and 304 have no body, whatever they say', async () => {
    world.script = (request, response) => {
      response
        .writeHead(Number(request.url?.slice(1)), request.method === 'HEAD' ? { 'content-length': 77 } : {})
        .end();
    };
    const line = await openInner(world);
    for (const [method, path] of [
      ['HEAD', '/200'],
      ['GET', '/204'],
      ['GET', '/304'],
      ['GET', '/200'],
    ]) {
      line.socket.write(`${method} ${path} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`);
      await line.until(new RegExp(`^(?:[\\s\\S]*HTTP/1.1){${world.seen.length + 1}}`));
    }
    await line.until('0\r\n\r\n');
    expect(line.heard().match(/HTTP\/1\.1 [0-9]+/g)).toHaveLength(4);
    expect(line.heard()).toContain('Content-Length: 77');
    line.socket.destroy();
  });
});

describe('WebSocket, where the binding says so', () => {
  test('the secret is in the opening request; after it, bytes go through', async () => {
    const line = lineOf((await openInner(world)).socket);
    line.socket.write(
      `GET /ws HTTP/1.1\r\nHost: ${HOST}\r\nAuthorization: Bearer ${world.placeholder()}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
        'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
    );
    await line.until('101 Switching Protocols');
    expect(world.seen[0]?.rawHeaders).toEqual(
      expect.arrayContaining([`Bearer ${SECRET}`, 'Sec-WebSocket-Key', 'websocket']),
    );
    line.socket.write('\x81\x02hi');
    await line.until('\x81\x02hi');
    line.socket.destroy();
  });
});
