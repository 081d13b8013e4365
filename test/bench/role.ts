/**
 * One process of the benchmark, told by its parent what to be: the tool's end, a bare streaming hop in front of it, or the
 * gateway. Answers `usage` with its CPU time and memory.
 */
import {
  createServer as createHttp,
  Agent as HttpAgent,
  request as httpRequest,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http';
import { createServer as createHttps, Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Pool } from 'undici';
import { snapshotListing } from '../../src/domain/snapshot/snapshotListing.ts';
import { createCatalog } from '../../src/gateway/catalog/catalog.ts';
import { createGateway } from '../../src/gateway/gateway.ts';
import { createRecorder } from '../../src/gateway/recorder.ts';
import type { CredentialSource, TlsCredentials } from '../../src/net/credentials.ts';
import { openPeer } from '../../src/net/peer.ts';
import { startTlsServer } from '../../src/net/tlsServer.ts';
import { createLog } from '../../src/runtime/log.ts';
import { createMetrics } from '../../src/runtime/metrics.ts';
import { RESULT_TEXT } from './load.ts';

export interface RoleOptions {
  readonly role: 'tool' | 'hop' | 'gateway';
  readonly trustDomain: string;
  /** Present: TLS on both sides, mutual towards the tool. */
  readonly tls?: TlsCredentials;
  readonly toolPort?: number;
}

export type RoleMessage =
  | { readonly kind: 'listening'; readonly port: number }
  | { readonly kind: 'usage'; readonly cpuUs: number; readonly rssBytes: number };

const TOOL = 'bench';
const POD_UID = 'pod-1';
const LISTED = { name: 'run', inputSchema: { type: 'object' }, annotations: { readOnlyHint: true } };

process.on('message', (message: RoleOptions | 'usage') => {
  if (message === 'usage') {
    const { user, system } = process.cpuUsage();
    say({ kind: 'usage', cpuUs: user + system, rssBytes: process.memoryUsage().rss });
    return;
  }
  const start = { tool: startTool, hop: startHop, gateway: startGateway }[message.role];
  void start(message).then((port) => say({ kind: 'listening', port }));
});
process.on('disconnect', () => process.exit(0));

function say(message: RoleMessage): void {
  process.send?.(message);
}

function listen(
  options: RoleOptions,
  requestCert: boolean,
  handle: (req: IncomingMessage, res: ServerResponse) => void,
): Promise<number> {
  const { tls } = options;
  const server =
    tls === undefined
      ? createHttp(handle)
      : createHttps(
          { key: tls.keyPem, cert: tls.certificatePem, ca: tls.trustBundlePem, requestCert, minVersion: 'TLSv1.3' },
          handle,
        );
  server.keepAliveTimeout = 120_000;
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

/** Answers as a sidecar would, as fast as Node can. */
function startTool(options: RoleOptions): Promise<number> {
  return listen(options, true, (req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      const { id, method } = JSON.parse(Buffer.concat(chunks).toString('utf8'));
      if (method === 'subscriptions/listen') {
        res.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
        return;
      }
      const result =
        method === 'tools/list'
          ? { resultType: 'complete', tools: [LISTED] }
          : { resultType: 'complete', content: [{ type: 'text', text: RESULT_TEXT }] };
      const body = JSON.stringify({ jsonrpc: '2.0', id, result });
      res.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body);
    });
  });
}

/** The least that a process in between can do in Node: stream the request one way and the answer the other. */
function startHop(options: RoleOptions): Promise<number> {
  const { tls, toolPort } = options;
  const agentOptions = { keepAlive: true, maxSockets: 256 };
  const agent =
    tls === undefined
      ? new HttpAgent(agentOptions)
      : new HttpsAgent({
          ...agentOptions,
          key: tls.keyPem,
          cert: tls.certificatePem,
          ca: tls.trustBundlePem,
          checkServerIdentity: () => undefined,
        });
  const request = tls === undefined ? httpRequest : httpsRequest;
  return listen(options, false, (req, res) => {
    const up = request(
      { agent, host: '127.0.0.1', port: toolPort, path: req.url, method: req.method, headers: req.headers },
      (answer) => {
        res.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.pipe(res);
      },
    );
    up.on('error', () => res.destroy());
    req.pipe(up);
  });
}

async function startGateway(options: RoleOptions): Promise<number> {
  const { tls, toolPort = 0, trustDomain } = options;
  const catalog = createCatalog();
  const kind = (name: string, plural: string, spec: object) => ({
    apiVersion: 'oz0.ai/v1alpha1',
    kind: name,
    metadata: { name: plural, namespace: 'bench', uid: plural, resourceVersion: '1' },
    spec,
  });
  catalog.put('Agent', kind('Agent', 'agent', { serviceAccounts: ['bench'], tools: [`${TOOL}.*`] }));
  const image = { reference: 'tools.example/tool:1', command: ['/tool'], transport: { stdio: {} } };
  const { hash, functions } = snapshotListing([LISTED]);
  const approved = functions.map((each) => ({ name: each.name, hash: `sha256:${each.hash}` }));
  const snapshot = { hash: `sha256:${hash}`, from: 'FirstListing', count: 1, functions: approved };
  catalog.put('Tool', { ...kind('Tool', TOOL, { image, timeout: '60s' }), status: { snapshot } });
  catalog.put('Pod', {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod', namespace: 'bench', uid: POD_UID, labels: { 'oz0.ai/tool': TOOL } },
    spec: { nodeName: 'node1' },
    status: { podIP: '127.0.0.1', conditions: [{ type: 'Ready', status: 'True' }] },
  });
  // The log goes nowhere, but its lines are made: that is a part of a call's cost.
  const log = createLog('gateway', { destination: { write: () => {} } });
  const credentials: CredentialSource | undefined =
    tls === undefined ? undefined : { current: () => tls, onChange: () => () => {} };
  const gateway = createGateway({
    ownNode: 'node1',
    version: 'bench',
    catalog,
    synced: () => true,
    review: () =>
      Promise.resolve({
        authenticated: true,
        user: {
          username: 'system:serviceaccount:bench:bench',
          extra: { 'authentication.kubernetes.io/node-name': 'node1', 'authentication.kubernetes.io/pod-uid': 'p' },
        },
      }),
    openConnections: ({ namespace, tool, route }) => {
      if (credentials !== undefined) {
        const peer = openPeer({
          address: { host: '127.0.0.1', port: toolPort },
          expected: { kind: 'tool', namespace, tool, podUid: route.podUid },
          trustDomain,
          credentials,
          connections: 256,
        });
        return { dispatcher: peer.dispatcher, close: peer.close };
      }
      const pool = new Pool(`http://127.0.0.1:${toolPort}`, {
        connections: 256,
        pipelining: 1,
        headersTimeout: 0,
        bodyTimeout: 0,
      });
      return { dispatcher: () => pool, close: () => pool.destroy() };
    },
    sessionKeys: () => [{ id: 'k', key: new Uint8Array(32).fill(1) }],
    recorder: createRecorder(log, createMetrics('gateway')),
  });
  if (credentials === undefined) return listen(options, false, gateway.handle);
  const server = await startTlsServer({
    host: '127.0.0.1',
    port: 0,
    credentials,
    trustDomain,
    clientCertificate: 'none',
    handler: (req, res) => gateway.handle(req, res),
    signal: new AbortController().signal,
  });
  return server.address.port;
}
