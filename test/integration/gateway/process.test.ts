/** The whole process: identity from edge, watches, TLS to callers, mutual TLS to a tool pod that has to prove itself. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Identity, parseIdentity } from '../../../src/domain/identity/identity.ts';
import { snapshotListing } from '../../../src/domain/snapshot/snapshotListing.ts';
import { startGateway } from '../../../src/gateway/main.ts';
import { readSettings } from '../../../src/gateway/settings.ts';
import { createClient } from '../../../src/kube/client.ts';
import { fixedConnection } from '../../../src/kube/connection.ts';
import { createMcpEndpoint } from '../../../src/mcp/endpoint.ts';
import { startIdentity } from '../../../src/net/identity.ts';
import { identityRequest } from '../../../src/net/identityRequest.ts';
import { startTlsServer, type TlsServer } from '../../../src/net/tlsServer.ts';
import { startTestCluster, type TestCluster, TRUST_DOMAIN, testShell } from '../edge/cluster.ts';
import { type ApiServer, startApiServer } from './support/apiServer.ts';
import { ENVELOPE, type Loose, until } from './support/world.ts';

const AGENTS = '/apis/oz0.ai/v1alpha1/agents';
const TOOLS = '/apis/oz0.ai/v1alpha1/tools';
const PODS = '/api/v1/pods';
const POLICIES = '/apis/oz0.ai/v1alpha1/toolpolicies';
const STOPS = '/apis/oz0.ai/v1alpha1/stops';
const FIND = { name: 'find', inputSchema: { type: 'object' } };
const WRITE = { name: 'write', inputSchema: { type: 'object' }, annotations: { destructiveHint: false } };
const READ = { name: 'read', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } };
const { hash, functions } = snapshotListing([FIND, READ, WRITE]);
const snapshot = {
  hash: `sha256:${hash}`,
  from: 'FirstListing',
  count: 2,
  functions: functions.map((each) => ({ name: each.name, hash: `sha256:${each.hash}` })),
};

let cluster: TestCluster;
let api: ApiServer;
let tool: TlsServer;
let gateway: ReturnType<typeof startGateway>;
let port: number;
const shell = testShell('gateway');
const stop = new AbortController();
const folder = mkdtempSync(join(tmpdir(), 'oz0-gateway-'));
const peers: Identity[] = [];
const agent = new Agent({ connect: { rejectUnauthorized: false } });
let runs = 0;
let waiting = 0;
let cutOff = 0;

/** A tool's end with a certificate of edge's for one pod. */
async function startTool(podUid: string): Promise<TlsServer> {
  const token = cluster.api.addPod({
    namespace: 'acme',
    name: `oz0t-search-${podUid}`,
    uid: podUid,
    account: 'oz0t-search',
    labels: { 'oz0.ai/tool': 'search' },
  });
  const identity = startIdentity({
    request: identityRequest({
      route: { kind: 'direct', host: '127.0.0.1', port: cluster.edge.port },
      trustDomain: TRUST_DOMAIN,
      trustBundlePem: async () => (await import('node:fs/promises')).readFile(cluster.trustFile, 'utf8'),
      token: async () => token,
    }),
    trustDomain: TRUST_DOMAIN,
    log: () => {},
    signal: stop.signal,
  });
  const endpoint = createMcpEndpoint<undefined>({
    handler: {
      serverInfo: { name: 'search', version: '1' },
      listTools: () => ({ kind: 'result', result: { tools: [FIND, READ, WRITE] } }),
      callTool: async (_, call) => {
        runs += 1;
        if (call.arguments['wait'] === true) {
          waiting += 1;
          await new Promise((resolve) => call.signal.addEventListener('abort', resolve, { once: true }));
          cutOff += 1;
        }
        call.progress?.({ progress: 1 });
        return { kind: 'result', result: { content: [{ type: 'text', text: `found ${call.arguments['q']}` }] } };
      },
      subscribe: () => () => {},
    },
    admit: () => ({ ok: true, context: undefined }),
  });
  return startTlsServer({
    host: '127.0.0.1',
    port: 0,
    credentials: identity,
    trustDomain: TRUST_DOMAIN,
    clientCertificate: 'required',
    handler: (req, res, peer) => {
      if (peer !== undefined) peers.push(peer);
      endpoint.handle(req, res);
    },
    signal: stop.signal,
  });
}

const podObject = (uid: string, ready = true) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'acme', name: `oz0t-search-${uid}`, uid, labels: { 'oz0.ai/tool': 'search' } },
  spec: { nodeName: 'node1' },
  status: { podIP: '127.0.0.1', conditions: [{ type: 'Ready', status: ready ? 'True' : 'False' }] },
});

