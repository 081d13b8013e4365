/**
 * Egress before edge, a DNS server that lies, and hosts on loopback: 127.0.0.8 and .9 stand for the internet, and every other address
 * is judged as it is. Hosts count who came to them; that is what tests look at, besides the answers.
 */
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { connect, createServer as createTlsServer, type TLSSocket } from 'node:tls';
import type { Networks } from '../../../src/domain/egress/judgeAddress.ts';
import {
  type AddressVerdict,
  type Destination,
  judgeAddress,
  NO_NETWORKS,
} from '../../../src/domain/egress/judgeAddress.ts';
import { createEgressCatalog, type EgressCatalog } from '../../../src/egress/catalog.ts';
import type { EgressOptions } from '../../../src/egress/main.ts';
import type { KubeObject } from '../../../src/engine/contract.ts';
import { certificateRequest } from '../../../src/net/csr.ts';
import { acceptIdentity } from '../../../src/net/identity.ts';
import { identityRequest } from '../../../src/net/identityRequest.ts';
import { createResolver } from '../../../src/net/resolve.ts';
import { createTestAuthority } from '../../../src/net/testing/authority.ts';
import { SEARCH_POD, startTestCluster, type TestCluster, type TestPod, TRUST_DOMAIN } from '../edge/cluster.ts';
import { fixedZone, type LyingDns, startLyingDns } from './lyingDns.ts';

export const INTERNET = ['127.0.0.8', '127.0.0.9'];
export const MAIL_POD: TestPod = {
  ...SEARCH_POD,
  name: 'oz0t-mail-1',
  uid: 'uid-2',
  account: 'oz0t-mail',
  labels: { 'oz0.ai/tool': 'mail' },
};

export interface Shown {
  readonly cert: string;
  readonly key: string;
}

export interface World {
  readonly cluster: TestCluster;
  readonly catalog: EgressCatalog;
  readonly dns: LyingDns;
  /** TLS for api.example.com and *.cdn.example.com at 127.0.0.9, answering what it gets in capitals. */
  readonly web: {
    readonly port: number;
    readonly caPem: string;
    readonly names: (string | false)[];
    readonly bytes: () => number;
    readonly open: () => number;
  };
  /** TCP that sends a greeting and then what it gets, at 127.0.0.9 and 127.0.0.1. */
  readonly raw: { readonly port: number; readonly arrivals: string[] };
  readonly search: Shown;
  readonly mail: Shown;
  synced: boolean;
  /** Applies a Tool of the namespace `team` that names these. */
  setHosts(tool: string, hosts: unknown): void;
  removeTool(tool: string): void;
  close(): Promise<void>;
}

export async function startWorld(
  options: Partial<EgressOptions> = {},
  networks: Partial<Networks> = {},
): Promise<World> {
  const dns = await startLyingDns();
  const world = { synced: true };
  const catalog = createEgressCatalog({ fixed: { ...NO_NETWORKS, ...networks }, synced: () => world.synced });
  // What every cluster has.
  catalog.put('Node', node('node-1', ['10.0.0.4'], ['10.244.0.0/24']));
  catalog.put('EndpointSlice', slice('kubernetes', ['10.0.0.2']));
  catalog.put('ServiceCIDR', serviceCidr('kubernetes', ['10.96.0.0/12']));
  const judge = (address: string, destination: Destination): AddressVerdict => {
    const verdict = judgeAddress(address, destination, catalog.networks());
    const stands = verdict.kind === 'refuse' && verdict.class === 'loopback' && INTERNET.includes(address);
    return stands ? { kind: 'dial', address, class: 'public', opened: false } : verdict;
  };
  const cluster = await startTestCluster({
    policy: catalog.policy,
    problems: catalog.problems,
    judge,
    resolve: createResolver({ servers: [dns.server], timeoutMs: 500 }),
    onChange: catalog.onChange,
    dialTimeoutMs: 500,
    ...options,
  });
  const web = await startWeb();
  const raw = await startRaw();
  dns.zone = fixedZone({
    'api.example.com': ['127.0.0.9'],
    'evil.example.com': ['127.0.0.9'],
    'raw.example.com': ['127.0.0.9'],
    'a.cdn.example.com': ['127.0.0.9'],
    'b.cdn.example.com': ['127.0.0.9'],
    'c.cdn.example.com': ['127.0.0.9'],
    'inside.example.com': ['10.0.0.77'],
    'half.example.com': ['127.0.0.9', '127.0.0.1'],
    'loop.example.com': ['127.0.0.1'],
    'imds.example.com': ['169.254.169.254'],
    'wire.example.com': ['168.63.129.16'],
    'mapped.example.com': ['127.0.0.9', '::ffff:7f00:1'],
    'node.example.com': ['10.0.0.4'],
    'apiserver.example.com': ['10.0.0.2'],
    'service.example.com': ['10.96.0.1'],
    'pod.example.com': ['10.244.0.9'],
    'closed.example.com': ['127.0.0.8'],
  });
  const [search, mail] = [await identityOf(cluster, SEARCH_POD), await identityOf(cluster, MAIL_POD)];
  return Object.assign(world, {
    cluster,
    catalog,
    dns,
    web: web.told,
    raw: raw.told,
    search,
    mail,
    setHosts: (name: string, hosts: unknown) => catalog.put('Tool', tool(name, { hosts })),
    removeTool: (name: string) => catalog.remove('Tool', tool(name, {})),
    async close() {
      await cluster.close();
      for (const server of [...web.servers, ...raw.servers]) server.close();
      await dns.close();
    },
  });
}

export function tool(name: string, spec: unknown): KubeObject {
  return {
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'Tool',
    metadata: { name, namespace: 'team', uid: name, resourceVersion: '1' },
    spec,
  };
}

