/**
 * What the gateway costs, as ratios to a bare Node streaming hop in its place, in one run on one machine: added latency
 * (p50, p99) at 1 and 32 callers, calls a second, CPU for each call, memory; both eras, plain and with TLS on both sides. Then the
 * memory of a sidecar (`sidecar.ts`), tunnels through egress (`egress.ts`) and requests with a secret put in (`proxy.ts`).
 *
 *   npm run bench [-- --quick]
 *
 * The measured process has a CPU to itself where there are two; callers and the tool share the other. Rounds alternate
 * between targets, so that a noisy moment hits all of them.
 */
import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { availableParallelism, loadavg } from 'node:os';
import { createTestAuthority, TRUST_DOMAIN } from '../../src/net/testing/authority.ts';
import { type Load, percentile, runLoad, type Target } from './load.ts';
import type { RoleMessage, RoleOptions } from './role.ts';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 2 : 4;
const ROUND_MS = quick ? 500 : 1_200;
const WARM_MS = quick ? 700 : 1_500;
/** So that the compiler has seen all of it. */
const WARM_CALLS = quick ? 3_000 : 10_000;
const CALLERS = [1, 32];

interface Role {
  readonly port: number;
  readonly usage: () => Promise<{ cpuUs: number; rssBytes: number }>;
  readonly stop: () => void;
}

/** Asked before this process is pinned to one. */
const CPUS = availableParallelism();
const pinning = CPUS >= 2;

async function startRole(options: RoleOptions, cpu: number): Promise<Role> {
  const child = fork(new URL('./role.ts', import.meta.url), { stdio: 'inherit' });
  if (pinning && child.pid !== undefined) await pin(child.pid, cpu);
  child.send(options);
  const listening = await answer(child, 'listening');
  return {
    port: listening.port,
    usage: () => {
      child.send('usage');
      return answer(child, 'usage');
    },
    stop: () => child.disconnect(),
  };
}

function answer<K extends RoleMessage['kind']>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<RoleMessage, { kind: K }>> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: RoleMessage): void => {
      if (message.kind !== kind) return;
      child.off('message', onMessage);
      child.off('exit', onExit);
      resolve(message as Extract<RoleMessage, { kind: K }>);
    };
    const onExit = (code: number | null): void => reject(new Error(`a process ended with ${code}`));
    child.on('message', onMessage);
    child.on('exit', onExit);
  });
}

/** Without `taskset` the scheduler decides; figures are then noisier, not wrong. */
function pin(pid: number, cpu: number): Promise<void> {
  return import('node:child_process').then(
    ({ execFile }) =>
      new Promise((resolve) => {
        execFile('taskset', ['-acp', String(cpu), String(pid)], () => resolve());
      }),
  );
}

const ENVELOPE = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
};
const ARGUMENTS = { repo: 'acme/site', number: 7, note: 'y'.repeat(160) };
const COMMON = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  authorization: `Bearer ${'t'.repeat(800)}`,
};

function modernTarget(origin: string, name: string): Target {
  return {
    origin,
    headers: { ...COMMON, 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name, arguments: ARGUMENTS, _meta: ENVELOPE },
    }),
  };
}

async function legacyTarget(origin: string, name: string): Promise<Target> {
  const version = '2025-11-25';
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'bench', version: '1' } };
  const { Agent, request } = await import('undici');
  const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
  const { headers, body } = await request(`${origin}/mcp`, {
    method: 'POST',
    headers: COMMON,
    body: JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params }),
    dispatcher,
  });
  await body.dump();
  await dispatcher.close();
  const session = headers['mcp-session-id'];
  if (typeof session !== 'string') throw new Error('no session');
  return {
    origin,
    headers: { ...COMMON, 'mcp-protocol-version': version, 'mcp-session-id': session },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: ARGUMENTS } }),
  };
}

/** Latencies and rates are the best round's: noise of other work on the machine only ever adds. CPU is of all rounds. */
interface Measured {
  p50: number;
  p99: number;
  rate: number;
  calls: number;
  failures: number;
  cpuUs: number;
}

interface Line {
  readonly name: string;
  readonly target: Target;
  readonly role: Role | undefined;
  readonly byCallers: Map<number, Measured>;
}

