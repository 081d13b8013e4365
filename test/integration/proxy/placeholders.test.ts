/** Where a placeholder becomes a secret, and that it does nowhere else: the table of forms, each with its verdict, over real TLS. */
import { randomBytes } from 'node:crypto';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  binding,
  codeOf,
  get,
  HOST,
  inner,
  OTHER,
  openInner,
  SECRET,
  startWorld,
  statusOf,
  type World,
} from './support/world.ts';

const QUERY_SECRET = 'Qu3ry/secret+value%41';
const SECOND = 'second-SECRET-of-the-same-host';
const base64 = (text: string): string => Buffer.from(text, 'latin1').toString('base64');

let world: World;
let p: string;
let q: string;
beforeAll(async () => {
  world = await startWorld({
    secrets: { API_KEY: SECRET, QUERY_KEY: QUERY_SECRET, SECOND },
    bindings: [
      binding(),
      // biome-ignore-start lint/suspicious/noTemplateCurlyInString: what bindings say
      binding({ name: 'X-Api-Key', format: '${value}' }),
      binding({ secret: 'SECOND', name: 'X-Second', format: 'Token token=${value}' }),
      binding({ secret: 'QUERY_KEY', in: 'query', name: 'key', format: '${value}' }),
      // biome-ignore-end lint/suspicious/noTemplateCurlyInString: what bindings say
      binding({ secret: 'SECOND', host: OTHER }),
    ],
  });
  p = world.placeholder();
  q = world.placeholder('QUERY_KEY');
});
afterAll(() => world.close());
afterEach(() => {
  world.seen.length = 0;
  // Whatever was tried: no placeholder went out, and no line of the log holds one, or a secret.
  for (const secret of [SECRET, QUERY_SECRET, SECOND, p, q]) expect(world.logs.join('\n')).not.toContain(secret);
});

describe('[C02] in its slot', () => {
  test('Authorization: Bearer', async () => {
    await inner(world, get([`Authorization: Bearer ${p}`]));
    expect(world.seen[0]?.rawHeaders).toContain(`Bearer ${SECRET}`);
  });
  test('a header of the configuration, in any case', async () => {
    await inner(world, get([`x-aPI-kEY: ${p}`]));
    expect(world.seen[0]?.rawHeaders.slice(2, 4)).toEqual(['x-aPI-kEY', SECRET]);
  });
  test('a format with more words', async () => {
    await inner(world, get([`X-Second: Token token=${world.placeholder('SECOND')}`]));
    expect(world.seen[0]?.rawHeaders).toContain(`Token token=${SECOND}`);
  });
  test('two secrets in one request, each in its own slot', async () => {
    await inner(
      world,
      get([`X-Second: Token token=${world.placeholder('SECOND')}`, `X-Api-Key: ${p}`], `/?a=1&key=${q}&b=2`),
    );
    expect(world.seen[0]?.rawHeaders).toEqual(expect.arrayContaining([SECRET, `Token token=${SECOND}`]));
    expect(world.seen[0]?.url).toBe(`/?a=1&key=${encodeURIComponent(QUERY_SECRET)}&b=2`);
  });
  test.each([
    ['as the password', (value: string) => `user:${value}`],
    ['as the user', (value: string) => `${value}:x-oauth-basic`],
    ['as the password of nobody', (value: string) => `:${value}`],
    ['as the user without a password', (value: string) => `${value}:`],
  ])('Basic credentials %s', async (_, pair) => {
    await inner(world, get([`Authorization: Basic ${base64(pair(p))}`]));
    const at = world.seen[0]?.rawHeaders.indexOf('Authorization') ?? 0;
    expect(world.seen[0]?.rawHeaders[at + 1]).toBe(`Basic ${base64(pair(SECRET))}`);
  });
  test('a request without any credential goes on as it is', async () => {
    expect(statusOf(await inner(world, get(['X-A: 1', 'Idempotency-Key: 7', 'X-Author: me'])))).toBe(200);
  });
});

