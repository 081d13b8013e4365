/** [S09] A tool asks the cluster's model gateway: from the sidecar's door on loopback through the whole of egress, with real sockets. */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { MODEL_PATHS } from '../../../src/domain/egress/decideModelRequest.ts';
import { MODEL_PLACEHOLDER, MODEL_ROUTE } from '../../../src/domain/naming.ts';
import type { ModelGateway } from '../../../src/egress/modelRoute.ts';
import { egressTunnel } from '../../../src/net/egressTunnel.ts';
import { createTestAuthority } from '../../../src/net/testing/authority.ts';
import { type ModelDoor, openModelDoor } from '../../../src/sidecar/proxy/modelDoor.ts';
import { TRUST_DOMAIN } from '../edge/cluster.ts';
import { ask, closes, type Shown, startWorld, tool, type World } from './world.ts';

const KEY = 'mOdEl/k3y+of+the+operator';
const folder = mkdtempSync(join(tmpdir(), 'oz0-model-'));
const keyFile = join(folder, 'key');
const caFile = join(folder, 'ca.crt');
const stop = new AbortController();
const lines: string[] = [];

interface Seen {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

let seen: Seen[];
let script: (request: IncomingMessage, response: ServerResponse, seen: Seen) => void;
let gateway: Server;
let world: World;
let door: ModelDoor;
let mailDoor: ModelDoor;

const echo: typeof script = (_request, response, said) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(said));
};

beforeAll(async () => {
  const credentials = createTestAuthority('model').issue({ kind: 'edge' }, 3_600_000, ['localhost']);
  writeFileSync(caFile, credentials.trustBundlePem);
  gateway = createServer({ key: credentials.keyPem, cert: credentials.certificatePem }, (request, response) => {
    const parts: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const { url = '', method = '', headers } = request;
      const said = { url, method, headers, body: Buffer.concat(parts).toString() };
      seen.push(said);
      script(request, response, said);
    });
  });
  gateway.on('tlsClientError', () => {});
  gateway.listen(0, 'localhost');
  await once(gateway, 'listening');
  const model: ModelGateway = {
    url: new URL(`https://localhost:${(gateway.address() as AddressInfo).port}/base/`),
    keyFile,
    header: 'Authorization',
    format: 'Bearer '.concat('$', '{value}'),
    paths: MODEL_PATHS,
    caFile,
  };
  world = await startWorld({ model });
  door = await doorOf(world, world.search);
  mailDoor = await doorOf(world, world.mail);
});

