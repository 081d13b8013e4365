/**
 * What egress costs, as ratios to a bare CONNECT proxy in its place, in one run on one machine: time to open a tunnel, a round trip
 * within one, throughput, and memory for each of 1,000 tunnels that are held. Both ask for a client's certificate over TLS 1.3; the bare
 * one looks at nothing. Inside is plaintext on a port of its own, so that what is measured is the proxy.
 *
 *   node test/bench/egress.ts [--quick]
 *
 * Rounds alternate between the two, so that a noisy moment hits both. Each is a process of its own.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { type AddressInfo, connect as connectTcp, createServer, type Socket } from 'node:net';
import { loadavg } from 'node:os';
import { connect, type TLSSocket } from 'node:tls';
import { createTestAuthority, TRUST_DOMAIN } from '../../src/net/testing/authority.ts';
import type { EgressRole, EgressRoleMessage } from './egressRole.ts';
import { percentile } from './load.ts';

const quick = process.argv.includes('--quick');
const ROUNDS = quick ? 3 : 6;
const OPENS = quick ? 40 : 100;
const TRIPS = quick ? 500 : 2_000;
const MEGABYTES = quick ? 64 : 256;
const HELD = 1_000;

const authority = createTestAuthority();
const shown = authority.issue({ kind: 'tool', namespace: 'bench', tool: 'bench', podUid: 'u' });
const serving = authority.issue({ kind: 'egress' }, 3_600_000, ['egress.bench']);

/** Echoes what begins with `e`; sends as much as it is asked to after `d<bytes>\n`. */
const host = createServer((socket: Socket) => {
  socket.setNoDelay(true).on('error', () => {});
  socket.once('data', (first: Buffer) => {
    if (first[0] !== 0x64) {
      socket.write(first);
      socket.pipe(socket);
      return;
    }
    let left = Number(first.toString().slice(1).trim());
    const block = Buffer.alloc(64 * 1024, 'x');
    const more = (): void => {
      while (left > 0) {
        left -= block.length;
        if (!socket.write(block)) {
          socket.once('drain', more);
          return;
        }
      }
      socket.end();
    };
    more();
  });
}).listen(0, '127.0.0.9');
await once(host, 'listening');
const hostPort = (host.address() as AddressInfo).port;

interface Proxy {
  readonly name: string;
  readonly port: number;
  readonly usage: () => Promise<{ cpuUs: number; rssBytes: number }>;
  readonly child: ChildProcess;
}

async function start(kind: EgressRole['kind']): Promise<Proxy> {
  const child = fork(new URL('./egressRole.ts', import.meta.url), { stdio: 'inherit' });
  const role: EgressRole = { kind, trustDomain: TRUST_DOMAIN, tls: serving, hostPort };
  child.send(role);
  const { value: port } = await answer(child, 'listening');
  const usage = async () => {
    child.send('usage');
    const { value: rssBytes, cpuUs = 0 } = await answer(child, 'usage');
    return { cpuUs, rssBytes };
  };
  return { name: kind, port, usage, child };
}

async function answer(child: ChildProcess, kind: EgressRoleMessage['kind']): Promise<EgressRoleMessage> {
  const [message]: [EgressRoleMessage] = (await once(child, 'message')) as [EgressRoleMessage];
  if (message.kind !== kind) throw new Error(`expected ${kind}`);
  return message;
}