const places: readonly (readonly [string, () => string, string])[] = [
  ['scheme bearer', () => get([`Authorization: bearer ${p}`]), 'placeholder-out-of-place'],
  ['scheme token', () => get([`Authorization: token ${p}`]), 'placeholder-out-of-place'],
  ['two blanks', () => get([`Authorization: Bearer  ${p}`]), 'placeholder-out-of-place'],
  ['a tab', () => get([`Authorization: Bearer\t${p}`]), 'placeholder-out-of-place'],
  ['no blank', () => get([`Authorization: Bearer${p}`]), 'placeholder-out-of-place'],
  ['no scheme', () => get([`Authorization: ${p}`]), 'placeholder-out-of-place'],
  ['schemes joined by a comma', () => get([`Authorization: Bearer ${p}, Basic eDp5`]), 'placeholder-out-of-place'],
  ['quoted', () => get([`Authorization: Bearer "${p}"`]), 'placeholder-out-of-place'],
  ['with a prefix', () => get([`Authorization: Bearer x${p}`]), 'placeholder-out-of-place'],
  ['with a suffix', () => get([`Authorization: Bearer ${p}x`]), 'placeholder-out-of-place'],
  ['doubled', () => get([`Authorization: Bearer ${p}${p}`]), 'placeholder-out-of-place'],
  ['in upper case', () => get([`Authorization: Bearer ${p.toUpperCase()}`]), 'placeholder-out-of-place'],
  [
    'percent-encoded',
    () => get([`X-Api-Key: %${Buffer.from(p).toString('hex').match(/../g)?.join('%')}`]),
    'placeholder-out-of-place',
  ],
  ['its first letter percent-encoded', () => get([`X-Api-Key: %6f${p.slice(1)}`]), 'placeholder-out-of-place'],
  ['twice, in two headers of one name', () => get([`X-Api-Key: ${p}`, `x-api-key: ${p}`]), 'duplicate-credential'],
  ['in its slot and in another header', () => get([`X-Api-Key: ${p}`, `X-Note: ${p}`]), 'placeholder-out-of-place'],
  ['split over two headers', () => get([`X-A: ${p.slice(0, 20)}`, `X-B: ${p.slice(20)}`]), 'placeholder-out-of-place'],
  ['in Cookie', () => get([`Cookie: session=${p}`]), 'placeholder-out-of-place'],
  ['in a header that is not bound', () => get([`X-Other: ${p}`]), 'placeholder-out-of-place'],
  ['in the name of a header', () => get([`X-${p}: 1`]), 'placeholder-out-of-place'],
  ['in User-Agent, base64', () => get([`User-Agent: ${base64(`xy${p}`)}`]), 'placeholder-out-of-place'],
  ['in a look-alike of the slot', () => get([`X_Api_Key: ${p}`]), 'placeholder-out-of-place'],
  ['in the path', () => get([], `/v1/${p}/x`), 'placeholder-out-of-place'],
  ['in the path, percent-encoded', () => get([], `/v1/%6f${p.slice(1)}`), 'placeholder-out-of-place'],
  ['in the path, percent-encoded twice', () => get([], `/v1/%256f${p.slice(1)}`), 'placeholder-out-of-place'],
  ['in a query that is not bound', () => get([], `/?token=${p}`), 'placeholder-out-of-place'],
  ['another secret in the bound query', () => get([], `/?key=${p}`), 'placeholder-out-of-place'],
  ['in the bound query twice', () => get([], `/?key=${q}&key=${q}`), 'duplicate-credential'],
  ['in the bound query, its name encoded', () => get([], `/?k%65y=${q}`), 'placeholder-out-of-place'],
  ['in the bound query, its name in upper case', () => get([], `/?KEY=${q}`), 'placeholder-out-of-place'],
  ['in the bound query, with a suffix', () => get([], `/?key=${q}x`), 'placeholder-out-of-place'],
  ['of another host', () => get([`Authorization: Bearer ${world.placeholder('SECOND')}`]), 'placeholder-out-of-place'],
  ['in Sec-WebSocket-Protocol', () => get([`Sec-WebSocket-Protocol: bearer.${p}`]), 'placeholder-out-of-place'],
  [
    'Basic, url-safe alphabet',
    () => get([`Authorization: Basic ${base64(`??>:${p}`).replaceAll('/', '_').replaceAll('+', '-')}`]),
    'placeholder-out-of-place',
  ],
  [
    'Basic without padding',
    () => get([`Authorization: Basic ${base64(`us:${p}`).replaceAll('=', '')}`]),
    'placeholder-out-of-place',
  ],
  [
    'Basic with too much padding',
    () => get([`Authorization: Basic ${base64(`us:${p}`)}==`]),
    'placeholder-out-of-place',
  ],
  ['Basic in lower case', () => get([`Authorization: basic ${base64(`u:${p}`)}`]), 'placeholder-out-of-place'],
  [
    'Basic with a charset',
    () => get([`Authorization: Basic ${base64(`u:${p}`)}, charset="UTF-8"`]),
    'placeholder-out-of-place',
  ],
  [
    'Basic as a part of the password',
    () => get([`Authorization: Basic ${base64(`u:x${p}`)}`]),
    'placeholder-out-of-place',
  ],
  [
    'Basic as user and password',
    () => get([`Authorization: Basic ${base64(`${p}:${p}`)}`]),
    'placeholder-out-of-place',
  ],
  ['Basic without a colon', () => get([`Authorization: Basic ${base64(p)}`]), 'placeholder-out-of-place'],
  ['DPoP', () => get([`Authorization: DPoP ${p}`]), 'signed-request'],
  ['OAuth 1', () => get([`Authorization: OAuth oauth_token="${p}"`]), 'signed-request'],
  [
    'AWS Signature 4',
    () =>
      get([
        `Authorization: AWS4-HMAC-SHA256 Credential=${p}/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=00`,
      ]),
    'signed-request',
  ],
  ['AWS Signature 4 in the query', () => get([], `/?X-Amz-Credential=${p}&X-Amz-Signature=00`), 'signed-request'],
  ["the tool's own token", () => get(['Authorization: Bearer sk-of-the-attacker']), 'own-credential'],
  ["the tool's own Basic credentials", () => get([`Authorization: Basic ${base64('me:mine')}`]), 'own-credential'],
  ["the tool's own key", () => get(['X-Api-Key: mine']), 'own-credential'],
  ["the tool's own key, in another header", () => get(['Api-Token: mine']), 'own-credential'],
  ["the tool's own cookie", () => get(['Cookie: session=mine']), 'own-credential'],
  ["the tool's own key in the bound query", () => get([], '/?key=mine'), 'own-credential'],
  ["the tool's own token in a query", () => get([], '/?access_token=mine'), 'own-credential'],
  ['the real value in a header', () => get([`X-Note: ${SECRET}`]), 'secret-in-request'],
  ['the real value in its own slot', () => get([`X-Api-Key: ${SECRET}`]), 'secret-in-request'],
  ['the real value in the path', () => get([], `/${encodeURIComponent(SECRET)}`), 'secret-in-request'],
  ['the real value in base64', () => get([`X-Note: ${base64(`a${SECRET}`)}`]), 'secret-in-request'],
  ['the real value in hex', () => get([`X-Note: ${Buffer.from(SECRET).toString('hex')}`]), 'secret-in-request'],
  ['the real value, split', () => get([`X-A: ${SECRET.slice(0, 9)}`, `X-B: ${SECRET.slice(9)}`]), 'secret-in-request'],
];