afterAll(async () => {
  stop.abort();
  await door.close();
  await mailDoor.close();
  await world.close();
  gateway.closeAllConnections();
  gateway.close();
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(() => {
  seen = [];
  script = echo;
  lines.length = 0;
  writeFileSync(keyFile, `${KEY}\n`);
  world.catalog.put('Tool', tool('search', { usesModel: true }));
  world.setHosts('mail', ['api.example.com']);
});

function doorOf({ cluster }: World, { cert, key }: Shown): Promise<ModelDoor> {
  const credentials = { certificatePem: cert, keyPem: key, trustBundlePem: readFileSync(cluster.trustFile, 'utf8') };
  return openModelDoor({
    openTunnel: egressTunnel({
      egress: async () => ({ host: '127.0.0.1', port: cluster.egress.port, name: 'oz0-egress.oz0-system.svc' }),
      credentials: { current: () => credentials, onChange: () => () => {} },
      trustDomain: TRUST_DOMAIN,
    }),
    log: (level, message, fields) => void lines.push(JSON.stringify({ level, message, ...fields })),
    signal: stop.signal,
    port: 0,
  });
}

/** As an SDK asks, with what the tool's environment says. */
function chat(body: unknown = { model: 'm' }, more: RequestInit & { headers?: Record<string, string> } = {}) {
  const { OPENAI_BASE_URL = '', OPENAI_API_KEY = '' } = door.environment();
  return fetch(`${OPENAI_BASE_URL}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify(body),
    ...more,
    headers: { authorization: `Bearer ${OPENAI_API_KEY}`, 'content-type': 'application/json', ...more.headers },
  });
}

const problemOf = async (response: Response) =>
  [response.status, ((await response.json()) as { error: { code: string } }).error.code] as const;

describe('[S09] a tool that says usesModel', () => {
  test('asks as its SDK does: the key is put in by egress, the placeholder stays here', async () => {
    const response = await chat({ model: 'm', messages: [] });
    expect(response.status).toBe(200);
    await response.json();
    expect(seen).toMatchObject([
      { method: 'POST', url: '/base/v1/chat/completions', body: '{"model":"m","messages":[]}' },
    ]);
    expect(seen[0]?.headers).toMatchObject({ authorization: `Bearer ${KEY}`, 'accept-encoding': 'identity' });
    expect(JSON.stringify(seen)).not.toContain(MODEL_PLACEHOLDER);
    expect(JSON.stringify([lines, world.cluster.egress.shell.lines])).not.toContain(KEY);
  });

  test('in the other dialect too, with a query', async () => {
    const { ANTHROPIC_BASE_URL = '', ANTHROPIC_API_KEY = '' } = door.environment();
    const headers = { 'x-api-key': ANTHROPIC_API_KEY, 'anthropic-version': '2023-06-01', 'x-odd': 'dropped' };
    const response = await fetch(`${ANTHROPIC_BASE_URL}/v1/messages?beta=true`, {
      method: 'POST',
      body: '{}',
      headers,
    });
    expect(response.status).toBe(200);
    await response.json();
    expect(seen[0]).toMatchObject({
      url: '/base/v1/messages?beta=true',
      headers: { 'anthropic-version': '2023-06-01' },
    });
    expect(seen[0]?.headers).not.toHaveProperty('x-api-key');
    expect(seen[0]?.headers).not.toHaveProperty('x-odd');
  });

  test('gets its answer in parts, as they come', async () => {
    const more = Promise.withResolvers<void>();
    script = (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('data: one\n\n');
      void more.promise.then(() => response.end('data: two\n\n'));
    };
    const reader = (await chat()).body?.getReader();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: one\n\n');
    more.resolve();
    expect(Buffer.from((await reader?.read())?.value ?? []).toString()).toBe('data: two\n\n');
    expect((await reader?.read())?.done).toBe(true);
  });

  test('a long body in parts arrives whole', async () => {
    const body = 'a'.repeat(3_000_000);
    const stream = new Blob([body]).stream();
    const response = await chat(undefined, { body: stream, duplex: 'half' } as RequestInit as never);
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    expect(seen[0]?.body.length).toBe(3_000_000);
  });

  test('[C04] a new key takes effect at the next request', async () => {
    await (await chat()).json();
    writeFileSync(keyFile, 'another-key-0815');
    await (await chat()).json();
    expect(seen.map(({ headers }) => headers['authorization'])).toEqual([`Bearer ${KEY}`, 'Bearer another-key-0815']);
  });

  test('[C03] [case 84] an answer that repeats the key has the placeholder instead, also in headers and split over parts', async () => {
    script = (request, response) => {
      response.writeHead(200, { 'x-echo': request.headers.authorization ?? '', 'set-cookie': 'a=b' });
      response.write(`[${KEY.slice(0, 7)}`);
      setTimeout(() => response.end(`${KEY.slice(7)}] ${Buffer.from(KEY).toString('base64')}`), 30);
    };
    const response = await chat();
    const said = JSON.stringify([...response.headers]) + (await response.text());
    expect(said).not.toContain(KEY);
    expect(said).not.toContain(Buffer.from(KEY).toString('base64').slice(0, 20));
    expect(said).not.toContain('set-cookie');
    expect(said).toContain(`[${MODEL_PLACEHOLDER.slice(0, KEY.length)}`);
  });

  test('a client that leaves ends the request to the gateway', async () => {
    const left = Promise.withResolvers<void>();
    script = (_request, response) => {
      response.once('close', left.resolve);
      response.writeHead(200).write('x');
    };
    const abort = new AbortController();
    const response = await chat({}, { signal: abort.signal });
    expect(response.status).toBe(200);
    abort.abort();
    await response.text().catch(() => {});
    await left.promise;
  });
});

describe('[S09] refused, and the gateway hears nothing', () => {
  test('a tool that does not say so, with what to write', async () => {
    const { OPENAI_BASE_URL = '' } = mailDoor.environment();
    const response = await fetch(`${OPENAI_BASE_URL}/models`);
    const { error } = (await response.json()) as { error: { code: string; message: string } };
    expect([response.status, error.code]).toEqual([403, 'egress-refused']);
    expect(error.message).toContain('model-not-declared');
    expect(error.message).toContain('spec.usesModel: true');
    expect(seen).toEqual([]);
  });

  test('no certificate, and one of another part', async () => {
    expect((await ask(world, MODEL_ROUTE, {})).body.error?.code).toBe('no-identity');
    expect((await ask(world, 'model.oz0.internal:80')).body.error?.code).toBe('host-not-allowed');
  });

  test('that it is no longer said ends tunnels that are open', async () => {
    const { socket, status } = await ask(world, MODEL_ROUTE);
    expect(status).toBe(200);
    world.setHosts('search', []);
    expect(await closes(socket)).toBe(true);
  });

  test.each<[string, string, RequestInit, number, string]>([
    ['a path that is not a model’s', '/key/generate', {}, 403, 'path-not-allowed'],
    ['a path that only begins so', '/v1/models-admin', {}, 403, 'path-not-allowed'],
    ['its parent', '/v1', {}, 403, 'path-not-allowed'],
    ['an encoded slash', '/v1/models%2fx', {}, 400, 'bad-target'],
    ['an empty segment', '/v1//models', {}, 400, 'bad-target'],
    ['another method', '/v1/models/x', { method: 'DELETE' }, 405, 'method-not-allowed'],
    ['a key of its own', '/v1/models', { headers: { authorization: 'Bearer sk-mine' } }, 403, 'own-credential'],
    ['one in another header', '/v1/models', { headers: { 'x-litellm-key': 'sk-mine' } }, 403, 'own-credential'],
    ['a cookie', '/v1/models', { headers: { cookie: 'session=1' } }, 403, 'own-credential'],
  ])('%s', async (_name, path, init, status, code) => {
    const origin = door.environment()['ANTHROPIC_BASE_URL'];
    expect(await problemOf(await fetch(`${origin}${path}`, init))).toEqual([status, code]);
    expect(seen).toEqual([]);
  });

  test.each<[string, string, RegExp]>([
    ['dots that lead upwards', 'GET /v1/models/../../key/list HTTP/1.1\r\nHost: x\r\n\r\n', /"bad-target"/],
    ['encoded dots', 'GET /v1/models/%2e%2e/key HTTP/1.1\r\nHost: x\r\n\r\n', /"bad-target"/],
    ['absolute form', 'GET http://other/v1/models HTTP/1.1\r\nHost: x\r\n\r\n', /"bad-target"/],
    ['two Hosts', 'GET /v1/models HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n', /"wrong-host"/],
    [
      'two framings',
      'POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      /400 Bad Request/,
    ],
    [
      'a coding before chunked',
      'POST /v1/messages HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      /"bad-framing"/,
    ],
    [
      'a websocket',
      'GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      /"upgrade-not-allowed"/,
    ],
    ['no HTTP', 'hello\r\n\r\n', /400 Bad Request/],
  ])('%s', async (_name, text, answer) => {
    const socket = connect(door.port, '127.0.0.1');
    socket.on('error', () => {});
    let heard = '';
    socket.on('data', (part) => {
      heard += String(part);
    });
    socket.write(text);
    await new Promise((resolve) => socket.once('close', resolve));
    expect(heard).toMatch(answer);
    expect(seen).toEqual([]);
  });

  test('a request before the last one was answered ends the connection', async () => {
    const come = Promise.withResolvers<void>();
    script = (_request, response) => void come.promise.then(() => response.end('late'));
    const socket = connect(door.port, '127.0.0.1');
    socket.on('error', () => {});
    const request = 'GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n';
    socket.write(request + request);
    expect(await closes(socket)).toBe(true);
    come.resolve();
    expect(seen.length).toBeLessThanOrEqual(1);
  });

  test.each([undefined, '', 'two\nlines-of-a-key'])('the key is %j: the others’ calls go on', async (value) => {
    if (value === undefined) rmSync(keyFile);
    else writeFileSync(keyFile, value);
    expect(await problemOf(await chat())).toEqual([503, 'key-missing']);
    expect(seen).toEqual([]);
  });
});

describe('[S09] a gateway that does not do its part', () => {
  test('a compressed answer, though none was asked for, is not passed on unread', async () => {
    script = (_request, response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(KEY));
    };
    expect(await problemOf(await chat())).toEqual([502, 'bad-answer']);
  });

  test('one that breaks off in the middle leaves a broken answer, not a short one', async () => {
    script = (_request, response) => {
      response.writeHead(200).write('half');
      setTimeout(() => response.destroy(), 20);
    };
    await expect(chat().then((response) => response.text())).rejects.toThrow();
  });

  test('a redirect is an answer, and followed by nobody here', async () => {
    script = (_request, response) => void response.writeHead(307, { location: 'https://elsewhere.example/' }).end();
    expect((await chat({}, { redirect: 'manual' })).status).toBe(307);
    expect(seen.length).toBe(1);
  });

  test.each([
    ['whose certificate nobody vouches for', undefined, {}],
    ['that is not there', 'https://localhost:9', { caFile }],
  ])('one %s is told as unreachable', async (_name, at, more) => {
    const { port } = gateway.address() as AddressInfo;
    const url = new URL(at ?? `https://localhost:${port}`);
    const other = await startWorld({
      model: { url, keyFile, header: 'X-Key', format: '$'.concat('{value}'), paths: MODEL_PATHS, ...more },
    });
    other.catalog.put('Tool', tool('search', { usesModel: true }));
    const itsDoor = await doorOf(other, other.search);
    try {
      const response = await fetch(`${itsDoor.environment()['OPENAI_BASE_URL']}/models`);
      expect(await problemOf(response)).toEqual([502, 'unreachable']);
      expect(seen).toEqual([]);
    } finally {
      await itsDoor.close();
      await other.close();
    }
  });

  test('none at all: the tool is told what an admin would set', async () => {
    const other = await startWorld();
    other.catalog.put('Tool', tool('search', { usesModel: true }));
    try {
      const { body } = await ask(other, MODEL_ROUTE);
      expect(body.error).toMatchObject({ code: 'no-model-gateway', message: expect.stringContaining('model.url') });
    } finally {
      await other.close();
    }
  });
});
