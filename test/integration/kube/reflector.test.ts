import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Change } from '../../../src/engine/door.ts';
import { createClient, type KubeClient } from '../../../src/kube/client.ts';
import { loadConnection } from '../../../src/kube/connection.ts';
import { type Reflector, type ReflectorOptions, startReflector } from '../../../src/kube/reflector.ts';
import {
  bookmark,
  configMap,
  event,
  expired,
  list,
  listBody,
  type ScriptedServer,
  startScriptedServer,
  status,
  watch,
} from './scripted-server.ts';

const RESOURCE = { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true };
const FAST = { backoff: { firstMs: 10, maxMs: 80 }, healthyMs: 200, silenceMs: 400 };

let server: ScriptedServer;
let client: KubeClient;
let ending: AbortController;
let changes: string[];
let running: Reflector | undefined;

beforeEach(async () => {
  server = await startScriptedServer();
  client = createClient(server.connection);
  ending = new AbortController();
  changes = [];
});

afterEach(async () => {
  ending.abort(new Error('the test is over'));
  await running?.ended;
  running = undefined;
  await client.close();
  await server.close();
});

function start(options: Partial<ReflectorOptions> = {}): Reflector {
  running = startReflector({
    client,
    resource: RESOURCE,
    signal: ending.signal,
    onChange: (change: Change) => {
      changes.push(`${change.type} ${change.object.metadata.uid}@${change.object.metadata.resourceVersion}`);
    },
    ...options,
    limits: { ...FAST, ...options.limits },
  });
  return running;
}

