/** Hosts resolved by a DNS server that lies, judged, and dialled for real: what connects is what was judged, or nothing. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type AddressVerdict, judgeAddress, NO_NETWORKS } from '../../../src/domain/egress/judgeAddress.ts';
import { dial } from '../../../src/net/dial.ts';
import { dialHost } from '../../../src/net/dialHost.ts';
import { createResolver, type Resolve } from '../../../src/net/resolve.ts';
import { type DnsRecord, fixedZone, type LyingDns, startLyingDns, type Zone } from './lyingDns.ts';

let dns: LyingDns;
/** One for all names, as in the process. */
let shared: Resolve;
/** Listens on 127.0.0.9 (taken for public here) and on 127.0.0.1 (which it is not). */
let good: Server;
let evil: Server;
let port: number;
const arrivals: string[] = [];
const never = new AbortController().signal;

async function listen(server: Server, host: string, at: number): Promise<number> {
  server.listen(at, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

beforeAll(async () => {
  dns = await startLyingDns();
  shared = createResolver({ servers: [dns.server], timeoutMs: 1_000 });
  const accept = (where: string) => (socket: Socket) => {
    arrivals.push(where);
    socket.on('error', () => {}).end(where);
  };
  good = createServer(accept('good'));
  port = await listen(good, '127.0.0.9', 0);
  evil = createServer(accept('evil'));
  await listen(evil, '127.0.0.1', port);
});
afterAll(async () => {
  good.close();
  evil.close();
  await dns.close();
});
beforeEach(() => {
  dns.asked.length = 0;
  arrivals.length = 0;
});

/** The real judgement, but for one range of loopback that stands for the internet. */
function judge(address: string): AddressVerdict {
  if (address.startsWith('127.0.0.9') || address === '127.0.0.8')
    return { kind: 'dial', address, class: 'public', opened: false };
  return judgeAddress(address, { namespace: 'team', port }, NO_NETWORKS);
}

async function reach(host: string, zone?: Zone, more: { timeoutMs?: number; dnsMs?: number } = {}) {
  if (zone !== undefined) dns.zone = zone;
  const resolve = more.dnsMs === undefined ? shared : createResolver({ servers: [dns.server], timeoutMs: more.dnsMs });
  const result = await dialHost({
    target: { kind: 'name', host, port },
    judge,
    resolve,
    signal: never,
    timeoutMs: more.timeoutMs ?? 1_000,
    fallbackMs: 50,
  });
  if (result.kind === 'connected') {
    const { socket, ...rest } = result;
    let said = '';
    socket.setEncoding('utf8').on('data', (part) => {
      said += part;
    });
    // Half-open: this side ends when the other has.
    socket.once('end', () => socket.end());
    await once(socket, 'close');
    return { ...rest, said };
  }
  return result;
}

const a = (...values: string[]): DnsRecord[] => values.map((value) => ({ type: 'A', value }));
const aaaa = (...values: string[]): DnsRecord[] => values.map((value) => ({ type: 'AAAA', value }));
const both =
  (four: DnsRecord[], six: DnsRecord[] = []): Zone =>
  ({ type }) => ({ records: type === 'AAAA' ? six : four });

describe('[N08] [case 103] check the name, connect to what was checked', () => {
  test('one question for each family, and the address it gave', async () => {
    expect(await reach('host.test', fixedZone({ 'host.test': ['127.0.0.9'] }))).toMatchObject({
      kind: 'connected',
      address: '127.0.0.9',
      said: 'good',
    });
    expect(dns.asked.map(({ name, type }) => `${name} ${type}`).sort()).toEqual(['host.test A', 'host.test AAAA']);
  });

  test.each([0, 1])('rebinding with TTL %i: the second answer is never asked for', async (ttl) => {
    const zone: Zone = ({ type, before }) =>
      type === 'A' ? { records: [{ type: 'A', value: before === 0 ? '127.0.0.9' : '127.0.0.1', ttl }] } : {};
    expect(await reach('rebind.test', zone)).toMatchObject({ kind: 'connected', said: 'good' });
    expect(dns.asked).toHaveLength(2);
    // A new connection asks anew, and is refused by what it is told then.
    expect(await reach('rebind.test')).toMatchObject({ kind: 'address-refused', class: 'loopback' });
    expect(arrivals).toEqual(['good']);
  });

  const fifty = Array.from({ length: 49 }, (_, i) => `127.0.0.9${String(i % 10)}`);
  test.each<[string, Zone, string]>([
    ['public, then private', both(a('127.0.0.9', '10.0.0.1')), 'private'],
    ['private, then public', both(a('10.0.0.1', '127.0.0.9')), 'private'],
    ['public, then loopback', both(a('127.0.0.9', '127.0.0.1')), 'loopback'],
    ['metadata', both(a('127.0.0.9', '169.254.169.254')), 'metadata'],
    ['Azure’s metadata', both(a('168.63.129.16')), 'metadata'],
    ['AAAA that is mapped', both(a('127.0.0.9'), aaaa('::ffff:7f00:1')), 'embedded-ipv4'],
    ['AAAA that is compatible', both(a('127.0.0.9'), aaaa('::7f00:1')), 'embedded-ipv4'],
    ['AAAA of NAT64', both(a('127.0.0.9'), aaaa('64:ff9b::a9fe:a9fe')), 'embedded-ipv4'],
    ['AAAA that is unique local', both(a('127.0.0.9'), aaaa('fd00::1')), 'private'],
    ['AAAA that is this host', both(a('127.0.0.9'), aaaa('::1')), 'loopback'],
    ['AAAA that is nowhere', both(a('127.0.0.9'), aaaa('::')), 'this-host'],
    ['this host', both(a('0.0.0.0')), 'this-host'],
    ['fifty with one bad', both(a(...fifty.slice(0, 25), '192.168.1.1', ...fifty.slice(25))), 'private'],
    [
      'a CNAME to a private address',
      ({ type, name }) =>
        type === 'A'
          ? {
              records: [
                { type: 'CNAME', value: 'inside.test' },
                { name: 'inside.test', type: 'A', value: '10.9.9.9' },
              ],
            }
          : { records: [{ type: 'CNAME', name, value: 'inside.test' }] },
      'private',
    ],
    [
      'a further address under another name',
      both([...a('127.0.0.9'), { name: 'other.test', type: 'A', value: '10.0.0.1' }]),
      'private',
    ],
  ])('refused: %s', async (_name, zone, expected) => {
    expect(await reach('bad.test', zone)).toMatchObject({ kind: 'address-refused', class: expected });
    expect(arrivals).toEqual([]);
  });

  test('a chain of CNAMEs to a public address is followed; hints of other records are not asked for', async () => {
    const chain: DnsRecord[] = Array.from({ length: 10 }, (_, i) => ({
      ...(i === 0 ? {} : { name: `c${i}.test` }),
      type: 'CNAME',
      value: `c${i + 1}.test`,
    }));
    const zone: Zone = ({ type }) => ({
      records: [...chain, ...(type === 'A' ? [{ name: 'c10.test', type: 'A' as const, value: '127.0.0.9' }] : [])],
      additional: [{ type: 'HTTPS', value: '10.0.0.1' }],
    });
    expect(await reach('chain.test', zone)).toMatchObject({ kind: 'connected', said: 'good' });
    expect(dns.asked.map(({ type }) => type).sort()).toEqual(['A', 'AAAA']);
  });

  test.each<[string, Zone, string]>([
    ['NXDOMAIN', () => ({ rcode: 3 }), 'no-such-name'],
    ['an empty answer', () => ({}), 'no-such-name'],
    ['a loop of CNAMEs', ({ name }) => ({ records: [{ type: 'CNAME', value: name }] }), 'no-such-name'],
    ['SERVFAIL', () => ({ rcode: 2 }), 'dns-failed'],
    ['REFUSED', () => ({ rcode: 5 }), 'dns-failed'],
    ['one family that fails', ({ type }) => (type === 'A' ? { records: a('127.0.0.9') } : { rcode: 2 }), 'dns-failed'],
    ['no answer', () => undefined, 'dns-timeout'],
    ['no answer for one family', ({ type }) => (type === 'A' ? { records: a('127.0.0.9') } : undefined), 'dns-timeout'],
    ['the wrong id', () => ({ wrongId: true, records: a('127.0.0.9') }), 'dns-timeout'],
    ['an answer to another question', () => ({ question: 'other.test', records: a('127.0.0.9') }), 'dns-timeout'],
    ['100 addresses', both(a(...Array.from({ length: 100 }, () => '127.0.0.9'))), 'too-many-addresses'],
  ])('%s', async (_name, zone, expected) => {
    const started = performance.now();
    expect((await reach('odd.test', zone, { dnsMs: 400 })).kind).toBe(expected);
    expect(performance.now() - started).toBeLessThan(8_000);
    expect(arrivals).toEqual([]);
  });

  test('what does not fit a datagram is asked for over TCP, and judged all the same', async () => {
    const long = a(...Array.from({ length: 60 }, (_, i) => `127.0.0.9${i % 10}`));
    const zone =
      (bad: string): Zone =>
      ({ type, over }) => {
        if (type !== 'A') return {};
        return over === 'udp' ? { truncated: true } : { records: [...long, ...a(bad)] };
      };
    expect(await reach('long.test', zone('10.0.0.1'))).toMatchObject({ kind: 'address-refused', class: 'private' });
    expect(dns.asked.some(({ over }) => over === 'tcp')).toBe(true);
  });

  test('names are asked for as they are: no search list', async () => {
    dns.zone = ({ name }) => (name === 'a.b' ? { rcode: 3 } : { records: a('127.0.0.9') });
    expect((await reach('a.b')).kind).toBe('no-such-name');
    // A late one of the test before is not ours.
    const names = dns.asked.map(({ name }) => name).filter((name) => name.startsWith('a.b'));
    expect(new Set(names)).toEqual(new Set(['a.b']));
  });

  test.each(['127.0.0.1', '169.254.169.254', '10.0.0.1', '::ffff:7f00:1', '::1', '127.1'])(
    'a literal takes the same path: %s',
    async (host) => {
      const result = await dialHost({
        target: { kind: 'address', host, port },
        judge: (address) => judgeAddress(address, { namespace: 'team', port }, NO_NETWORKS),
        resolve: () => Promise.reject(new Error('never asked')),
        signal: never,
      });
      expect(result.kind).toBe('address-refused');
      expect(arrivals).toEqual([]);
    },
  );
});

describe('dialling', () => {
  test('the next address is tried when one refuses', async () => {
    expect(await reach('two.test', both(a('127.0.0.8', '127.0.0.9')))).toMatchObject({
      address: '127.0.0.9',
      said: 'good',
    });
  });

  test('all refuse', async () => {
    expect(await reach('closed.test', both(a('127.0.0.8')))).toEqual({ kind: 'connect-failed', code: 'ECONNREFUSED' });
  });

  test('nobody answers: bounded, and a signal ends it at once', async () => {
    // Of a documentation range: a packet there is lost or refused, wherever the test runs.
    const black = { addresses: ['192.0.2.1'], port, timeoutMs: 200, signal: never };
    const started = performance.now();
    expect(['timeout', 'failed']).toContain((await dial(black)).kind);
    expect(performance.now() - started).toBeLessThan(8_000);
    const stop = new AbortController();
    const running = dial({ ...black, timeoutMs: 10_000, signal: stop.signal });
    stop.abort();
    expect(['aborted', 'failed']).toContain((await running).kind);
  });

  test('[I5] a name is not dialled, whoever passes it', async () => {
    await expect(dial({ addresses: ['localhost'], port, signal: never })).rejects.toThrow(/only addresses/);
  });
});
