/**
 * What a sidecar takes of a node's memory, bundled and started as in a pod: private (its own) and resident (with what it shares
 * with the other sidecars of the node), when it is ready and after calls; without and with the credential proxy.
 *
 *   node test/bench/sidecar.ts [--quick]
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import type { SidecarConfig } from '../../src/domain/config/sidecar.ts';
import { callHop } from '../../src/mcp/hop.ts';
import { startIdentity } from '../../src/net/identity.ts';
import { identityRequest } from '../../src/net/identityRequest.ts';
import { openPeer, type Peer } from '../../src/net/peer.ts';
import type { SidecarOptions } from '../../src/sidecar/sidecar.ts';
import {
  NAMESPACE,
  SEARCH_POD,
  startTestCluster,
  type TestCluster,
  TRUST_DOMAIN,
} from '../integration/edge/cluster.ts';

const CALLS = process.argv.includes('--quick') ? 500 : 5_000;
const CALLERS = 4;
const READY_MS = 20_000;
const ROOT = join(import.meta.dirname, '../..');
/** As the pod's template has it. */
const NODE_OPTIONS = ['--max-semi-space-size=1', '--single-threaded'];

const PROXY: Partial<SidecarConfig> = {
  hosts: ['api.example.test'],
  secrets: [{ name: 'KEY', file: 'KEY' }],
  bindings: [
    {
      secret: 'KEY',
      host: 'api.example.test',
      port: 443,
      in: 'header',
      name: 'Authorization',
      // biome-ignore lint/suspicious/noTemplateCurlyInString: what a binding says
      format: 'Bearer ${value}',
      websocket: false,
    },
  ],
};

const folder = mkdtempSync(join(tmpdir(), 'oz0-bench-sidecar-'));
process.on('exit', () => rmSync(folder, { recursive: true, force: true }));
const bundle = join(folder, 'sidecar.mjs');
await build({
  entryPoints: [join(import.meta.dirname, 'sidecarRole.ts')],
  outfile: bundle,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  logLevel: 'warning',
});
const launcher = join(folder, 'launcher');
execFileSync('go', ['build', '-o', launcher, '.'], {
  cwd: join(ROOT, 'src/launcher'),
  env: { ...process.env, CGO_ENABLED: '0' },
});

const cluster = await startTestCluster();
const rows: Record<string, string | number>[] = [];
try {
  rows.push({ sidecar: 'Node alone, with TLS loaded', ...(await bareNode()) });
  for (const [name, config] of [
    ['without proxy', {}],
    ['with credential proxy', PROXY],
  ] as const) {
    rows.push(...(await measure(cluster, name, config)));
  }
} finally {
  await cluster.close();
}
console.log('\nmemory of a sidecar (target: 20 MB private, 50 MB resident)');
console.table(rows);
process.exit(0);

