/**
 * What the credential proxy costs, as ratios to a bare CONNECT proxy in its place, in one run on one machine: latency and rate of
 * requests with an injected secret over kept connections, the cost of a connection of its own, and memory over 100,000
 * requests. A bare proxy looks into nothing: TLS is ended twice here, and once there.
 *
 *   node test/bench/proxy.ts [--quick]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { ProxyAgent } from 'undici';
import { percentile } from './load.ts';
import { HOST, type ProxyRoleMessage, type ProxyRoleOptions } from './proxyRole.ts';

const quick = process.argv.includes('--quick');
const ROUND_MS = quick ? 500 : 2_000;
const ROUNDS = quick ? 2 : 3;
const MEMORY_REQUESTS = quick ? 10_000 : 100_000;
const MEMORY_MS = quick ? 10_000 : 120_000;

type Listening = Extract<ProxyRoleMessage, { kind: 'listening' }>;
type Usage = Extract<ProxyRoleMessage, { kind: 'usage' }>;
interface Role extends Listening {
  readonly usage: () => Promise<Usage>;
  readonly stop: () => void;
}

// Bundled, as the sidecar is: what is not in its bundle costs it no memory.
const bundle = join(tmpdir(), `oz0-proxy-role-${process.pid}.mjs`);
await build({
  entryPoints: [new URL('./proxyRole.ts', import.meta.url).pathname],
  outfile: bundle,
  bundle: true,
  platform: 'node',
  format: 'esm',
  target: 'node24',
  logLevel: 'warning',
});

async function startRole(options: ProxyRoleOptions): Promise<Role> {
  const child = fork(bundle, { stdio: 'inherit', execArgv: ['--max-semi-space-size=1'] });
  child.send(options);
  const listening = await answer(child, 'listening');
  return {
    ...listening,
    usage: () => {
      child.send('usage');
      return answer(child, 'usage');
    },
    stop: () => child.disconnect(),
  };
}

function answer<K extends ProxyRoleMessage['kind']>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<ProxyRoleMessage, { kind: K }>> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: ProxyRoleMessage): void => {
      if (message.kind !== kind) return;
      child.off('message', onMessage);
      child.off('exit', onExit);
      resolve(message as Extract<ProxyRoleMessage, { kind: K }>);
    };
    const onExit = (code: number | null): void => reject(new Error(`a process ended with ${code}`));
    child.on('message', onMessage);
    child.on('exit', onExit);
  });
}

interface Way {
  readonly name: string;
  readonly role: Role;
  readonly agent: () => ProxyAgent;
  readonly headers: Readonly<Record<string, string>>;
}

interface Measured {
  readonly latencies: readonly number[];
  readonly rate: number;
  readonly cpuUs: number;
  readonly failures: number;
}

/** @param fresh a connection for each request */
async function load(
  way: Way,
  callers: number,
  ms: number,
  fresh = false,
  most = Number.POSITIVE_INFINITY,
): Promise<Measured> {
  const shared = way.agent();
  const latencies: number[] = [];
  let failures = 0;
  let count = 0;
  const before = await way.role.usage();
  const begun = performance.now();
  const caller = async (): Promise<void> => {
    while (performance.now() - begun < ms && count < most) {
      count++;
      const agent = fresh ? way.agent() : shared;
      const sent = performance.now();
      try {
        const { statusCode, body } = await agent.request({
          origin: `https://${HOST}`,
          path: '/v1',
          method: 'GET',
          headers: way.headers,
        });
        await body.dump();
        if (statusCode !== 200) failures++;
      } catch {
        failures++;
      }
      latencies.push(performance.now() - sent);
      if (fresh) await agent.close();
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const seconds = (performance.now() - begun) / 1_000;
  const after = await way.role.usage();
  await shared.close();
  latencies.sort((a, b) => a - b);
  return {
    latencies,
    rate: latencies.length / seconds,
    cpuUs: (after.cpuUs - before.cpuUs) / latencies.length,
    failures,
  };
}

const host = await startRole({ role: 'host' });
const egress = await startRole({ role: 'egress', hostPort: host.port });
const bare = await startRole({ role: 'bare', egressPort: egress.port });
const proxy = await startRole({ role: 'proxy', egressPort: egress.port, upstreamCa: host.ca ?? '' });
const wayTo = (name: string, role: Role, ca: string, token: string): Way => ({
  name,
  role,
  agent: () => new ProxyAgent({ uri: `http://127.0.0.1:${role.port}`, requestTls: { ca } }),
  headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
});
const ways = [
  wayTo('bare CONNECT', bare, host.ca ?? '', 'x'.repeat(40)),
  wayTo('credential proxy', proxy, proxy.ca ?? '', proxy.placeholder ?? ''),
];
const idle = await proxy.usage();

const rows: Record<string, string | number>[] = [];
for (const way of ways) await load(way, 8, ROUND_MS);
for (const [what, callers, fresh] of [
  ['kept connections', 1, false],
  ['kept connections', 16, false],
  ['a connection each', 1, true],
] as const) {
  const best = new Map<string, Measured>();
  for (let round = 0; round < ROUNDS; round++) {
    for (const way of ways) {
      const measured = await load(way, callers, ROUND_MS, fresh);
      const known = best.get(way.name);
      // Noise of other work on the machine only ever adds.
      if (known === undefined || measured.rate > known.rate) best.set(way.name, measured);
    }
  }
  const base = best.get('bare CONNECT');
  for (const { name } of ways) {
    const measured = best.get(name);
    if (measured === undefined || base === undefined) continue;
    const p50 = percentile(measured.latencies, 0.5);
    rows.push({
      what,
      callers,
      way: name,
      'p50 ms': p50.toFixed(3),
      'p99 ms': percentile(measured.latencies, 0.99).toFixed(3),
      'requests/s': Math.round(measured.rate),
      'CPU µs/request': measured.cpuUs.toFixed(1),
      'p50 ÷ bare': (p50 / percentile(base.latencies, 0.5)).toFixed(2),
      'rate ÷ bare': (measured.rate / base.rate).toFixed(2),
      failed: measured.failures,
    });
  }
}
console.table(rows);

const [, injecting] = ways;
if (injecting !== undefined) {
  const megabytes = (bytes: number): string => `${(bytes / 1_048_576).toFixed(1)} MB`;
  const parts: string[] = [`idle ${megabytes(idle.rssBytes)} (private ${megabytes(idle.privateBytes)})`];
  let done = 0;
  const until = performance.now() + MEMORY_MS;
  for (let part = 0; part < 5 && performance.now() < until; part++) {
    const { latencies } = await load(injecting, 16, until - performance.now(), false, MEMORY_REQUESTS / 5);
    done += latencies.length;
    const { rssBytes, privateBytes } = await proxy.usage();
    parts.push(`after ${done}: ${megabytes(rssBytes)} (private ${megabytes(privateBytes)})`);
  }
  console.log(`memory of the bundled proxy: ${parts.join('; ')}`);
}
for (const role of [proxy, bare, egress, host]) role.stop();
rmSync(bundle, { force: true });