/** From addresses in turn, as pods have: one alone is held to a rate of connections. */
let turn = 0;
async function open({ port }: Proxy): Promise<TLSSocket> {
  turn = (turn + 1) % 200;
  const over = connectTcp({ host: '127.0.0.1', port, localAddress: `127.0.1.${turn + 1}`, noDelay: true });
  const socket = connect({
    socket: over,
    ca: authority.authority.certificatePem,
    servername: 'egress.bench',
    cert: shown.certificatePem,
    key: shown.keyPem,
  });
  await once(socket, 'secureConnect');
  const target = `host.example.com:${hostPort}`;
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n`);
  const [head] = await once(socket, 'data');
  if (!String(head).startsWith('HTTP/1.1 200')) throw new Error(String(head).slice(0, 400));
  return socket.on('error', () => {});
}

interface Measured {
  readonly openMs: number[];
  readonly tripMs: number[];
  readonly megabytesPerSecond: number[];
  cpuUs: number;
}

async function round(proxy: Proxy, into: Measured): Promise<void> {
  for (let i = 0; i < OPENS; i++) {
    const started = performance.now();
    const socket = await open(proxy);
    into.openMs.push(performance.now() - started);
    socket.destroy();
  }
  const echo = await open(proxy);
  const message = Buffer.alloc(512, 'e');
  for (let i = 0; i < TRIPS; i++) {
    const started = performance.now();
    echo.write(message);
    let got = 0;
    while (got < message.length) got += ((await once(echo, 'data')) as [Buffer])[0].length;
    into.tripMs.push(performance.now() - started);
  }
  echo.destroy();
  const before = await proxy.usage();
  const down = await open(proxy);
  const started = performance.now();
  down.write(`d${MEGABYTES * 2 ** 20}\n`);
  down.resume();
  await once(down, 'close');
  into.megabytesPerSecond.push(MEGABYTES / ((performance.now() - started) / 1_000));
  into.cpuUs += (await proxy.usage()).cpuUs - before.cpuUs;
}

/** Resident memory for each tunnel, all of them held open and used once. */
async function hold(proxy: Proxy): Promise<{ kilobytes: number; rssMegabytes: number }> {
  const before = await proxy.usage();
  const sockets: TLSSocket[] = [];
  for (let i = 0; i < HELD; i += 50)
    sockets.push(...(await Promise.all(Array.from({ length: 50 }, () => open(proxy)))));
  for (const socket of sockets) socket.write('e');
  await Promise.all(sockets.map((socket) => once(socket, 'data')));
  const after = await proxy.usage();
  for (const socket of sockets) socket.destroy();
  return {
    kilobytes: Math.round((after.rssBytes - before.rssBytes) / 1_024 / HELD),
    rssMegabytes: Math.round(after.rssBytes / 2 ** 20),
  };
}

const started = performance.now();
const proxies = [await start('bare'), await start('egress')];
const figures = new Map<Proxy, Measured>();
for (const proxy of proxies) figures.set(proxy, { openMs: [], tripMs: [], megabytesPerSecond: [], cpuUs: 0 });
for (const proxy of proxies) await round(proxy, { openMs: [], tripMs: [], megabytesPerSecond: [], cpuUs: 0 });
for (let i = 0; i < ROUNDS; i++) for (const [proxy, measured] of figures) await round(proxy, measured);

type Row = Record<string, string | number>;
const rows: Row[] = [];
for (const [proxy, { openMs, tripMs, megabytesPerSecond, cpuUs }] of figures) {
  const held = await hold(proxy);
  for (const times of [openMs, tripMs]) times.sort((a, b) => a - b);
  rows.push({
    proxy: proxy.name,
    'open p50 ms': percentile(openMs, 0.5),
    'open p99 ms': percentile(openMs, 0.99),
    'trip p50 ms': percentile(tripMs, 0.5),
    'trip p99 ms': percentile(tripMs, 0.99),
    'MB/s (best)': Math.max(...megabytesPerSecond),
    'CPU ms/MB': cpuUs / 1_000 / (ROUNDS * MEGABYTES),
    [`KB/tunnel of ${HELD}`]: held.kilobytes,
    'MB then': held.rssMegabytes,
  });
}
const [bare, own] = rows;
console.table(
  [...rows, ratio(own, bare)].map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, typeof value === 'number' ? Number(value.toFixed(3)) : value]),
    ),
  ),
);
console.log(
  `load of the machine: ${loadavg()[0]?.toFixed(1)}; ${Math.round((performance.now() - started) / 1_000)} s, Node ${process.version}`,
);
for (const { child } of proxies) child.disconnect();
host.close();
process.exit(0);

function ratio(a: Row = {}, b: Row = {}): Row {
  return Object.fromEntries(
    Object.entries(a).map(([name, value]) => [
      name,
      typeof value === 'number' ? value / Number(b[name]) : 'egress ÷ bare',
    ]),
  );
}