/** What every row holds before any code of ours. */
async function bareNode(): Promise<Record<string, string>> {
  const child = spawn(
    process.execPath,
    [...NODE_OPTIONS, '-e', "require('node:tls').createSecureContext(); console.log('up'); setInterval(() => {}, 1e6)"],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  try {
    await firstLine(child);
    return memoryOf(child.pid);
  } finally {
    child.kill('SIGKILL');
  }
}

async function measure(
  { api, egress, trustFile }: TestCluster,
  name: string,
  config: Partial<SidecarConfig>,
): Promise<Record<string, string>[]> {
  const pod = mkdtempSync(join(folder, 'pod-'));
  const [trustFolder, secretsFolder, journalFolder] = [join(pod, 'trust'), join(pod, 'secrets'), join(pod, 'journal')];
  for (const each of [trustFolder, secretsFolder, journalFolder]) mkdirSync(each);
  const address = `127.0.0.1:${egress.port}`;
  for (const [file, text] of [
    ['trust/ca.crt', readFileSync(trustFile, 'utf8')],
    ['trust/trust-domain', TRUST_DOMAIN],
    ['trust/egress', address],
    ['trust/egress-name', 'oz0-egress.oz0-system.svc'],
    ['trust/sandbox.json', JSON.stringify({ closed: ['127.0.0.1:1'], open: address })],
    ['secrets/KEY', 'the-value-of-the-secret-4711'],
    ['token', api.addPod({ ...SEARCH_POD, name: `oz0t-search-${rows.length}`, uid: `pod-${rows.length}` })],
    ['tool.log', ''],
  ] as const) {
    writeFileSync(join(pod, file), text);
  }
  const socketPath = join(pod, 'launcher.sock');
  const options: Omit<SidecarOptions, 'log'> = {
    config: {
      namespace: 'team',
      tool: 'search',
      argv: [process.execPath, join(ROOT, 'test/integration/sidecar/badTool.ts'), join(pod, 'tool.log')],
      env: {},
      timeoutMs: 30_000,
      concurrency: 64,
      maxMessageBytes: 4 * 1024 * 1024,
      ...config,
    },
    trustFolder,
    secretsFolder,
    journalFolder,
    tokenFile: join(pod, 'token'),
    socketPath,
    proxyPort: 0,
    host: '127.0.0.1',
    tlsPort: 0,
    healthPort: 0,
    sandboxTiming: { rounds: 1 },
  };
  const log: string[] = [];
  const sidecar = spawn(process.execPath, [...NODE_OPTIONS, bundle], {
    env: { PATH: process.env['PATH'], BENCH_SIDECAR: JSON.stringify(options) },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  sidecar.stderr?.on('data', (text: Buffer) => log.push(text.toString()));
  let tool: ChildProcess | undefined;
  let peer: Peer | undefined;
  try {
    const { healthPort, tlsPort } = JSON.parse(await firstLine(sidecar));
    tool = spawn(launcher, ['run', socketPath], { env: { PATH: '/usr/bin:/bin', HOME: '/' }, stdio: 'ignore' });
    await untilReady(healthPort, log);
    const ready = memoryOf(sidecar.pid);
    peer = await gatewayTo(tlsPort, `pod-${rows.length}`);
    await call(peer, CALLS);
    const after = memoryOf(sidecar.pid);
    return [
      { sidecar: `${name}, ready`, ...ready },
      { sidecar: `${name}, after ${CALLS} calls`, ...after },
    ];
  } finally {
    await peer?.close();
    for (const child of [tool, sidecar]) child?.kill('SIGKILL');
  }
}

/** Of the kernel: what is private is this process's alone, whatever Node calls it. */
function memoryOf(pid: number | undefined): Record<string, string> {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const megabytes = (...names: string[]): string => {
    const kib = names.map((name) => Number(new RegExp(`^${name}:\\s+(\\d+)`, 'm').exec(rollup)?.[1] ?? Number.NaN));
    return (kib.reduce((sum, each) => sum + each, 0) / 1_024).toFixed(1);
  };
  return { 'private MB': megabytes('Private_Clean', 'Private_Dirty'), 'resident MB': megabytes('Rss') };
}

function firstLine(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = '';
    child.stdout?.on('data', (part: Buffer) => {
      text += part.toString();
      if (text.includes('\n')) resolve(text.slice(0, text.indexOf('\n')));
    });
    child.once('exit', (code) => reject(new Error(`a process ended with ${code}`)));
  });
}

async function untilReady(port: number, log: readonly string[]): Promise<void> {
  const until = performance.now() + READY_MS;
  while ((await fetch(`http://127.0.0.1:${port}/readyz`)).status !== 200) {
    if (performance.now() > until) throw new Error(`the sidecar is not ready:\n${log.join('')}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function gatewayTo(port: number, podUid: string): Promise<Peer> {
  const account = 'oz0-gateway';
  const labels = { 'oz0.ai/component': 'gateway' };
  const token = cluster.api.addPod({ namespace: NAMESPACE, name: account, uid: account, account, labels });
  const holder = startIdentity({
    request: identityRequest({
      route: { kind: 'direct', host: '127.0.0.1', port: cluster.edge.port },
      trustDomain: TRUST_DOMAIN,
      trustBundlePem: async () => readFileSync(cluster.trustFile, 'utf8'),
      token: async () => token,
    }),
    trustDomain: TRUST_DOMAIN,
    log: () => {},
    signal: new AbortController().signal,
  });
  await holder.ready;
  return openPeer({
    address: { host: '127.0.0.1', port },
    expected: { kind: 'tool', namespace: 'team', tool: 'search', podUid },
    trustDomain: TRUST_DOMAIN,
    credentials: holder,
    connections: CALLERS,
  });
}

async function call(peer: Peer, calls: number): Promise<void> {
  const { signal } = new AbortController();
  let sent = 0;
  const caller = async (): Promise<void> => {
    while (sent < calls) {
      sent += 1;
      const outcome = await callHop(
        { dispatcher: peer.dispatcher(), path: '/mcp', client: { name: 'bench', version: '1' } },
        {
          id: sent,
          method: 'tools/call',
          params: { name: 'echo', arguments: { text: 'x'.repeat(1_000) } },
          signal,
          timeoutMs: 30_000,
          maxAnswerBytes: 1024 * 1024,
        },
      );
      if (outcome.kind !== 'result') throw new Error(`a call failed: ${JSON.stringify(outcome)}`);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}