beforeAll(async () => {
  [cluster, api] = await Promise.all([startTestCluster(), startApiServer()]);
  tool = await startTool('tool-uid');
  const tokenFile = join(folder, 'token');
  const labels = { 'oz0.ai/component': 'gateway' };
  writeFileSync(
    tokenFile,
    cluster.api.addPod({
      namespace: 'oz0-system',
      name: 'oz0-gateway-1',
      uid: 'g',
      account: 'oz0-gateway',
      labels,
      node: 'node1',
    }),
  );
  const settings = readSettings({
    OZ0_NAMESPACE: 'oz0-system',
    OZ0_NODE: 'node1',
    OZ0_TRUST_DOMAIN: TRUST_DOMAIN,
    OZ0_EDGE_HOST: '127.0.0.1',
    OZ0_EDGE_PORT: String(cluster.edge.port),
    OZ0_TRUST_FILE: cluster.trustFile,
    OZ0_TOKEN_FILE: tokenFile,
    OZ0_LINGER_MS: '100',
    OZ0_DRAIN_MS: '1000',
  });
  api.put(AGENTS, {
    metadata: { namespace: 'acme', name: 'reviewer' },
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'Agent',
    spec: { serviceAccounts: ['reviewer'], tools: ['search.*'] },
  } as never);
  const image = { reference: 'tools.example/tool:1', command: ['/tool'], transport: { stdio: {} } };
  api.put(TOOLS, {
    metadata: { namespace: 'acme', name: 'search' },
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'Tool',
    spec: { image },
    status: { snapshot },
  } as never);
  api.put(POLICIES, {
    metadata: { namespace: 'acme', name: 'default' },
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'ToolPolicy',
    spec: { kinds: { undeclared: 'run' } },
  } as never);
  api.put(PODS, podObject('tool-uid'));
  api.tokens.set('a.b.c', {
    authenticated: true,
    audiences: ['oz0-gateway'],
    user: {
      username: 'system:serviceaccount:acme:reviewer',
      extra: {
        'authentication.kubernetes.io/pod-uid': ['agent-pod'],
        'authentication.kubernetes.io/node-name': ['node1'],
      },
    },
  });
  const client = createClient(fixedConnection({ server: api.url, tls: { verify: true } }));
  gateway = startGateway(shell, {
    settings: { ...settings, port: 0 },
    client,
    host: '127.0.0.1',
    toolPort: tool.address.port,
    heartbeat: { intervalMs: 50, silentAfterMs: 1_000 },
  });
  port = await gateway.listening;
  await until(() => Object.keys(shell.health.notReady()).length === 0, 'ready');
});

afterAll(async () => {
  await gateway.close();
  await tool.close(0);
  stop.abort();
  await Promise.all([cluster.close(), api.close(), agent.close()]);
  rmSync(folder, { recursive: true, force: true });
});

async function post(method: string, params: Record<string, unknown>, token = 'a.b.c'): Promise<Loose> {
  const name = params['name'];
  const { statusCode, body } = await request(`https://127.0.0.1:${port}/mcp`, {
    method: 'POST',
    dispatcher: agent,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json',
      authorization: `Bearer ${token}`,
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(typeof name === 'string' ? { 'mcp-name': name } : {}),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: ENVELOPE } }),
  });
  return { status: statusCode, ...((await body.json()) as object) };
}