describe('[C02] [case 73] out of its slot: refused, and nothing reaches the host', () => {
  test.each(places)('%s', async (_, bytes, code) => {
    const answer = await inner(world, Buffer.from(bytes(), 'latin1'));
    expect(codeOf(answer)).toBe(code);
    expect(world.seen).toEqual([]);
    expect(answer).not.toContain(p);
  });
});

describe('[C02] [case 73] in a body: refused, and the host gets no whole request', () => {
  const long = (text: string): Buffer =>
    Buffer.concat([Buffer.alloc(200_000, 'a'), Buffer.from(text, 'latin1'), Buffer.alloc(50_000, 'b')]);
  const bodies: readonly (readonly [string, () => Buffer, string, string])[] = [
    ['a form', () => Buffer.from(`a=1&api_key=${p}`), '', 'placeholder-out-of-place'],
    ['JSON', () => Buffer.from(JSON.stringify({ key: p })), '', 'placeholder-out-of-place'],
    [
      'JSON, each letter escaped',
      () => Buffer.from(`"${[...p].map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`),
      '',
      'placeholder-out-of-place',
    ],
    ['GraphQL variables', () => Buffer.from(`{"query":"q","variables":{"t":"${p}"}}`), '', 'placeholder-out-of-place'],
    [
      'multipart',
      () => Buffer.from(`--b\r\nContent-Disposition: form-data; name=x\r\n\r\n${p}\r\n--b--\r\n`),
      '',
      'placeholder-out-of-place',
    ],
    ['base64', () => Buffer.from(base64(`x${p}`)), '', 'placeholder-out-of-place'],
    ['in upper case', () => Buffer.from(p.toUpperCase()), '', 'placeholder-out-of-place'],
    ['UTF-16', () => Buffer.from(p, 'utf16le'), '', 'placeholder-out-of-place'],
    ['late in a long body', () => long(p), '', 'placeholder-out-of-place'],
    ['gzip', () => gzipSync(long(p)), 'gzip', 'placeholder-out-of-place'],
    ['deflate', () => deflateSync(p), 'deflate', 'placeholder-out-of-place'],
    ['br', () => brotliCompressSync(p), 'br', 'placeholder-out-of-place'],
    ['zstd', () => zstdCompressSync(p), 'zstd', 'placeholder-out-of-place'],
    ['gzip that is none', () => Buffer.from('no gzip'), 'gzip', 'bad-body'],
    ['the real value', () => Buffer.from(JSON.stringify({ key: SECRET })), '', 'secret-in-request'],
    ['the real value late in a long body', () => long(SECRET), '', 'secret-in-request'],
    ['the real value in gzip', () => gzipSync(long(SECRET)), 'gzip', 'secret-in-request'],
  ];
  const head = (encoding: string, framing: string): string =>
    `POST / HTTP/1.1\r\nHost: ${HOST}\r\n${encoding === '' ? '' : `Content-Encoding: ${encoding}\r\n`}${framing}\r\nConnection: close\r\n\r\n`;

  test.each(bodies)('%s', async (_, body, encoding, code) => {
    const bytes = body();
    const answer = await inner(
      world,
      Buffer.concat([Buffer.from(head(encoding, `Content-Length: ${bytes.length}`)), bytes]),
    );
    expect(codeOf(answer)).toBe(code);
    expect(world.seen).toEqual([]);
  });

  test.each(bodies)('%s, in chunks of 7 bytes', async (_, body, encoding, code) => {
    const bytes = body();
    const small = bytes.length > 10_000 ? 7_001 : 7;
    const chunks: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += small) {
      const part = bytes.subarray(at, at + small);
      chunks.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n'));
    }
    const line = await openInner(world);
    line.socket.write(
      Buffer.concat([Buffer.from(head(encoding, 'Transfer-Encoding: chunked')), ...chunks, Buffer.from('0\r\n\r\n')]),
    );
    expect(codeOf(await line.ended)).toBe(code);
    expect(world.seen).toEqual([]);
  });

  test('a body without any goes on whole, compressed ones as they are', async () => {
    const noise = randomBytes(300_000);
    for (const [encoding, bytes] of [
      ['', noise],
      ['gzip', gzipSync(noise)],
    ] as const) {
      const answer = await inner(
        world,
        Buffer.concat([Buffer.from(head(encoding, `Content-Length: ${bytes.length}`)), bytes]),
      );
      expect(statusOf(answer)).toBe(200);
      expect(Buffer.from(world.seen.at(-1)?.body ?? '', 'latin1').equals(bytes)).toBe(true);
    }
  });
});

describe('[case 75] another host', () => {
  test.each([
    'api.example.test.evil.test',
    'notapi.example.test',
    'xapi.example.test',
    'example.test',
    'xn--api-example-test.test',
    '192.0.2.7',
  ])('%s gets a tunnel that is not opened up', async (name) => {
    // Its certificate is not the pod's: the handshake would fail here if TLS were ended.
    const before = world.tunnels.length;
    const { dialProxy } = await import('./support/world.ts');
    const line = dialProxy(world);
    line.socket.write(`CONNECT ${name}:443 HTTP/1.1\r\nHost: ${name}:443\r\n\r\n`);
    await line.until('200 Connection Established');
    expect(world.tunnels.slice(before)).toEqual([`${name}:443`]);
    line.socket.destroy();
  });
});
