/** A tool pod on loopback: the real launcher, the sidecar, edge and egress, and a gateway's client before it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SidecarConfig } from '../../../src/domain/config/sidecar.ts';
import type { Identity } from '../../../src/domain/identity/identity.ts';
import { callHop, type Hop, type HopOutcome } from '../../../src/mcp/hop.ts';
import { type AskJournal, askJournal, type JournalAnswer } from '../../../src/mcp/journal.ts';
import type { CallKey } from '../../../src/mcp/wire/callOrders.ts';
import type { JsonObject } from '../../../src/mcp/wire/jsonrpc.ts';
import { startIdentity } from '../../../src/net/identity.ts';
import { identityRequest } from '../../../src/net/identityRequest.ts';
import { openPeer, type Peer } from '../../../src/net/peer.ts';
import { createLog } from '../../../src/sidecar/log.ts';
import type { SandboxTiming } from '../../../src/sidecar/sandbox.ts';
import { type Sidecar, startSidecar } from '../../../src/sidecar/sidecar.ts';
import type { ToolTiming } from '../../../src/sidecar/toolProcess.ts';
import {
  NAMESPACE,
  SEARCH_POD,
  startTestCluster,
  type TestCluster,
  type TestPod,
  TRUST_DOMAIN,
} from '../edge/cluster.ts';

const ROOT = join(import.meta.dirname, '../../..');
export const BAD_TOOL = join(import.meta.dirname, 'badTool.ts');

/** Builds the launcher into a temporary folder. */
export function buildLauncher(): string {
  const folder = mkdtempSync(join(tmpdir(), 'oz0-launcher-'));
  const path = join(folder, 'launcher');
  execFileSync('go', ['build', '-o', path, '.'], {
    cwd: join(ROOT, 'src/launcher'),
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  return path;
}

export interface PodOptions {
  readonly cluster: TestCluster;
  readonly launcher: string;
  readonly modes?: readonly string[];
  readonly config?: Partial<SidecarConfig>;
  readonly tool?: Partial<ToolTiming>;
  readonly sandbox?: Partial<SandboxTiming>;
  /** Started by hand where false. */
  readonly startLauncher?: boolean;
  /** `sandbox.json`; the walls hold unless it says other. */
  readonly walls?: { closed: string[]; open: string };
  /** The node whose gateway alone may call. */
  readonly node?: string;
  /** In place of a folder of the pod's own. */
  readonly journalFolder?: string;
  /** The sidecar is a process of its own, which can be killed. */
  readonly asProcess?: boolean;
}

export interface Pod {
  readonly sidecar: Sidecar;
  readonly lines: string[];
  readonly folder: string;
  /** Lines that the tool wrote down. */
  events(event?: string): string[];
  startLauncher(): ChildProcess;
  setWalls(walls: { closed: string[]; open: string }): void;
  health(path: string): Promise<number>;
  untilReady(): Promise<void>;
  peer(identity?: Identity): Promise<Peer>;
  call(name: string, args?: object, options?: CallOptions): Promise<HopOutcome>;
  callAs(identity: Identity, name: string, args?: object): Promise<HopOutcome>;
  list(): Promise<HopOutcome>;
  hop(): Promise<Hop>;
  ask(question: Partial<AskJournal> & CallKey): Promise<JournalAnswer>;
  /** SIGKILL, and a new one at once. */
  killSidecar(): Promise<void>;
  /** Ends the sidecar and starts it anew on the same socket. */
  restartSidecar(): Promise<void>;
  close(): Promise<void>;
}

interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (params: object) => void;
  readonly meta?: JsonObject;
}

let pods = 0;

export async function startPod(options: PodOptions): Promise<Pod> {
  const { cluster } = options;
  const folder = mkdtempSync(join(tmpdir(), 'oz0-pod-'));
  const trustFolder = join(folder, 'trust');
  mkdirSync(trustFolder);
  const journalFolder = options.journalFolder ?? join(folder, 'journal');
  if (options.journalFolder === undefined) mkdirSync(journalFolder);
  const toolLog = join(folder, 'tool.log');
  writeFileSync(toolLog, '');
  const egress = `127.0.0.1:${cluster.egress.port}`;
  const setWalls = (walls: { closed: string[]; open: string }) =>
    writeFileSync(join(trustFolder, 'sandbox.json'), JSON.stringify(walls));
  writeFileSync(join(trustFolder, 'ca.crt'), readFileSync(cluster.trustFile));
  writeFileSync(join(trustFolder, 'trust-domain'), TRUST_DOMAIN);
  writeFileSync(join(trustFolder, 'egress'), egress);
  writeFileSync(join(trustFolder, 'egress-name'), 'oz0-egress.oz0-system.svc');
  setWalls(options.walls ?? { closed: ['127.0.0.1:1'], open: egress });
  const pod: TestPod = { ...SEARCH_POD, name: `oz0t-search-pod-${++pods}`, uid: `pod-uid-${pods}` };
  const tokenFile = join(folder, 'token');
  writeFileSync(tokenFile, cluster.api.addPod(pod));
  const lines: string[] = [];
  const sidecarOptions = {
    config: {
      namespace: 'team',
      tool: 'search',
      argv: [process.execPath, BAD_TOOL, toolLog, ...(options.modes ?? [])],
      env: { DECLARED: 'yes' },
      timeoutMs: 5_000,
      concurrency: 4,
      maxMessageBytes: 1024 * 1024,
      ...options.config,
    },
    trustFolder,
    tokenFile,
    journalFolder,
    ...(options.node === undefined ? {} : { node: options.node }),
    socketPath: join(folder, 'launcher.sock'),
    host: '127.0.0.1',
    tlsPort: 0,
    healthPort: 0,
    modelPort: 0,
    sandboxTiming: { connectMs: 200, rounds: 3, betweenMs: 20, everyMs: 200, ...options.sandbox },
    toolTiming: {
      backoffFirstMs: 100,
      backoffLongestMs: 400,
      graceMs: 300,
      stopMs: 300,
      drainWindowMs: 200,
      relistMs: 100,
      ...options.tool,
    },
  };
  const start = () =>
    options.asProcess === true
      ? spawnSidecar(sidecarOptions, lines)
      : startSidecar({ ...sidecarOptions, log: createLog((line) => lines.push(line)) });
  let sidecar: Sidecar & { kill?: () => Promise<void> } = await start();
  const launchers: ChildProcess[] = [];
  const peers: Peer[] = [];
  let gateway: Promise<Peer> | undefined;
  const startLauncher = () => {
    const child = spawn(options.launcher, ['run', join(folder, 'launcher.sock')], {
      env: { PATH: '/usr/bin:/bin', HOME: '/', LANG: '', KUBERNETES_SERVICE_HOST: '10.96.0.1', SECRET_OF_NODE: 'x' },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    launchers.push(child);
    return child;
  };
  if (options.startLauncher !== false) startLauncher();

  const self: Pod = {
    get sidecar() {
      return sidecar;
    },
    lines,
    folder,
    events(event) {
      const all = existsSync(toolLog) ? readFileSync(toolLog, 'utf8').trim().split('\n') : [];
      return event === undefined ? all : all.filter((line) => line === event);
    },
    startLauncher,
    setWalls,
    async health(path) {
      return (await fetch(`http://127.0.0.1:${sidecar.healthPort}${path}`)).status;
    },
    async untilReady() {
      const until = Date.now() + 15_000;
      while ((await self.health('/readyz')) !== 200) {
        if (Date.now() > until) throw new Error(`not ready:\n${lines.join('')}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async peer(identity = { kind: 'gateway', node: 'node-1' }) {
      const opened = openPeer({
        address: { host: '127.0.0.1', port: await sidecar.tlsPort },
        expected: { kind: 'tool', namespace: 'team', tool: 'search', podUid: pod.uid },
        trustDomain: TRUST_DOMAIN,
        credentials: await credentialsOf(cluster, identity),
        connections: 64,
      });
      peers.push(opened);
      return opened;
    },
    async call(name, args = {}, more = {}) {
      gateway ??= self.peer();
      return request(await gateway, 'tools/call', { name, arguments: args }, more);
    },
    async callAs(identity, name, args = {}) {
      return request(await self.peer(identity), 'tools/call', { name, arguments: args }, {});
    },
    async hop() {
      gateway ??= self.peer();
      return hopTo(await gateway);
    },
    async list() {
      gateway ??= self.peer();
      return request(await gateway, 'tools/list', {}, {});
    },
    async ask(question) {
      gateway ??= self.peer();
      const hop = hopTo(await gateway);
      const signal = new AbortController().signal;
      return askJournal(hop, { signal, timeoutMs: 10_000, maxAnswerBytes: 8 * 1024 * 1024, ...question });
    },
    async killSidecar() {
      await sidecar.kill?.();
      gateway = undefined;
      sidecar = await start();
    },
    async restartSidecar() {
      await sidecar.close();
      gateway = undefined;
      sidecar = await start();
    },
    async close() {
      for (const peer of peers) await peer.close();
      await sidecar.close();
      for (const child of launchers) child.kill('SIGKILL');
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return self;
}

/** A sidecar in a process of its own, which says where it listens on its stdout. */
async function spawnSidecar(options: object, lines: string[]): Promise<Sidecar & { kill: () => Promise<void> }> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'sidecarProcess.ts'), JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  });
  const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const health = Promise.withResolvers<number>();
  const tls = Promise.withResolvers<number>();
  child.stdout?.setEncoding('utf8').on('data', (text: string) => lines.push(text));
  child.on('message', (told: { health?: number; tls?: number }) => {
    if (told.health !== undefined) health.resolve(told.health);
    if (told.tls !== undefined) tls.resolve(told.tls);
  });
  return {
    healthPort: await health.promise,
    tlsPort: tls.promise,
    status() {
      throw new Error('ask it over its port');
    },
    async close() {
      child.kill('SIGTERM');
      await exited;
    },
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

let ids = 0;
function request(peer: Peer, method: string, params: object, options: CallOptions): Promise<HopOutcome> {
  return callHop(hopTo(peer), {
    id: ++ids,
    method,
    params: { ...params },
    meta: { ...options.meta, ...(options.onProgress === undefined ? {} : { progressToken: ids }) },
    signal: options.signal ?? new AbortController().signal,
    timeoutMs: 20_000,
    maxAnswerBytes: 8 * 1024 * 1024,
    onNotification: (_method, notified) => options.onProgress?.(notified),
  });
}

export function hopTo(peer: Peer): Hop {
  return { dispatcher: peer.dispatcher() as Hop['dispatcher'], path: '/mcp', client: { name: 'test', version: '1' } };
}

/** Credentials of a part of ours, from edge, as it would get them. */
async function credentialsOf(cluster: TestCluster, identity: Identity) {
  const pod: TestPod =
    identity.kind === 'tool'
      ? {
          ...SEARCH_POD,
          name: `oz0t-${identity.tool}-x`,
          account: `oz0t-${identity.tool}`,
          labels: { 'oz0.ai/tool': identity.tool },
        }
      : {
          namespace: NAMESPACE,
          name: `oz0-${identity.kind}-${++pods}`,
          uid: `${identity.kind}-${pods}`,
          account: `oz0-${identity.kind}`,
          ...(identity.kind === 'gateway' ? { node: identity.node } : {}),
          labels: { 'oz0.ai/component': identity.kind },
        };
  const token = cluster.api.addPod(pod);
  const holder = startIdentity({
    request: identityRequest({
      route: { kind: 'direct', host: '127.0.0.1', port: cluster.edge.port },
      trustDomain: TRUST_DOMAIN,
      trustBundlePem: async () => readFileSync(cluster.trustFile, 'utf8'),
      token: async () => token,
    }),
    trustDomain: TRUST_DOMAIN,
    log: () => {},
    signal: AbortSignal.timeout(120_000),
  });
  await holder.ready;
  const held = holder.current();
  holder.close();
  return { current: () => held, onChange: () => () => {} };
}

export { startTestCluster };

/** A TCP server that answers: a wall that is open. */
export async function openAddress(): Promise<{ address: string; close: () => void }> {
  const server: Server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { address: `127.0.0.1:${port}`, close: () => server.close() };
}

export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string,
  ms = 10_000,
): Promise<void> {
  const until = Date.now() + ms;
  while (!(await condition())) {
    if (Date.now() > until) throw new Error(`did not come: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
