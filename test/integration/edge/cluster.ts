/** An API server of a few objects, with edge and egress before it, all over loopback: what the tests of this folder's neighbours need. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startEdge } from '../../../src/edge/main.ts';
import { type EgressOptions, startEgress } from '../../../src/egress/main.ts';
import { createClient } from '../../../src/kube/client.ts';
import { fixedConnection } from '../../../src/kube/connection.ts';
import { createHealth } from '../../../src/runtime/health.ts';
import { createLog } from '../../../src/runtime/log.ts';
import { createMetrics } from '../../../src/runtime/metrics.ts';
import type { Shell } from '../../../src/runtime/process.ts';

export const TRUST_DOMAIN = 'oz0.test';
export const NAMESPACE = 'oz0-system';

export interface TestPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly account: string;
  readonly labels: Record<string, string>;
  readonly node?: string;
  readonly deleted?: boolean;
}

export interface FakeApi {
  readonly url: string;
  /** By token. */
  readonly tokens: Map<string, { username: string; podName?: string; podUid?: string; audience?: string }>;
  readonly pods: Map<string, TestPod>;
  /** Objects by path; what edge writes. */
  readonly objects: Map<string, Record<string, unknown>>;
  /** Requests by method and path. */
  readonly requests: string[];
  /** What was put, in order. */
  readonly puts: { readonly path: string; readonly object: Record<string, unknown> }[];
  /** When set, every request gets this status. */
  failing: number | undefined;
  addPod(pod: TestPod): string;
  close(): Promise<void>;
}