async function until(what: () => boolean, boundMs = 5000): Promise<void> {
  const startMs = performance.now();
  while (!what()) {
    if (performance.now() - startMs > boundMs) throw new Error(`not within ${boundMs} ms: ${changes.join(', ')}`);
    await pause(5);
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const has = (text: string) => () => changes.includes(text);

describe('startReflector [case 118]', () => {
  it('lists, then watches from the version of the list, with bookmarks and a time limit', async () => {
    server.onList(list(10, configMap('a', 'u1', 3)));
    server.onWatch(watch([event('ADDED', configMap('b', 'u2', 11)), event('MODIFIED', configMap('a', 'u1', 12))]));
    const { store, synced, lastSeenMs } = start({
      namespace: 'ns',
      labelSelector: 'app=x',
      limits: { watchSeconds: { min: 300, max: 600 } },
    });
    expect(store.synced()).toBe(false);
    await synced;
    expect(store.get('a', 'ns')).toEqual({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'a', namespace: 'ns', uid: 'u1', resourceVersion: '3' },
    });
    await until(has('updated u1@12'));
    expect(changes).toEqual(['added u1@3', 'added u2@11', 'updated u1@12']);
    const [url] = server.watches();
    expect(url?.pathname).toBe('/api/v1/namespaces/ns/configmaps');
    expect(Object.fromEntries(url?.searchParams ?? [])).toMatchObject({
      resourceVersion: '10',
      allowWatchBookmarks: 'true',
      labelSelector: 'app=x',
    });
    expect(Number(url?.searchParams.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300);
    expect(Number(url?.searchParams.get('timeoutSeconds'))).toBeLessThanOrEqual(600);
    expect(performance.now() - lastSeenMs()).toBeLessThan(5_000);
  });

  it('shows 10,000 objects only when every page is there [I1]', async () => {
    const all = Array.from({ length: 10_000 }, (_, i) => configMap(`c${i}`, `u${i}`, i + 1, { text: 'x'.repeat(200) }));
    let partial = 0;
    server.onList((response, url) => {
      if (running?.store.synced() || (running?.store.list().length ?? 0) > 0) partial += 1;
      expect(url.searchParams.get('limit')).toBe('500');
      const from = Number(url.searchParams.get('continue') ?? 0);
      response.end(listBody(20_000, all.slice(from, from + 500), from + 500 < all.length ? String(from + 500) : ''));
    });
    server.onWatch(watch([]));
    const { store, synced } = start();
    await synced;
    expect(store.list()).toHaveLength(10_000);
    expect(partial).toBe(0);
    expect(server.lists()).toBe(20);
  });

  it('starts a list again whose continue token ran out', async () => {
    server.onList(
      (response) => {
        response.end(listBody(5, [configMap('a', 'u1', 1)], 'next'));
      },
      status(410, 'Expired'),
      list(9, configMap('b', 'u2', 8)),
    );
    server.onWatch(watch([]));
    const { store, synced } = start();
    await synced;
    expect(store.list().map((object) => object.metadata.name)).toEqual(['b']);
  });

  it('takes lines split anywhere, within characters too', async () => {
    const bytes = Buffer.from(event('ADDED', configMap('a', 'u1', 11, { text: 'é€😀' })));
    const parts = Array.from({ length: Math.ceil(bytes.length / 7) }, (_, i) => bytes.subarray(i * 7, i * 7 + 7));
    server.onList(list(10));
    server.onWatch(watch(parts));
    const { store } = start();
    await until(has('added u1@11'));
    expect(store.get('a', 'ns')?.['data']).toEqual({ text: 'é€😀' });
  });

  it('takes a line of 3 MiB', async () => {
    server.onList(list(10));
    server.onWatch(watch([event('ADDED', configMap('a', 'u1', 11, { text: 'x'.repeat(3 * 1024 * 1024) }))]));
    start();
    await until(has('added u1@11'));
  });

  it('lists anew on a line over its limit, which would come again', async () => {
    server.onList(list(10), list(12, configMap('a', 'u1', 11)));
    server.onWatch(watch([event('ADDED', configMap('a', 'u1', 11, { text: 'x'.repeat(5000) }))]), watch([]));
    start({ limits: { maxLineBytes: 2000 } });
    await until(has('added u1@11'));
    expect(server.lists()).toBe(2);
  });

  it('resumes from what it saw when the connection ends within a line', async () => {
    server.onList(list(10));
    server.onWatch(
      watch([event('ADDED', configMap('a', 'u1', 11)), '{"type":"ADDED","obj'], 'end'),
      watch([event('ADDED', configMap('b', 'u2', 12)), '{"type":"ADDED","obj'], 'reset'),
      watch([event('ADDED', configMap('c', 'u3', 13))]),
    );
    start();
    await until(has('added u3@13'));
    expect(changes).toEqual(['added u1@11', 'added u2@12', 'added u3@13']);
    expect(server.watches().map((url) => url.searchParams.get('resourceVersion'))).toEqual(['10', '11', '12']);
    expect(server.lists()).toBe(1);
  });

  it('resumes from bookmarks', async () => {
    server.onList(list(10));
    server.onWatch(watch([bookmark(40), bookmark(70)], 'end'), watch([]));
    start();
    await until(() => server.watches().length === 2);
    expect(server.watches()[1]?.searchParams.get('resourceVersion')).toBe('70');
    expect(changes).toEqual([]);
  });

  it('gives up a connection that went silent, and none that sends bookmarks', async () => {
    server.onList(list(10));
    // Half-open: the head came, then nothing, and no FIN.
    server.onWatch(watch([]), async (response) => {
      response.writeHead(200).flushHeaders();
      for (let i = 0; i < 12; i++) {
        response.write(bookmark(20 + i));
        await pause(100);
      }
      response.write(event('ADDED', configMap('a', 'u1', 50)));
    });
    start();
    await until(has('added u1@50'));
    expect(server.watches()).toHaveLength(2);
    expect(server.lists()).toBe(1);
    const [first, second] = server.requests.filter((request) => request.watch);
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeLessThan(3_000);
  });

  it.each([
    ['as a status', status(410, 'Expired')],
    ['within the stream', watch([expired])],
  ])('lists anew on 410 %s, telling what vanished as deleted', async (_, gone) => {
    server.onList(
      list(10, configMap('a', 'u1', 1), configMap('b', 'u2', 2), configMap('c', 'u3', 3)),
      list(30, configMap('a', 'u1', 1), configMap('c', 'u4', 25)),
    );
    server.onWatch(gone, watch([]));
    const { store } = start();
    await until(has('added u4@25'));
    expect(changes).toEqual(['added u1@1', 'added u2@2', 'added u3@3', 'deleted u2@2', 'deleted u3@3', 'added u4@25']);
    expect(store.list()).toHaveLength(2);
  });

  it('does not storm in a loop of 410', async () => {
    server.onList(list(10));
    server.onWatch(status(410, 'Expired'));
    start({ limits: { backoff: { firstMs: 50, maxMs: 400 } } });
    await pause(1500);
    expect(server.lists()).toBeGreaterThan(2);
    expect(server.lists()).toBeLessThan(15);
  });

  it('does not spin on a server that ends every watch at once', async () => {
    server.onList(list(10));
    server.onWatch(watch([], 'end'));
    start({ limits: { backoff: { firstMs: 50, maxMs: 400 } } });
    await pause(1500);
    expect(server.watches().length).toBeLessThan(15);
    expect(server.lists()).toBe(1);
  });

  it('is not moved back by older versions and duplicates', async () => {
    server.onList(list(10, configMap('a', 'u1', 9)));
    server.onWatch(
      watch(
        [
          event('MODIFIED', configMap('a', 'u1', 20)),
          event('MODIFIED', configMap('a', 'u1', 20)),
          event('MODIFIED', configMap('a', 'u1', 15)),
          bookmark(12),
          event('DELETED', configMap('zzz', 'u9', 21)),
          event('ADDED', configMap('b', 'u2', 22)),
        ],
        'end',
      ),
      watch([]),
    );
    const { store } = start();
    await until(() => server.watches().length === 2);
    expect(changes).toEqual(['added u1@9', 'updated u1@20', 'added u2@22']);
    expect(store.get('a', 'ns')?.metadata.resourceVersion).toBe('20');
    expect(server.watches()[1]?.searchParams.get('resourceVersion')).toBe('22');
  });

  it('lists anew when the server does not know the version yet (a restored backup)', async () => {
    server.onList(list(100, configMap('a', 'u1', 90)), list(50, configMap('a', 'u1', 40)));
    server.onWatch(status(504, 'Timeout'), watch([]));
    start();
    await until(has('updated u1@40'));
  });

  it('tells a deleted and re-created name as two changes', async () => {
    server.onList(list(10, configMap('a', 'u1', 9)));
    server.onWatch(watch([event('MODIFIED', configMap('a', 'u2', 12))]));
    start();
    await until(has('added u2@12'));
    expect(changes).toEqual(['added u1@9', 'deleted u1@9', 'added u2@12']);
  });

  it('keeps to Retry-After on 429', async () => {
    server.onList(status(429, 'TooManyRequests', { 'retry-after': '1' }), list(10));
    server.onWatch(watch([]));
    await start().synced;
    const [first, second] = server.requests;
    expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThan(990);
  });

  it.each([500, 503, 403, 404])('comes back from %i in the list and in the watch', async (code) => {
    server.onList(status(code, 'Odd'), list(10));
    server.onWatch(status(code, 'Odd'), watch([event('ADDED', configMap('a', 'u1', 11))]));
    start();
    await until(has('added u1@11'));
  });

  it('reads its credentials anew on 401', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'oz0-kube-'));
    const file = join(folder, 'config');
    const kubeconfig = (token: string) =>
      JSON.stringify({
        clusters: [{ name: 'c', cluster: { server: server.origin, 'insecure-skip-tls-verify': true } }],
        users: [{ name: 'u', user: { token } }],
        contexts: [{ name: 'x', context: { cluster: 'c', user: 'u', namespace: 'here' } }],
        'current-context': 'x',
      });
    await writeFile(file, kubeconfig('old'));
    let valid = 'old';
    const tokens: (string | undefined)[] = [];
    server.onList((response, url, request) => {
      tokens.push(request.headers.authorization);
      if (request.headers.authorization !== `Bearer ${valid}`)
        return status(401, 'Unauthorized')(response, url, request);
      return list(10)(response, url, request);
    });
    const source = loadConnection({ kubeconfig: file });
    expect(source.namespace).toBe('here');
    const rotating = createClient(source);
    await rotating.list({ resource: RESOURCE });
    valid = 'new';
    await expect(rotating.list({ resource: RESOURCE })).rejects.toMatchObject({ code: 'unauthorized' });
    await writeFile(file, kubeconfig('new'));
    server.onWatch(watch([]));
    await start({ client: rotating }).synced;
    expect(tokens).toEqual(['Bearer old', 'Bearer old', 'Bearer old', 'Bearer old', 'Bearer new']);
    ending.abort();
    await rotating.close();
    await rm(folder, { recursive: true });
  });

  it('is broken by no listener', async () => {
    server.onList(list(10, configMap('a', 'u1', 9)));
    server.onWatch(watch([event('ADDED', configMap('b', 'u2', 12))]));
    const { store, synced } = start({
      onChange: () => {
        throw new Error('a listener fails');
      },
    });
    await synced;
    await until(() => store.list().length === 2);
  });

  it('comes back when the server was away', async () => {
    server.onList(list(10));
    server.onWatch(
      watch([event('ADDED', configMap('a', 'u1', 11))], 'reset'),
      (response) => {
        response.socket?.destroy();
      },
      watch([event('DELETED', configMap('a', 'u1', 12))]),
    );
    start();
    await until(has('deleted u1@12'));
  });

  it('ends with its signal, in every state, leaving no connection', async () => {
    server.onList(list(10));
    server.onWatch(watch([]));
    await start().synced;
    await until(() => server.watches().length === 1);
    ending.abort(new Error('enough'));
    await running?.ended;
    await until(() => server.openConnections() <= 1);
    const requests = server.requests.length;

    const second = new AbortController();
    server.onList(() => {});
    const waiting = start({ signal: second.signal });
    await until(() => server.requests.length === requests + 1);
    second.abort(new Error('enough'));
    await waiting.ended;
    await expect(waiting.synced).rejects.toThrow('enough');
  });

  it('keeps only what `slim` says', async () => {
    server.onList(list(10, configMap('a', 'u1', 9, { big: 'x' })));
    server.onWatch(watch([event('MODIFIED', configMap('a', 'u1', 11, { big: 'y' }))]));
    const { store } = start({
      slim: ({ apiVersion, kind, metadata }) => ({ apiVersion, kind, metadata }),
    });
    await until(has('updated u1@11'));
    expect(store.get('a', 'ns')).not.toHaveProperty('data');
  });
});