async function measure(lines: readonly Line[]): Promise<void> {
  for (const { target } of lines) await runLoad(target, 8, WARM_MS, WARM_CALLS);
  for (const callers of CALLERS) {
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const line of lines) {
        const before = await line.role?.usage();
        const load: Load = await runLoad(line.target, callers, ROUND_MS);
        const after = await line.role?.usage();
        const known = line.byCallers.get(callers);
        line.byCallers.set(callers, {
          p50: Math.min(known?.p50 ?? Number.POSITIVE_INFINITY, percentile(load.latencies, 0.5)),
          p99: Math.min(known?.p99 ?? Number.POSITIVE_INFINITY, percentile(load.latencies, 0.99)),
          rate: Math.max(known?.rate ?? 0, load.calls / load.seconds),
          calls: (known?.calls ?? 0) + load.calls,
          failures: (known?.failures ?? 0) + load.failures,
          cpuUs: (known?.cpuUs ?? 0) + (after?.cpuUs ?? 0) - (before?.cpuUs ?? 0),
        });
      }
    }
  }
}

function report(title: string, lines: readonly Line[]): void {
  console.log(`\n${title}`);
  const table: Record<string, string | number>[] = [];
  for (const callers of CALLERS) {
    const find = (name: string): Measured => {
      const measured = lines.find((line) => line.name === name)?.byCallers.get(callers);
      if (measured === undefined) throw new Error(`nothing measured of ${name}`);
      return measured;
    };
    const direct = find('direct');
    const hop = find('hop');
    for (const { name, role } of lines) {
      const measured = find(name);
      const cpu = measured.cpuUs / measured.calls;
      const against = name.startsWith('gateway');
      const added = (of: 'p50' | 'p99'): string =>
        against ? ((measured[of] - direct[of]) / (hop[of] - direct[of])).toFixed(2) : '';
      table.push({
        callers,
        target: name,
        'p50 ms': measured.p50.toFixed(3),
        'p99 ms': measured.p99.toFixed(3),
        'calls/s': Math.round(measured.rate),
        'CPU µs/call': role === undefined ? '' : cpu.toFixed(1),
        'calls/s/core': role === undefined ? '' : Math.round(1_000_000 / cpu),
        'added p50 ÷ hop': added('p50'),
        'added p99 ÷ hop': added('p99'),
        'CPU ÷ hop': against ? (cpu / (hop.cpuUs / hop.calls)).toFixed(2) : '',
        failed: measured.failures,
      });
    }
  }
  console.table(table);
}

const started = performance.now();
const authority = createTestAuthority();
for (const secure of [false, true]) {
  const toolTls = secure
    ? { tls: authority.issue({ kind: 'tool', namespace: 'bench', tool: 'bench', podUid: 'pod-1' }) }
    : {};
  const gatewayTls = secure ? { tls: authority.issue({ kind: 'gateway', node: 'node1' }) } : {};
  const shown = 'tls' in gatewayTls ? { tls: { key: gatewayTls.tls.keyPem, cert: gatewayTls.tls.certificatePem } } : {};
  const trustDomain = TRUST_DOMAIN;
  if (pinning) await pin(process.pid, 0);
  const tool = await startRole({ role: 'tool', trustDomain, ...toolTls }, 0);
  const hop = await startRole({ role: 'hop', trustDomain, toolPort: tool.port, ...gatewayTls }, 1);
  const gateway = await startRole({ role: 'gateway', trustDomain, toolPort: tool.port, ...gatewayTls }, 1);
  const origin = (port: number): string => `${secure ? 'https' : 'http'}://127.0.0.1:${port}`;
  const line = (name: string, target: Target, role: Role | undefined): Line => ({
    name,
    target,
    role,
    byCallers: new Map(),
  });
  const lines = [
    line('direct', { ...modernTarget(origin(tool.port), 'run'), ...shown }, undefined),
    line('hop', modernTarget(origin(hop.port), 'run'), hop),
    line('gateway 2026-07-28', modernTarget(origin(gateway.port), 'bench__run'), gateway),
    line('gateway 2025-11-25', await legacyTarget(origin(gateway.port), 'bench__run'), gateway),
  ];
  const idle = await gateway.usage();
  await measure(lines);
  report(secure ? 'TLS on both sides, mutual towards the tool' : 'plain HTTP', lines);
  const megabytes = (bytes: number): string => `${Math.round(bytes / 1_048_576)} MB`;
  const busy = await gateway.usage();
  const bare = await hop.usage();
  console.log(
    `memory: gateway ${megabytes(idle.rssBytes)} at first, ${megabytes(busy.rssBytes)} after; hop ${megabytes(bare.rssBytes)}`,
  );
  for (const role of [gateway, hop, tool]) role.stop();
}
for (const part of ['sidecar', 'egress', 'proxy']) {
  console.log(`\n${part}:`);
  const path = new URL(`./${part}.ts`, import.meta.url).pathname;
  execFileSync(process.execPath, [path, ...(quick ? ['--quick'] : [])], { stdio: 'inherit' });
}
console.log(`load of the machine: ${loadavg()[0]?.toFixed(1)} on ${CPUS} CPUs`);
console.log(`${Math.round((performance.now() - started) / 1_000)} s, Node ${process.version}`);