export async function startFakeApi(): Promise<FakeApi> {
  const api: Omit<FakeApi, 'url' | 'close'> = {
    tokens: new Map(),
    pods: new Map(),
    objects: new Map(),
    requests: [],
    puts: [],
    failing: undefined,
    addPod(pod) {
      api.pods.set(`/api/v1/namespaces/${pod.namespace}/pods/${pod.name}`, pod);
      const token = `token-of-${pod.namespace}-${pod.name}-${pod.uid}`;
      api.tokens.set(token, {
        username: `system:serviceaccount:${pod.namespace}:${pod.account}`,
        podName: pod.name,
        podUid: pod.uid,
      });
      return token;
    },
  };
  let version = 1;
  const stored = (path: string, object: { metadata: object }) => {
    const kept = { ...object, metadata: { ...object.metadata, resourceVersion: String(version++) } };
    api.objects.set(path, kept);
    return kept;
  };
  const server: Server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const path = (request.url ?? '').split('?')[0] ?? '';
      const body = parts.length === 0 ? {} : JSON.parse(Buffer.concat(parts).toString());
      api.requests.push(`${request.method} ${path}`);
      const answer = (status: number, value: object) => {
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
      };
      const fail = (status: number, reason: string) =>
        answer(status, { apiVersion: 'v1', kind: 'Status', status: 'Failure', reason, code: status, message: reason });
      if (api.failing !== undefined) return fail(api.failing, 'InternalError');
      if (path.endsWith('/tokenreviews')) return answer(201, { ...body, status: review(api, body) });
      const pod = api.pods.get(path);
      if (pod !== undefined) return answer(200, podObject(pod));
      if (request.method === 'POST') {
        const key = `${path}/${body.metadata.name}`;
        if (api.objects.has(key)) return fail(409, 'AlreadyExists');
        return answer(201, stored(key, body));
      }
      const object = api.objects.get(path);
      if (object === undefined) return fail(404, 'NotFound');
      if (request.method !== 'PUT') return answer(200, object);
      const { resourceVersion } = (object['metadata'] ?? {}) as { resourceVersion?: string };
      const based = body.metadata.resourceVersion;
      if (based !== undefined && resourceVersion !== undefined && based !== resourceVersion)
        return fail(409, 'Conflict');
      api.puts.push({ path, object: body });
      return answer(200, stored(path, body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(api, {
    url: `http://127.0.0.1:${port}`,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

function review(api: Omit<FakeApi, 'url' | 'close'>, body: { spec: { token: string; audiences: string[] } }) {
  const known = api.tokens.get(body.spec.token);
  const audience = known?.audience ?? 'oz0-ca';
  if (known === undefined || !body.spec.audiences.includes(audience)) return { error: 'invalid token' };
  const extra: Record<string, string[]> = {};
  if (known.podName !== undefined) extra['authentication.kubernetes.io/pod-name'] = [known.podName];
  if (known.podUid !== undefined) extra['authentication.kubernetes.io/pod-uid'] = [known.podUid];
  return {
    authenticated: true,
    audiences: [audience],
    user: { username: known.username, uid: 'u', groups: [], extra },
  };
}

function podObject(pod: TestPod) {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: pod.name,
      namespace: pod.namespace,
      uid: pod.uid,
      labels: pod.labels,
      ...(pod.deleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { serviceAccountName: pod.account, nodeName: pod.node ?? 'node-1' },
    status: { phase: 'Running' },
  };
}

/** A shell whose lines are kept. */
export function testShell(component: string): Shell & { lines: string[]; exits: string[] } {
  const lines: string[] = [];
  const exits: string[] = [];
  const log = createLog(component, { destination: { write: (line) => void lines.push(line) } });
  return {
    environment: {},
    log,
    health: createHealth(log),
    metrics: createMetrics(component),
    exit: (_code, why) => void exits.push(why),
    lines,
    exits,
  };
}

export interface TestCluster {
  readonly api: FakeApi;
  readonly folder: string;
  readonly trustFile: string;
  readonly edge: { readonly port: number; readonly shell: ReturnType<typeof testShell> };
  readonly egress: { readonly port: number; readonly shell: ReturnType<typeof testShell> };
  close(): Promise<void>;
}

/** Edge before a fake API server, and egress before edge. */
export async function startTestCluster(options: Partial<EgressOptions> = {}): Promise<TestCluster> {
  const api = await startFakeApi();
  const folder = mkdtempSync(join(tmpdir(), 'oz0-'));
  const trustFile = join(folder, 'ca.crt');
  const tokenFile = join(folder, 'egress-token');
  writeFileSync(
    tokenFile,
    api.addPod({
      namespace: NAMESPACE,
      name: 'oz0-egress-1',
      uid: 'egress-uid',
      account: 'oz0-egress',
      labels: { 'oz0.ai/component': 'egress' },
    }),
  );
  const edgeShell = testShell('edge');
  const client = createClient(fixedConnection({ server: api.url, tls: { verify: true } }));
  const scope = { namespace: NAMESPACE, trustDomain: TRUST_DOMAIN, clusterDomain: 'cluster.local' };
  const edge = startEdge(edgeShell, { client, scope, host: '127.0.0.1', port: 0 });
  const edgePort = await edge.listening;
  const bundle = api.objects.get(`/api/v1/namespaces/${NAMESPACE}/configmaps/oz0-trust`);
  writeFileSync(trustFile, JSON.parse(JSON.stringify(bundle)).data['ca.crt']);
  const egressShell = testShell('egress');
  const egress = startEgress(egressShell, {
    trustDomain: TRUST_DOMAIN,
    edge: { host: '127.0.0.1', port: edgePort },
    tokenFile,
    trustFile,
    policy: { hosts: () => new Set() },
    host: '127.0.0.1',
    port: 0,
    drainMs: 0,
    ...options,
  });
  const egressPort = await egress.listening;
  return {
    api,
    folder,
    trustFile,
    edge: { port: edgePort, shell: edgeShell },
    egress: { port: egressPort, shell: egressShell },
    async close() {
      await egress.close();
      await edge.close();
      await client.close();
      await api.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export const SEARCH_POD: TestPod = {
  namespace: 'team',
  name: 'oz0t-search-1',
  uid: 'uid-1',
  account: 'oz0t-search',
  labels: { 'oz0.ai/tool': 'search' },
};
