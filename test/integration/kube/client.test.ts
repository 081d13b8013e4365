import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createClient, type KubeClient } from '../../../src/kube/client.ts';
import { fixedConnection } from '../../../src/kube/connection.ts';

const RESOURCE = { apiVersion: 'oz0.ai/v1alpha1', kind: 'Tool', plural: 'tools', namespaced: true };
const tool = (name = 'a') => ({ apiVersion: 'oz0.ai/v1alpha1', kind: 'Tool', metadata: { name, namespace: 'ns' } });

interface Seen {
  readonly line: string;
  readonly contentType: string | undefined;
  readonly body: unknown;
}

let server: Server;
let client: KubeClient;
let seen: Seen[];
let answer: { status: number; body: string } | 'nothing';

beforeEach(async () => {
  seen = [];
  answer = { status: 200, body: JSON.stringify(tool()) };
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const text = Buffer.concat(parts).toString();
      seen.push({
        line: `${request.method} ${request.url}`,
        contentType: request.headers['content-type'],
        body: text === '' ? undefined : JSON.parse(text),
      });
      if (answer === 'nothing') return;
      response.writeHead(answer.status).end(answer.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  client = createClient(
    fixedConnection({ server: `http://127.0.0.1:${port}/cluster`, authorization: 'Bearer t', tls: { verify: true } }),
  );
});

afterEach(async () => {
  await client.close();
  server.closeAllConnections();
  server.close();
});

describe('createClient', () => {
  const at = '/cluster/apis/oz0.ai/v1alpha1/namespaces/ns/tools';
  const ref = { resource: RESOURCE, namespace: 'ns', name: 'a' };
  const apply = { fieldManager: 'oz0-controller', force: true };

  it.each<[string, (c: KubeClient) => Promise<unknown>, string, string | undefined]>([
    ['get', (c) => c.get(ref), `GET ${at}/a`, undefined],
    ['create', (c) => c.create(RESOURCE, tool()), `POST ${at}`, 'application/json'],
    ['replace', (c) => c.replace(RESOURCE, tool()), `PUT ${at}/a`, 'application/json'],
    ['replaceStatus', (c) => c.replaceStatus(RESOURCE, tool()), `PUT ${at}/a/status`, 'application/json'],
    [
      'apply',
      (c) => c.apply(RESOURCE, tool(), apply),
      `PATCH ${at}/a?fieldManager=oz0-controller&force=true`,
      'application/apply-patch+yaml',
    ],
    [
      'applyStatus',
      (c) => c.applyStatus(RESOURCE, tool(), { ...apply, force: false }),
      `PATCH ${at}/a/status?fieldManager=oz0-controller&force=false`,
      'application/apply-patch+yaml',
    ],
  ])('%s is one request', async (_, call, line, contentType) => {
    await call(client);
    expect(seen).toMatchObject([{ line, contentType }]);
  });

  it('takes an apply to another uid for the conflict that it is', async () => {
    const body = { kind: 'Status', code: 422, reason: 'Invalid', details: { causes: [{ field: 'metadata.uid' }] } };
    answer = { status: 422, body: JSON.stringify(body) };
    await expect(client.apply(RESOURCE, tool(), apply)).rejects.toMatchObject({ code: 'conflict' });
    body.details.causes = [{ field: 'spec.x' }];
    answer = { status: 422, body: JSON.stringify(body) };
    await expect(client.apply(RESOURCE, tool(), apply)).rejects.toMatchObject({ code: 'invalid' });
  });

  it('creates only, by a version that no object has', async () => {
    await client.apply(RESOURCE, tool(), { ...apply, force: false, onlyCreate: true });
    expect(seen[0]?.body).toMatchObject({ metadata: { name: 'a', resourceVersion: '1' } });
  });

  it('deletes by uid and version, in the background [I2]', async () => {
    await client.delete(ref, { uid: 'u1', resourceVersion: '7' });
    expect(seen[0]).toMatchObject({
      line: `DELETE ${at}/a`,
      body: { propagationPolicy: 'Background', preconditions: { uid: 'u1', resourceVersion: '7' } },
    });
  });

  it('gives up after its time limit, and with its signal', async () => {
    answer = 'nothing';
    await expect(client.get(ref, { timeoutMs: 50 })).rejects.toMatchObject({ code: 'timeout' });
    const ending = new AbortController();
    const call = client.get(ref, { signal: ending.signal });
    setTimeout(() => ending.abort(), 20);
    await expect(call).rejects.toMatchObject({ code: 'aborted' });
    await expect(client.get(ref, { signal: ending.signal })).rejects.toMatchObject({ code: 'aborted' });
    expect(seen).toHaveLength(2);
  });

  it('refuses what is no answer of the API', async () => {
    for (const body of ['', 'not JSON', '{}', '[]', 'null', '{"metadata":{}}']) {
      answer = { status: 200, body };
      await expect(client.get(ref)).rejects.toMatchObject({ code: 'malformed' });
    }
    answer = { status: 200, body: '{"items":{},"metadata":{"resourceVersion":"1"}}' };
    await expect(client.list({ resource: RESOURCE })).rejects.toMatchObject({ code: 'malformed' });
    answer = { status: 200, body: '{"items":null,"metadata":{"resourceVersion":"1"}}' };
    expect(await client.list({ resource: RESOURCE })).toEqual({ items: [], resourceVersion: '1' });
  });

  it('tells a dead server from a slow one', async () => {
    server.close();
    server.closeAllConnections();
    await expect(client.get(ref)).rejects.toMatchObject({ code: 'network' });
  });

  it('believes a token review only for its own audience', async () => {
    const review = (status: object) => ({ status: 201, body: JSON.stringify({ status }) });
    const user = { username: 'system:serviceaccount:ns:a', uid: 'u', groups: ['g'], extra: { k: ['v', 'w'], odd: 3 } };
    answer = review({ authenticated: true, user, audiences: ['oz0-gateway'] });
    expect(await client.reviewToken('t', 'oz0-gateway')).toEqual({
      authenticated: true,
      username: 'system:serviceaccount:ns:a',
      uid: 'u',
      groups: ['g'],
      extra: { k: 'v' },
    });
    for (const status of [
      { authenticated: true, user },
      { authenticated: true, user, audiences: ['other'] },
      { authenticated: false, error: 'expired' },
      { authenticated: 'true', user, audiences: ['oz0-gateway'] },
      {},
    ]) {
      answer = review(status);
      expect(await client.reviewToken('t', 'oz0-gateway')).toMatchObject({ authenticated: false });
    }
  });
});
