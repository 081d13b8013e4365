/** One process of egress' benchmark: egress' own handler, or the least that a CONNECT proxy can do in Node. */
import { createServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { judgeAddress, NO_NETWORKS } from '../../src/domain/egress/judgeAddress.ts';
import { createEgressCatalog } from '../../src/egress/catalog.ts';
import { createConnectHandler } from '../../src/egress/connectHandler.ts';
import type { TlsCredentials } from '../../src/net/credentials.ts';
import { startTlsServer } from '../../src/net/tlsServer.ts';
import { createLog } from '../../src/runtime/log.ts';

export interface EgressRole {
  readonly kind: 'bare' | 'egress';
  readonly trustDomain: string;
  readonly tls: TlsCredentials;
  readonly hostPort: number;
}

export interface EgressRoleMessage {
  readonly kind: 'listening' | 'usage';
  /** A port, or bytes of resident memory. */
  readonly value: number;
  readonly cpuUs?: number;
}

const HOST_ADDRESS = '127.0.0.9';

process.on('message', (message: EgressRole | 'usage') => {
  if (message === 'usage') {
    const { user, system } = process.cpuUsage();
    say({ kind: 'usage', value: process.memoryUsage().rss, cpuUs: user + system });
    return;
  }
  const start = message.kind === 'bare' ? startBare : startOwn;
  void start(message).then((value) => say({ kind: 'listening', value }));
});
process.on('disconnect', () => process.exit(0));

function say(message: EgressRoleMessage): void {
  process.send?.(message);
}

function startBare({ tls, hostPort }: EgressRole): Promise<number> {
  const server = createServer({
    key: tls.keyPem,
    cert: tls.certificatePem,
    ca: tls.trustBundlePem,
    requestCert: true,
    rejectUnauthorized: true,
    minVersion: 'TLSv1.3',
    noDelay: true,
  });
  server.on('connect', (_request, client, head) => {
    const upstream = connect({ host: HOST_ADDRESS, port: hostPort, noDelay: true }, () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      if (head.length > 0) upstream.write(head);
      client.pipe(upstream);
      upstream.pipe(client);
    });
    client.on('error', () => upstream.destroy()).on('close', () => upstream.destroy());
    upstream.on('error', () => client.destroy());
  });
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}

async function startOwn({ tls, trustDomain, hostPort }: EgressRole): Promise<number> {
  const catalog = createEgressCatalog({ fixed: NO_NETWORKS, synced: () => true });
  const object = (kind: string, rest: object) => ({
    apiVersion: 'v1',
    kind,
    metadata: { name: 'bench', namespace: 'bench', uid: 'u', resourceVersion: '1' },
    ...rest,
  });
  catalog.put('Node', object('Node', { status: { addresses: [{ address: '10.0.0.4' }] }, spec: {} }));
  catalog.put('EndpointSlice', object('EndpointSlice', { endpoints: [{ addresses: ['10.0.0.2'] }] }));
  catalog.put('ServiceCIDR', object('ServiceCIDR', { spec: { cidrs: ['10.96.0.0/12'] } }));
  catalog.put('Tool', object('Tool', { spec: { hosts: [`host.example.com:${hostPort}`] } }));
  const { signal } = new AbortController();
  const handler = createConnectHandler({
    policy: catalog.policy,
    // The real judgement is made and paid for; loopback then stands for the internet.
    judge: (address, destination) => {
      judgeAddress(address, destination, catalog.networks());
      return { kind: 'dial', address, class: 'public', opened: false };
    },
    // A resolver's time is the network's, not egress'.
    resolve: () => Promise.resolve({ kind: 'addresses', addresses: [HOST_ADDRESS] }),
    signer: { host: '127.0.0.1', port: 1 },
    toolLimits: { tunnels: 2_000, burst: 100_000, perMinute: 100_000 },
    // The log goes nowhere, but its lines are made.
    log: createLog('egress', { destination: { write: () => {} } }),
    count: () => {},
    signal,
  });
  const server = await startTlsServer({
    host: '127.0.0.1',
    port: 0,
    credentials: { current: () => tls, onChange: () => () => {} },
    trustDomain,
    clientCertificate: 'optional',
    handler: handler.onRequest,
    onConnect: handler.onConnect,
    limits: { maxConnections: 10_000, maxHeaderBytes: 8 * 1024 },
    signal,
  });
  return server.address.port;
}
