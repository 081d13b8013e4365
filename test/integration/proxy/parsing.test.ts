/** What is taken for an HTTP request towards a bound host, and what is not: each form with its verdict, on real bytes. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { codeOf, dialProxy, HOST, inner, openInner, startWorld, statusOf, tell, type World } from './support/world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld({ limits: { headMs: 400, keepAliveMs: 600, requestBodyIdleMs: 400, firstByteMs: 600 } });
});
afterAll(() => world.close());
beforeEach(() => {
  world.seen.length = 0;
});

const post = (headers: string, body = '') =>
  `POST /p HTTP/1.1\r\nHost: ${HOST}\r\n${headers}Connection: close\r\n\r\n${body}`;
const got = (headers: string, line = 'GET / HTTP/1.1') =>
  `${line}\r\nHost: ${HOST}\r\n${headers}Connection: close\r\n\r\n`;

describe('accepted, and written anew', () => {
  const accepted: readonly (readonly [string, string, string])[] = [
    ['GET', got(''), ''],
    ['HEAD', got('', 'HEAD / HTTP/1.1'), ''],
    ['OPTIONS of a path', got('', 'OPTIONS /x HTTP/1.1'), ''],
    ['DELETE without a body', got('', 'DELETE /x HTTP/1.1'), ''],
    ['POST with a length', post('Content-Length: 3\r\n', 'abc'), 'abc'],
    ['POST with a length of zero', post('Content-Length: 0\r\n'), ''],
    [
      'POST in chunks',
      post('Transfer-Encoding: chunked\r\n', '3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n'),
      'abc0123456789',
    ],
    ['encoded slashes and dots, as they are', got('', 'GET /a%2f..%2F;/%252e/../x?y=%0d%0a HTTP/1.1'), ''],
    ['__proto__ as a header name', got('__proto__: x\r\nconstructor: y\r\n'), ''],
    ['latin1 in a value', got('X-Name: caf\xe9\r\n'), ''],
  ];
  test.each(accepted)('%s', async (_, bytes, body) => {
    const answer = await inner(world, Buffer.from(bytes, 'latin1'));
    expect(statusOf(answer)).toBe(200);
    expect(world.seen).toHaveLength(1);
    expect(world.seen[0]?.body).toBe(body);
  });

  test('hop-by-hop headers, ranges and encodings stay here; the others keep their order and case', async () => {
    await inner(
      world,
      got(
        'X-b: 1\r\nKeep-Alive: 5\r\nTE: trailers\r\nAccept-Encoding: gzip, br\r\nRange: bytes=0-3\r\nProxy-Connection: x\r\nx-A: 2\r\n',
      ),
    );
    expect(world.seen[0]?.rawHeaders).toEqual(['Host', HOST, 'X-b', '1', 'x-A', '2', 'Accept-Encoding', 'identity']);
  });

  test('Expect: 100-continue is answered here, after the head was decided on, and goes no further', async () => {
    const line = await openInner(world);
    line.socket.write(post('Expect: 100-continue\r\nContent-Length: 3\r\n'));
    await line.until('HTTP/1.1 100 Continue\r\n\r\n');
    expect(world.seen).toEqual([]);
    line.socket.write('abc');
    expect(await line.ended).toContain('HTTP/1.1 200');
    expect(world.seen[0]?.rawHeaders).not.toContain('100-continue');
  });

  test('two requests sent at once are answered in order, over one connection of their own to the host', async () => {
    const before = world.tunnels.length;
    const line = await openInner(world);
    const one = `GET /1 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`;
    line.socket.write(one + one.replace('/1', '/2') + got('', 'GET /3 HTTP/1.1'));
    const heard = await line.ended;
    expect(heard.match(/HTTP\/1\.1 200/g)).toHaveLength(3);
    expect(world.seen.map(({ url }) => url)).toEqual(['/1', '/2', '/3']);
    expect(world.tunnels.length - before).toBe(1);
  });
});

describe('refused, and nothing of it reaches the host', () => {
  const te = (value: string) => post(`Transfer-Encoding: ${value}\r\n`, '0\r\n\r\n');
  const chunks = (body: string) => post('Transfer-Encoding: chunked\r\n', body);
  const refused: readonly (readonly [string, string, number, string])[] = [
    // What Node's parser refuses, too.
    ['length and chunks', post('Content-Length: 3\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'), 400, 'bad-framing'],
    ['TE: xchunked', te('xchunked'), 400, 'bad-framing'],
    ['TE: chunked, identity', te('chunked, identity'), 400, 'bad-framing'],
    ['TE: Chunked', te('Chunked'), 400, 'bad-framing'],
    ['two TE headers', post('Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n'), 400, 'bad-framing'],
    ['space before the colon', got('X-A : 1\r\n'), 400, 'bad-header'],
    ['vertical tab before the value', got('X-A:\x0b1\r\n'), 400, 'bad-header'],
    ['two equal lengths', post('Content-Length: 3\r\nContent-Length: 3\r\n', 'abc'), 400, 'bad-framing'],
    ['two lengths, in other case', post('Content-Length: 3\r\ncontent-length: 4\r\n', 'abc'), 400, 'bad-framing'],
    ['length 3, 3', post('Content-Length: 3, 3\r\n', 'abc'), 400, 'bad-framing'],
    ['length +3', post('Content-Length: +3\r\n', 'abc'), 400, 'bad-framing'],
    ['length 0x3', post('Content-Length: 0x3\r\n', 'abc'), 400, 'bad-framing'],
    ['length 03', post('Content-Length: 03\r\n', 'abc'), 400, 'bad-framing'],
    ['length -1', post('Content-Length: -1\r\n', 'abc'), 400, 'bad-framing'],
    ['length of 2^64', post('Content-Length: 18446744073709551616\r\n', 'abc'), 400, 'bad-framing'],
    ['a folded header', got('X-A: 1\r\n 2\r\n'), 400, 'bad-header'],
    ['bare LF', `GET / HTTP/1.1\nHost: ${HOST}\n\n\r\n\r\n`, 400, 'bad-line-ends'],
    ['bare CR in a value', got('X-A: 1\r2\r\n'), 400, 'bad-line-ends'],
    ['NUL in a value', got('X-A: 1\x002\r\n'), 400, 'bad-line-ends'],
    ['no Host', 'GET / HTTP/1.1\r\nX: y\r\n\r\n', 421, 'wrong-host'],
    ['method in lower case', got('', 'get / HTTP/1.1'), 400, 'bad-request-line'],
    ['space in the target', got('', 'GET /a b HTTP/1.1'), 400, 'bad-request-line'],
    ['tab in the request line', got('', 'GET\t/ HTTP/1.1'), 400, 'bad-request-line'],
    ['preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505, 'unsupported-version'],
    // What it accepts.
    ['TE: gzip, chunked', te('gzip, chunked'), 400, 'bad-framing'],
    ['TE in HTTP/1.0', te('chunked').replace('HTTP/1.1', 'HTTP/1.0'), 505, 'unsupported-version'],
    ['HTTP/1.0', got('', 'GET / HTTP/1.0'), 505, 'unsupported-version'],
    ['HTTP/1.2', got('', 'GET / HTTP/1.2'), 505, 'unsupported-version'],
    ['two Hosts', got(`Host: ${HOST}\r\n`), 421, 'wrong-host'],
    ['two Hosts, the other one evil', got('host: evil.example.test\r\n'), 421, 'wrong-host'],
    ['empty Host', `GET / HTTP/1.1\r\nHost: \r\n\r\n`, 421, 'wrong-host'],
    ['absolute form', got('', `GET https://${HOST}/ HTTP/1.1`), 400, 'bad-target'],
    ['absolute form naming another host', got('', 'GET https://evil.example.test/ HTTP/1.1'), 400, 'bad-target'],
    ['authority form', got('', `GET ${HOST}:443 HTTP/1.1`), 400, 'bad-target'],
    ['OPTIONS *', got('', 'OPTIONS * HTTP/1.1'), 400, 'bad-target'],
    ['a fragment', got('', 'GET /a#b HTTP/1.1'), 400, 'bad-target'],
    ['a backslash', got('', 'GET /\\evil HTTP/1.1'), 400, 'bad-target'],
    ['GET with a body', `GET / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 3\r\n\r\nabc`, 400, 'body-not-allowed'],
    [
      'HEAD with a body',
      `HEAD / HTTP/1.1\r\nHost: ${HOST}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      400,
      'body-not-allowed',
    ],
    ['Connection that names a header', got('Connection: close, Authorization\r\n'), 400, 'bad-connection-header'],
    [
      'Upgrade: h2c',
      got('Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n'),
      400,
      'bad-connection-header',
    ],
    ['Upgrade: h2c alone', got('Upgrade: h2c\r\n'), 403, 'upgrade-not-allowed'],
    [
      'a WebSocket that no binding allows',
      got('Connection: Upgrade\r\nUpgrade: websocket\r\n'),
      403,
      'upgrade-not-allowed',
    ],
    ['an unknown Expect', post('Expect: 200-ok\r\nContent-Length: 3\r\n', 'abc'), 417, 'expectation-not-met'],
    ['Expect without a body', got('Expect: 100-continue\r\n'), 417, 'expectation-not-met'],
    [
      'two Expects',
      post('Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 3\r\n', 'abc'),
      417,
      'expectation-not-met',
    ],
    ['Trailer', post('Trailer: X-T\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'), 400, 'trailers-not-allowed'],
    ['Content_Length', post('Content_Length: 3\r\n'), 400, 'look-alike-header'],
    ['transfer.encoding', post('transfer.encoding: chunked\r\n'), 400, 'look-alike-header'],
    ['an empty line first', `\r\n${got('')}`, 400, 'bad-request-line'],
    ['CONNECT within', got('', `CONNECT ${HOST}:443 HTTP/1.1`), 405, 'method-not-allowed'],
    ['TRACE', got('', 'TRACE / HTTP/1.1'), 405, 'method-not-allowed'],
    ['no blank after a colon', got('X-A:1\r\n'), 400, 'bad-header'],
    ['blanks around a value', got('X-A:  1 \r\n'), 400, 'bad-header'],
    ['an empty name', got(': x\r\n'), 400, 'bad-header'],
    ['a name with a blank', got('X A: 1\r\n'), 400, 'bad-header'],
    ['200 headers', got('X-A: 1\r\n'.repeat(200)), 431, 'too-many-headers'],
    ['a head of 20 KiB', got(`X-A: ${'a'.repeat(20_000)}\r\n`), 431, 'head-too-large'],
    ['a target of 10,000 characters', got('', `GET /${'a'.repeat(10_000)} HTTP/1.1`), 414, 'target-too-long'],
    ['a target of 1 MiB', got('', `GET /${'a'.repeat(1_048_576)} HTTP/1.1`), 431, 'head-too-large'],
    [
      'an unknown body encoding',
      post('Content-Encoding: compress\r\nContent-Length: 3\r\n', 'abc'),
      415,
      'unknown-body-encoding',
    ],
    [
      'two body encodings',
      post('Content-Encoding: gzip, br\r\nContent-Length: 3\r\n', 'abc'),
      415,
      'unknown-body-encoding',
    ],
    // Host
    ['another Host', 'GET / HTTP/1.1\r\nHost: evil.example.test\r\n\r\n', 421, 'wrong-host'],
    ['Host with port 80', `GET / HTTP/1.1\r\nHost: ${HOST}:80\r\n\r\n`, 421, 'wrong-host'],
    ['Host in upper case', `GET / HTTP/1.1\r\nHost: ${HOST.toUpperCase()}\r\n\r\n`, 421, 'wrong-host'],
    ['Host with a dot at its end', `GET / HTTP/1.1\r\nHost: ${HOST}.\r\n\r\n`, 421, 'wrong-host'],
    ['Host with a user', `GET / HTTP/1.1\r\nHost: a@${HOST}\r\n\r\n`, 421, 'wrong-host'],
  ];
  test.each(refused)('%s', async (_, bytes, status, code) => {
    const answer = await inner(world, Buffer.from(bytes, 'latin1'));
    expect([statusOf(answer), codeOf(answer)]).toEqual([status, code]);
    expect(answer).toMatch(/\r\nConnection: close\r\n/);
    expect(answer.match(/HTTP\/1\.1 [0-9]/g)).toHaveLength(1);
    expect(world.seen).toEqual([]);
  });

  const bodies: readonly (readonly [string, string])[] = [
    ['a chunk extension', '3;a=b\r\nabc\r\n0\r\n\r\n'],
    ['a chunk extension ended by LF', '3;a\nabc\r\n0\r\n\r\n'],
    ['a chunk size with a blank before it', ' 3\r\nabc\r\n0\r\n\r\n'],
    ['a chunk size with a blank after it', '3 \r\nabc\r\n0\r\n\r\n'],
    ['a chunk size of 0x3', '0x3\r\nabc\r\n0\r\n\r\n'],
    ['a chunk size of 03', '03\r\nabc\r\n0\r\n\r\n'],
    ['a negative chunk', '-3\r\nabc\r\n0\r\n\r\n'],
    ['a chunk of 2^53', '20000000000000\r\nabc\r\n0\r\n\r\n'],
    ['a chunk of 4 GiB', 'ffffffff\r\nabc\r\n0\r\n\r\n'],
    ['a chunk not ended by CRLF', '3\r\nabcd\r\n0\r\n\r\n'],
    ['a chunk ended by LF', '3\r\nabc\n0\r\n\r\n'],
    ['a trailer', '3\r\nabc\r\n0\r\nAuthorization: Bearer x\r\n\r\n'],
    ['a body that stops', '3\r\nab'],
  ];
  test.each(bodies)('[C02] a body in chunks: %s', async (_, body) => {
    const answer = await inner(world, Buffer.from(chunks(body), 'latin1'));
    expect([statusOf(answer), codeOf(answer)].join()).toMatch(/^(400,bad-body|413,body-too-large)$/);
    // The host's parser saw no whole request.
    expect(world.seen).toEqual([]);
  });

  test('a body that is shorter than its length', async () => {
    const answer = await inner(world, post('Content-Length: 10\r\n', 'abc'));
    expect(codeOf(answer)).toBe('bad-body');
    expect(world.seen).toEqual([]);
  });

  test('what follows a body that is longer than its length is another request, and no good one', async () => {
    const line = await openInner(world);
    line.socket.write(
      `POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 3\r\n\r\nabcGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n`,
    );
    const heard = await line.ended;
    expect(heard.match(/HTTP\/1\.1 [0-9]+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 421']);
    expect(world.seen.map(({ url }) => url)).toEqual(['/']);
  });

  test('a second request on the same tunnel with another Host', async () => {
    const line = await openInner(world);
    line.socket.write(`GET /1 HTTP/1.1\r\nHost: ${HOST}\r\n\r\nGET /2 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n`);
    const heard = await line.ended;
    expect(heard.match(/HTTP\/1\.1 [0-9]+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 421']);
    expect(world.seen.map(({ url }) => url)).toEqual(['/1']);
  });

  test('a head that comes byte by byte', async () => {
    const line = await openInner(world);
    const timer = setInterval(() => line.socket.write('G'), 50);
    const heard = await line.ended;
    clearInterval(timer);
    expect(codeOf(heard)).toBe('head-too-slow');
  });

  test('a tool that says nothing is hung up on', async () => {
    expect(await dialProxy(world).ended).toBe('');
    expect(await (await openInner(world)).ended).toBe('');
  });
});

describe('what is asked of the proxy itself', () => {
  const asked: readonly (readonly [string, string, number, string])[] = [
    ['origin form', 'GET / HTTP/1.1\r\nHost: 127.0.0.1:15001\r\n\r\n', 400, 'not-a-proxy-request'],
    ['https in full, over plaintext', `GET https://${HOST}/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400, 'bad-target'],
    ['ftp', `GET ftp://${HOST}/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400, 'bad-target'],
    ['CONNECT without a port', `CONNECT ${HOST} HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400, 'bad-target'],
    ['CONNECT with a user', `CONNECT a@${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`, 400, 'bad-target'],
    ['CONNECT in absolute form', `CONNECT http://${HOST}:443 HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`, 400, 'bad-target'],
    ['CONNECT with another Host', `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: evil.example.test\r\n\r\n`, 421, 'wrong-host'],
    [
      'CONNECT with two Hosts',
      `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\nHost: ${HOST}\r\n\r\n`,
      421,
      'wrong-host',
    ],
    ['CONNECT to port 0', `CONNECT ${HOST}:0 HTTP/1.1\r\nHost: ${HOST}:0\r\n\r\n`, 400, 'bad-target'],
    ['CONNECT to port 65536', `CONNECT ${HOST}:65536 HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 400, 'bad-target'],
    [
      'CONNECT with a body',
      `CONNECT ${HOST}:443 HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: 3\r\n\r\nabc`,
      400,
      'bad-target',
    ],
    [
      '[case 75] the bound host on another port',
      `CONNECT ${HOST}:8443 HTTP/1.1\r\nHost: ${HOST}:8443\r\n\r\n`,
      403,
      'bound-host-other-port',
    ],
    [
      '[case 75] the bound host on port 22',
      `CONNECT ${HOST}:22 HTTP/1.1\r\nHost: ${HOST}:22\r\n\r\n`,
      403,
      'bound-host-other-port',
    ],
    [
      '[case 75] the bound host in upper case',
      `CONNECT ${HOST.toUpperCase()}:443 HTTP/1.1\r\nHost: x\r\n\r\n`,
      421,
      'wrong-host',
    ],
    [
      '[case 75] in upper case, its Host too',
      `CONNECT API.example.test:443 HTTP/1.1\r\nHost: API.example.test:443\r\n\r\n`,
      403,
      'bound-host-other-port',
    ],
    [
      '[case 75] with a dot at its end',
      `CONNECT ${HOST}.:443 HTTP/1.1\r\nHost: ${HOST}.:443\r\n\r\n`,
      403,
      'bound-host-other-port',
    ],
    ['[case 75] IPv6', 'CONNECT [::1]:443 HTTP/1.1\r\nHost: [::1]:443\r\n\r\n', 400, 'bad-target'],
    [
      '[case 75] a number for an address',
      'CONNECT 2130706433:443 HTTP/1.1\r\nHost: 2130706433:443\r\n\r\n',
      400,
      'bad-target',
    ],
    ['[case 75] shorthand of an address', 'CONNECT 10.1:443 HTTP/1.1\r\nHost: 10.1:443\r\n\r\n', 400, 'bad-target'],
    ['[case 75] an octal address', 'CONNECT 010.0.0.1:443 HTTP/1.1\r\nHost: 010.0.0.1:443\r\n\r\n', 400, 'bad-target'],
    [
      '[case 75] a name that is no A-label',
      'CONNECT b\xfccher.example:443 HTTP/1.1\r\nHost: x\r\n\r\n',
      400,
      'bad-request-line',
    ],
    [
      '[case 75] a name with an underscore',
      'CONNECT a_b.example.test:443 HTTP/1.1\r\nHost: a_b.example.test:443\r\n\r\n',
      400,
      'bad-target',
    ],
    [
      '[case 75] a percent-encoded dot',
      'CONNECT api%2eexample.test:443 HTTP/1.1\r\nHost: api%2eexample.test:443\r\n\r\n',
      400,
      'bad-target',
    ],
    ['the proxy itself', 'CONNECT 127.0.0.1:15001 HTTP/1.1\r\nHost: 127.0.0.1:15001\r\n\r\n', 403, 'host-not-allowed'],
    [
      'the proxy itself, by name',
      'CONNECT localhost:15001 HTTP/1.1\r\nHost: localhost:15001\r\n\r\n',
      403,
      'host-not-allowed',
    ],
    [
      'the proxy itself, in plain http',
      'GET http://localhost:15001/ HTTP/1.1\r\nHost: localhost:15001\r\n\r\n',
      403,
      'host-not-allowed',
    ],
    [
      '[case 77] the bound host in plain http',
      `GET http://${HOST}/ HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`,
      403,
      'bound-host-in-clear',
    ],
    [
      '[case 77] the bound host in plain http, port 443',
      `GET http://${HOST}:443/ HTTP/1.1\r\nHost: ${HOST}:443\r\n\r\n`,
      403,
      'bound-host-in-clear',
    ],
    [
      'plain http with a user',
      'GET http://a@plain.example.test/ HTTP/1.1\r\nHost: plain.example.test\r\n\r\n',
      400,
      'bad-target',
    ],
    [
      'plain http with a fragment',
      'GET http://plain.example.test/#a HTTP/1.1\r\nHost: plain.example.test\r\n\r\n',
      400,
      'bad-target',
    ],
    [
      'plain http with another Host',
      'GET http://plain.example.test/ HTTP/1.1\r\nHost: evil.example.test\r\n\r\n',
      421,
      'wrong-host',
    ],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505, 'unsupported-version'],
    ['TLS where none is spoken', '\x16\x03\x01\r\n\r\n', 400, 'bad-request-line'],
  ];
  test.each(asked)('%s is refused', async (_, bytes, status, code) => {
    const before = world.tunnels.length;
    const answer = await tell(world, Buffer.from(bytes, 'latin1'));
    expect([statusOf(answer), codeOf(answer)]).toEqual([status, code]);
    expect(world.tunnels.length).toBe(before);
  });

  test('plain http to a host that is not bound goes through egress, one request a connection', async () => {
    const answer = await tell(
      world,
      'POST http://plain.example.test/a?b HTTP/1.1\r\nHost: plain.example.test\r\nContent-Length: 2\r\nProxy-Connection: keep-alive\r\n\r\nhi',
    );
    expect(statusOf(answer)).toBe(200);
    expect(world.tunnels.at(-1)).toBe('plain.example.test:80');
    expect(world.seen.at(-1)).toMatchObject({ method: 'POST', url: '/a?b', body: 'hi', host: 'plain.example.test' });
  });

  test('[case 77] a placeholder in plain http is refused', async () => {
    const answer = await tell(
      world,
      `GET http://plain.example.test/ HTTP/1.1\r\nHost: plain.example.test\r\nAuthorization: Bearer ${world.placeholder()}\r\n\r\n`,
    );
    expect([statusOf(answer), codeOf(answer)]).toEqual([403, 'placeholder-in-clear']);
    expect(world.seen).toEqual([]);
  });

  test('HTTP/1.0 CONNECT without Host, as older Pythons send it', async () => {
    const line = dialProxy(world);
    line.socket.write('CONNECT other.example.test:443 HTTP/1.0\r\n\r\n');
    expect(await line.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /);
    line.socket.destroy();
  });
});