describe('the process', () => {
  test('[D05] an agent lists and calls over TLS; the tool sees this node’s gateway', async () => {
    const listed = await post('tools/list', {});
    expect(listed.result.tools.map((each: { name: string }) => each.name)).toEqual([
      'search__find',
      'search__read',
      'search__write',
    ]);
    const called = await post('tools/call', { name: 'search__find', arguments: { q: 'x' } });
    expect(called.result.content[0].text).toBe('found x');
    expect(peers.every((peer) => peer.kind === 'gateway' && peer.node === 'node1')).toBe(true);
    expect(parseIdentity(TRUST_DOMAIN, `spiffe://${TRUST_DOMAIN}/gateway/node/node1`)).toEqual(peers[0]);
  });

  test('[D05] the watches ask for this node’s tool pods and tools’ endpoints only', () => {
    const asked = decodeURIComponent(api.asked.join('\n'));
    expect(asked).toMatch(/\/api\/v1\/pods\?.*labelSelector=oz0.ai\/tool.*fieldSelector=spec.nodeName=node1/);
    expect(asked).toMatch(/\/endpointslices\?.*labelSelector=oz0.ai\/tool/);
  });

  test('[Y06] a Stop ends a running call, which is told as stopped, and nothing runs while it is there', async () => {
    const running = post('tools/call', { name: 'search__read', arguments: { wait: true } });
    await until(() => waiting === 1, 'the call runs');
    const stop = { tool: 'search', because: 'Incident 12' };
    api.put(STOPS, {
      metadata: { namespace: 'acme', name: 'incident-12' },
      apiVersion: 'oz0.ai/v1alpha1',
      kind: 'Stop',
      spec: stop,
    } as never);
    const { result } = await running;
    expect(result).toMatchObject({ isError: true, _meta: { 'ai.oz0/outcome': 'stopped' } });
    expect(result.content[0].text).toContain('Incident 12');
    await until(() => cutOff === 1, 'the tool is told');
    const before = runs;
    const refused = await post('tools/call', { name: 'search__find', arguments: { q: 'x' } });
    expect(refused.result._meta).toMatchObject({ 'ai.oz0/outcome': 'not-started', 'ai.oz0/reason': 'stopped' });
    expect((await post('tools/list', {})).result.tools).toEqual([]);
    expect(runs).toBe(before);
    api.remove(STOPS, 'acme', 'incident-12');
    await until(
      async () => (await post('tools/call', { name: 'search__find', arguments: {} })).result.isError !== true,
      'it runs again',
    );
    expect(shell.lines.some((line) => line.includes('"outcome":"stopped"'))).toBe(true);
  });

  test('[Y06] a Stop is seen though its watch broke without a sign, and its end too', async () => {
    const find = async (): Promise<string | undefined> =>
      (await post('tools/call', { name: 'search__find', arguments: {} })).result._meta?.['ai.oz0/reason'];
    api.deaf = true;
    try {
      api.put(STOPS, {
        metadata: { namespace: 'acme', name: 'unheard' },
        apiVersion: 'oz0.ai/v1alpha1',
        kind: 'Stop',
        spec: { all: true },
      } as never);
      await until(async () => (await find()) === 'stopped', 'it is stopped');
      api.remove(STOPS, 'acme', 'unheard');
      await until(async () => (await find()) === undefined, 'it runs again');
    } finally {
      api.deaf = false;
    }
  });

  test('[Y06] while the API server is silent only what reads runs; it is ready all the same', async () => {
    api.silent = true;
    try {
      let write: Loose;
      await until(
        async () => {
          write = (await post('tools/call', { name: 'search__write', arguments: { q: 'w' } })).result;
          return write._meta?.['ai.oz0/reason'] === 'api-silent';
        },
        'a write is refused',
        20_000,
      );
      expect(write).toMatchObject({ isError: true, _meta: { 'ai.oz0/outcome': 'not-started' } });
      expect((await post('tools/call', { name: 'search__read', arguments: { q: 'r' } })).result.content[0].text).toBe(
        'found r',
      );
      expect(shell.health.notReady()).toEqual({});
    } finally {
      api.silent = false;
    }
    await until(
      async () => (await post('tools/call', { name: 'search__write', arguments: {} })).result.isError !== true,
      'writes run again',
    );
  });

  test('a token that is for another audience is refused', async () => {
    expect((await post('tools/list', {}, 'x.y.z')).status).toBe(401);
  });

  test('[D04] another pod at the same address is not called: its certificate names another pod', async () => {
    const before = runs;
    const lines = shell.lines.length;
    api.put(PODS, podObject('tool-uid', false));
    api.put(PODS, podObject('impostor'));
    await until(() => shell.lines.slice(lines).some((line) => line.includes('cannot list a tool')), 'it is found out');
    const { result } = await post('tools/call', { name: 'search__find', arguments: { q: 'y' } });
    expect(result).toMatchObject({ isError: true, _meta: { 'ai.oz0/reason': 'unreachable' } });
    expect(runs).toBe(before);
    api.remove(PODS, 'acme', 'oz0t-search-impostor');
    api.put(PODS, podObject('tool-uid'));
    const again = await post('tools/call', { name: 'search__find', arguments: { q: 'z' } });
    expect(again.result.content[0].text).toBe('found z');
  });

  test('[O04] each call is one line and counted, without arguments or tokens', async () => {
    const written = shell.lines.filter((line) => JSON.parse(line).message === 'call').map((line) => JSON.parse(line));
    expect(written[0]).toMatchObject({ tool: 'search', function: 'find', outcome: 'ok', namespace: 'acme', dials: 1 });
    expect(shell.lines.join('')).not.toMatch(/a\.b\.c|found/);
    const metrics = await shell.metrics.text();
    expect(metrics).toMatch(/oz0_gateway_calls_total\{outcome="ok",reason="none"\} \d+/);
    expect(metrics).toMatch(/oz0_gateway_token_reviews_total\{outcome="refused"\} 1/);
  });
});