export function node(name: string, addresses: readonly string[], podCIDRs: readonly string[] = []): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: name, resourceVersion: '1' },
    spec: { podCIDR: podCIDRs[0], podCIDRs },
    status: {
      addresses: [
        { type: 'Hostname', address: name },
        ...addresses.map((address) => ({ type: 'InternalIP', address })),
      ],
    },
  };
}

export function slice(name: string, addresses: readonly string[]): KubeObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace: 'default', uid: name, resourceVersion: '1' },
    endpoints: [{ addresses }],
  };
}

export function serviceCidr(name: string, cidrs: readonly string[]): KubeObject {
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'ServiceCIDR',
    metadata: { name, uid: name, resourceVersion: '1' },
    spec: { cidrs },
  };
}

export async function identityOf(cluster: TestCluster, pod: TestPod): Promise<Shown> {
  const keys = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const answer = await identityRequest({
    route: { kind: 'egress', host: '127.0.0.1', port: cluster.egress.port, servername: 'oz0-egress.oz0-system.svc' },
    trustDomain: TRUST_DOMAIN,
    trustBundlePem: async () => readFileSync(cluster.trustFile, 'utf8'),
    token: async () => cluster.api.addPod(pod),
  })(certificateRequest(keys), new AbortController().signal);
  const held = acceptIdentity(answer, keys.privateKey, TRUST_DOMAIN, Date.now());
  return { cert: held.certificatePem, key: held.keyPem };
}

async function startWeb() {
  const credentials = createTestAuthority('web').issue({ kind: 'edge' }, 3_600_000, [
    'api.example.com',
    '*.cdn.example.com',
  ]);
  const names: (string | false)[] = [];
  let bytes = 0;
  const sockets = new Set<Socket>();
  const server = createTlsServer({ key: credentials.keyPem, cert: credentials.certificatePem }, (socket) => {
    names.push(socket.servername ?? false);
    socket.on('error', () => {});
    socket.on('data', (part: Buffer) => socket.write(part.toString('latin1').toUpperCase()));
  });
  server.on('tlsClientError', () => {});
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => {
      bytes += socket.bytesRead;
      sockets.delete(socket);
    });
  });
  server.listen(0, '127.0.0.9');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const read = () => bytes + [...sockets].reduce((sum, socket) => sum + socket.bytesRead, 0);
  return {
    servers: [server],
    told: { port, caPem: credentials.trustBundlePem, names, bytes: read, open: () => sockets.size },
  };
}

async function startRaw() {
  const arrivals: string[] = [];
  const accept = (at: string) => (socket: Socket) => {
    arrivals.push(at);
    socket.on('error', () => {});
    socket.write('220 hello\r\n');
    socket.pipe(socket);
  };
  const servers: Server[] = [];
  let port = 0;
  for (const address of ['127.0.0.9', '127.0.0.1']) {
    const server = createTcpServer(accept(address)).listen(port, address);
    await once(server, 'listening');
    port = (server.address() as AddressInfo).port;
    servers.push(server);
  }
  return { servers, told: { port, arrivals } };
}

export interface Opened {
  readonly status: number;
  readonly head: string;
  readonly body: { error?: { code: string; message: string; class?: string } };
  /** The tunnel, where the status is 200. */
  readonly socket: TLSSocket;
}

/** As much of the world as a client needs. */
export interface Door {
  readonly cluster: { readonly trustFile: string; readonly egress: { readonly port: number } };
  readonly search?: Shown;
}

/** Asks for a tunnel as a sidecar does. */
export async function ask(
  world: Door,
  target: string,
  shown: Partial<Shown> = world.search ?? {},
  more = '',
): Promise<Opened> {
  const socket = connect({
    host: '127.0.0.1',
    port: world.cluster.egress.port,
    ca: readFileSync(world.cluster.trustFile),
    servername: 'oz0-egress.oz0-system.svc',
    ...shown,
  });
  socket.on('error', () => {});
  await once(socket, 'secureConnect');
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n${more}\r\n`);
  let text = '';
  while (!text.includes('\r\n\r\n')) {
    if (socket.readableLength === 0) await Promise.race([once(socket, 'readable'), once(socket, 'close')]);
    const part: unknown = socket.read();
    if (part === null) break;
    text += String(part);
  }
  const end = text.indexOf('\r\n\r\n');
  const status = Number(text.slice(9, 12));
  const rest = text.slice(end + 4);
  if (status === 200 && rest !== '') socket.unshift(Buffer.from(rest));
  let body = rest;
  if (status !== 200) {
    socket.on('data', (part) => {
      body += String(part);
    });
    if (!socket.closed) await once(socket, 'close');
  }
  return { status, head: text.slice(0, end), body: status === 200 || body === '' ? {} : JSON.parse(body), socket };
}

/** TLS within a tunnel, its certificate and name verified. @throws what the client sees */
export async function secure(world: World, over: Duplex, servername: string, options: object = {}): Promise<TLSSocket> {
  const socket = connect({ socket: over, servername, ca: world.web.caPem, ...options });
  await once(socket, 'secureConnect');
  socket.on('error', () => {});
  return socket;
}

export async function say(socket: Duplex, text: string): Promise<string> {
  socket.write(text);
  const [answer] = await once(socket, 'data');
  return String(answer);
}

/** Whether a socket closes in time. */
export function closes(socket: Duplex, ms = 2_000): Promise<boolean> {
  if (socket.closed) return Promise.resolve(true);
  socket.resume();
  return Promise.race([
    // Not `once` of node:events, which fails on a reset.
    new Promise<boolean>((resolve) => socket.once('close', () => resolve(true))),
    new Promise<boolean>((resolve) => setTimeout(() => resolve(false), ms).unref()),
  ]);
}
