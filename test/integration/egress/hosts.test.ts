/** The hosts of a tool, through the whole of egress with real sockets: who came to the other side is what counts. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { classifyAddress } from '../../../src/domain/egress/address.ts';
import { readAllowNet } from '../../../src/domain/egress/allowNet.ts';
import { ask, closes, node, say, secure, startWorld, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await startWorld({ toolLimits: { names: 2 } });
});
afterAll(() => world.close());

const HOSTS = (port: number, raw: number) => [
  `api.example.com:${port}`,
  `*.cdn.example.com:${port}`,
  `raw.example.com:${raw}`,
  ...['inside', 'half', 'loop', 'imds', 'wire', 'mapped', 'node', 'apiserver', 'service', 'pod', 'closed', 'none'].map(
    (name) => `${name}.example.com:${raw}`,
  ),
  `127.0.0.1:${raw}`,
  `169.254.169.254:80`,
  `[::ffff:7f00:1]:${raw}`,
  `10.0.0.4:10250`,
];

beforeEach(() => {
  world.synced = true;
  world.setHosts('search', HOSTS(world.web.port, world.raw.port));
  world.setHosts('mail', []);
  world.dns.asked.length = 0;
  world.web.names.length = 0;
  world.raw.arrivals.length = 0;
});

const api = () => `api.example.com:${world.web.port}`;
const logged = () => world.cluster.egress.shell.lines.join('');

describe('[N08] [S05] a host that the tool names', () => {
  test('is reached at the address that was checked, while TLS verifies the name', async () => {
    const { status, socket } = await ask(world, api());
    expect(status).toBe(200);
    const inner = await secure(world, socket, 'api.example.com');
    expect(await say(inner, 'hello')).toBe('HELLO');
    inner.destroy();
    expect(world.web.names).toEqual(['api.example.com']);
    expect(world.dns.asked.map(({ name, type }) => `${name} ${type}`).sort()).toEqual([
      'api.example.com A',
      'api.example.com AAAA',
    ]);
  });

  test('in capitals, and with a dot at its end', async () => {
    const { status, socket } = await ask(world, `API.Example.COM.:${world.web.port}`);
    expect(status).toBe(200);
    (await secure(world, socket, 'api.example.com')).destroy();
  });

  test('under a wildcard, for one label, and for so many names only', async () => {
    const through = async (host: string) => {
      const { status, body, socket } = await ask(world, `${host}:${world.web.port}`);
      if (status === 200) (await secure(world, socket, host)).destroy();
      return body.error?.code ?? status;
    };
    expect(await through('a.cdn.example.com')).toBe(200);
    expect(await through('b.cdn.example.com')).toBe(200);
    expect(await through('a.cdn.example.com')).toBe(200);
    expect(await through('c.cdn.example.com')).toBe('too-many-names');
    expect(await through('x.a.cdn.example.com')).toBe('host-not-allowed');
  });

  test('a hello that comes byte by byte', async () => {
    const { socket } = await ask(world, api());
    const slow = Object.assign(socket, { setNoDelay: () => socket });
    const inner = await secure(world, slow, 'api.example.com', { maxVersion: 'TLSv1.2' });
    expect(await say(inner, 'x')).toBe('X');
    inner.destroy();
  });

  test('on a port that is not 443 the other side may speak first, and something else than TLS', async () => {
    const { socket } = await ask(world, `raw.example.com:${world.raw.port}`);
    const [greeting] = await once(socket, 'data');
    expect(String(greeting)).toBe('220 hello\r\n');
    expect(await say(socket, 'EHLO me\r\n')).toBe('EHLO me\r\n');
    socket.destroy();
  });

  test('a lot of bytes, both ways, whole', async () => {
    const { socket } = await ask(world, `raw.example.com:${world.raw.port}`);
    const size = 8 * 1024 * 1024;
    let got = 0;
    socket.on('data', (part: Buffer) => {
      got += part.length;
    });
    socket.end(Buffer.alloc(size, 'a'));
    await once(socket, 'close');
    expect(got).toBe(size + '220 hello\r\n'.length);
  });
});

describe('[N08] [N09] [case 75] [case 100] [case 103] [case 104] refused, and nobody was dialled', () => {
  test.each<[string, (ports: { web: number; raw: number }) => string, number, string, string?]>([
    ['a host that is not named', () => 'other.example.com:443', 403, 'host-not-allowed'],
    ['a host that is named, with another port', () => 'api.example.com:443', 403, 'port-not-allowed'],
    ['what ends like it', ({ web }) => `badapi.example.com:${web}`, 403, 'host-not-allowed'],
    ['what begins like it', ({ web }) => `api.example.com.evil.test:${web}`, 403, 'host-not-allowed'],
    ['below it', ({ web }) => `x.api.example.com:${web}`, 403, 'host-not-allowed'],
    ['its look-alike', ({ web }) => `xn--pi-7kc.example.com:${web}`, 403, 'host-not-allowed'],
    ['ports of mail, shells and names', () => 'api.example.com:25', 403, 'port-not-allowed'],
    ['an address that is not named', ({ raw }) => `127.0.0.9:${raw}`, 403, 'host-not-allowed'],
    ['loopback, though named', ({ raw }) => `127.0.0.1:${raw}`, 403, 'address-refused', 'loopback'],
    [
      'loopback as a mapped address, though named',
      ({ raw }) => `[::ffff:127.0.0.1]:${raw}`,
      403,
      'address-refused',
      'embedded-ipv4',
    ],
    ['metadata, though named', () => '169.254.169.254:80', 403, 'address-refused', 'metadata'],
    ['the kubelet, though named', () => '10.0.0.4:10250', 403, 'address-refused', 'cluster-node'],
    ['a name of a private address', ({ raw }) => `inside.example.com:${raw}`, 403, 'address-refused', 'private'],
    ['a name with one bad address', ({ raw }) => `half.example.com:${raw}`, 403, 'address-refused', 'loopback'],
    ['a name of loopback', ({ raw }) => `loop.example.com:${raw}`, 403, 'address-refused', 'loopback'],
    ['a name of metadata', ({ raw }) => `imds.example.com:${raw}`, 403, 'address-refused', 'metadata'],
    ['a name of metadata in public space', ({ raw }) => `wire.example.com:${raw}`, 403, 'address-refused', 'metadata'],
    ['a name with a mapped address', ({ raw }) => `mapped.example.com:${raw}`, 403, 'address-refused', 'embedded-ipv4'],
    ['a name of a node', ({ raw }) => `node.example.com:${raw}`, 403, 'address-refused', 'cluster-node'],
    ['a name of the API server', ({ raw }) => `apiserver.example.com:${raw}`, 403, 'address-refused', 'cluster-api'],
    ['a name of a Service', ({ raw }) => `service.example.com:${raw}`, 403, 'address-refused', 'cluster-service'],
    ['a name of a pod', ({ raw }) => `pod.example.com:${raw}`, 403, 'address-refused', 'cluster-pod'],
    ['a name that is none', ({ raw }) => `none.example.com:${raw}`, 502, 'no-such-name'],
    ['a host that is closed', ({ raw }) => `closed.example.com:${raw}`, 502, 'connect-failed'],
    ['egress itself', () => 'oz0-egress.oz0-system.svc:443', 403, 'host-not-allowed'],
    ['the API server’s name', () => 'kubernetes.default.svc:443', 403, 'host-not-allowed'],
    ['shorthand of loopback', ({ raw }) => `127.1:${raw}`, 400, 'bad-request'],
    ['loopback as a number', ({ raw }) => `2130706433:${raw}`, 400, 'bad-request'],
    ['loopback with a dot', ({ raw }) => `127.0.0.1.:${raw}`, 400, 'bad-request'],
    ['a user before the host', ({ web }) => `me@api.example.com:${web}`, 400, 'bad-request'],
    ['two dots at the end', ({ web }) => `api.example.com..:${web}`, 400, 'bad-request'],
    ['no port', () => 'api.example.com', 400, 'bad-request'],
  ])('%s', async (_name, target, status, code, what) => {
    const answer = await ask(world, target({ web: world.web.port, raw: world.raw.port }));
    expect([answer.status, answer.body.error?.code, answer.body.error?.class]).toEqual([status, code, what]);
    expect(answer.head).toMatch(/^proxy-status: oz0-egress; error=[a-z_]+; details="[a-z-]+(: [a-z0-9-]+)?"\r$/m);
    expect(world.raw.arrivals).toEqual([]);
    expect(world.web.names).toEqual([]);
  });

  test('a second Host', async () => {
    expect((await ask(world, api(), world.search, 'Host: evil.example.com\r\n')).status).toBe(400);
  });

  test('DNS that fails, and DNS that is silent', async () => {
    const { zone } = world.dns;
    world.dns.zone = () => ({ rcode: 2 });
    expect(await ask(world, api())).toMatchObject({ status: 502, body: { error: { code: 'dns-failed' } } });
    world.dns.zone = () => undefined;
    expect(await ask(world, api())).toMatchObject({ status: 504, body: { error: { code: 'dns-timeout' } } });
    world.dns.zone = zone;
  });

  test('the refusal says what to write, and where; an address is not told', async () => {
    const { body } = await ask(world, 'other.example.com:8443');
    expect(body.error?.message).toBe(
      'other.example.com is not among the hosts of Tool team/search: add "other.example.com:8443" to its spec.hosts',
    );
    const inside = await ask(world, `inside.example.com:${world.raw.port}`);
    expect(inside.body.error?.message).toMatch(/private address .*connectAllowNet/);
    expect(JSON.stringify(inside.body)).not.toContain('10.0.0.77');
  });
});

describe('[S05] who asks', () => {
  test('nobody gets nothing', async () => {
    expect(await ask(world, api(), {})).toMatchObject({ status: 403, body: { error: { code: 'no-identity' } } });
  });
  test('another tool does not get this tool’s hosts', async () => {
    expect(await ask(world, api(), world.mail)).toMatchObject({
      status: 403,
      body: { error: { code: 'host-not-allowed' } },
    });
  });
  test('a tool that is no more gets nothing', async () => {
    world.removeTool('mail');
    expect(await ask(world, api(), world.mail)).toMatchObject({ body: { error: { code: 'no-such-tool' } } });
  });
});

describe('[case 104] what is said first within the tunnel', () => {
  async function said(servername: string | undefined, options: object = {}, target = api()): Promise<string> {
    const before = world.web.bytes();
    const { socket } = await ask(world, target);
    const failed = await secure(world, socket, servername ?? '', options).then(
      () => 'connected',
      (error: unknown) => (error instanceof Error && 'code' in error ? String(error.code) : String(error)),
    );
    expect(await closes(socket)).toBe(true);
    expect(world.web.bytes() - before).toBe(0);
    return failed;
  }

  test('another server’s name: the client is told by a TLS alert, and the other side sees no byte', async () => {
    expect(await said('evil.example.com')).toBe('ERR_SSL_TLSV1_UNRECOGNIZED_NAME');
    await expect.poll(logged).toContain('"reason":"other-server-name"');
  });
  test('no name', async () => {
    expect(await said('', { host: undefined })).toBe('ERR_SSL_TLSV1_UNRECOGNIZED_NAME');
  });
  test('TLS 1.2, another name', async () => {
    expect(await said('evil.example.com', { maxVersion: 'TLSv1.2' })).not.toBe('connected');
  });
});

describe('a change ends what it no longer allows', () => {
  async function live() {
    const { socket } = await ask(world, api());
    const inner = await secure(world, socket, 'api.example.com');
    expect(await say(inner, 'x')).toBe('X');
    return inner;
  }

  test('a host that is taken from the list; other hosts’ tunnels stay', async () => {
    const inner = await live();
    const other = await ask(world, `raw.example.com:${world.raw.port}`);
    world.setHosts('search', [`raw.example.com:${world.raw.port}`]);
    expect(await closes(inner)).toBe(true);
    expect(await say(other.socket, 'still')).toMatch(/still|220/);
    other.socket.destroy();
    await expect.poll(logged).toContain('"reason":"no-longer-allowed"');
  });

  test('the Tool', async () => {
    const inner = await live();
    world.removeTool('search');
    expect(await closes(inner)).toBe(true);
  });

  test('[N09] an address that turns out to be a node’s', async () => {
    const inner = await live();
    world.catalog.put('Node', node('new', ['127.0.0.9']));
    expect(await closes(inner)).toBe(true);
    expect(await ask(world, api())).toMatchObject({ body: { error: { class: 'cluster-node' } } });
    world.catalog.remove('Node', node('new', []));
  });

  test('a change that leaves it allowed leaves it open', async () => {
    const inner = await live();
    world.setHosts('search', [...HOSTS(world.web.port, world.raw.port), 'more.example.com']);
    world.setHosts('mail', ['x.example.com']);
    expect(await closes(inner, 200)).toBe(false);
    expect(await say(inner, 'y')).toBe('Y');
    inner.destroy();
  });
});

describe('[I1] [I9] [I12] what is not known, or cannot be read', () => {
  test('before all is seen nothing is opened, and nothing is said to be absent', async () => {
    world.synced = false;
    expect(await ask(world, api())).toMatchObject({ status: 503, body: { error: { code: 'not-ready' } } });
  });

  test('an entry that is none opens nothing, and the others hold; whoever is refused is told', async () => {
    world.setHosts('search', [api(), 'https://b.example.com', 7]);
    const { status, socket } = await ask(world, api());
    expect(status).toBe(200);
    socket.destroy();
    const { body } = await ask(world, 'b.example.com:443');
    expect(body.error?.message).toMatch(/spec\.hosts\[1\]: write the host alone, without a scheme; spec\.hosts\[2\]/);
  });

  test('a list that is none denies its tool, and no other', async () => {
    world.setHosts('mail', { api: true });
    expect(await ask(world, api(), world.mail)).toMatchObject({ body: { error: { code: 'tool-broken' } } });
    const { status, socket } = await ask(world, api());
    expect(status).toBe(200);
    socket.destroy();
  });

  test.each<unknown>([undefined, null, []])('[CVE-2025-66479] %j as hosts allows none', async (hosts) => {
    world.setHosts('search', hosts);
    expect((await ask(world, api())).status).toBe(403);
  });
});

describe('what is told', () => {
  test('one line for each decision, with class and reason, and no byte of a tunnel or of a target that looks odd', async () => {
    const { lines } = world.cluster.egress.shell;
    lines.length = 0;
    await ask(world, `imds.example.com:${world.raw.port}`);
    const about = lines.map((line) => JSON.parse(line)).filter(({ message }) => message === 'connect');
    expect(about).toHaveLength(1);
    expect(about[0]).toMatchObject({
      decision: 'refuse',
      reason: 'address-refused',
      class: 'metadata',
      address: '169.254.169.254',
      peer: { tool: 'search' },
    });
    const secret = `ghp${'x'.repeat(45)}`;
    await ask(world, `${secret}.evil.test:443`);
    await ask(world, `user:${secret}@evil.test:443`);
    const { socket } = await ask(world, `raw.example.com:${world.raw.port}`);
    await say(socket, secret);
    socket.destroy();
    expect(lines.join('')).not.toContain(secret);
    expect(lines.join('')).toContain('withheld');
  });

  test('metrics count outcomes, classes and ends, of closed sets', async () => {
    const text = await world.cluster.egress.shell.metrics.text();
    expect(text).toMatch(/oz0_egress_connects_total\{outcome="connected"\} [1-9]/);
    expect(text).toMatch(/oz0_egress_refused_addresses_total\{class="metadata"\} [1-9]/);
    expect(text).toMatch(/oz0_egress_tunnel_ends_total\{end="no-longer-allowed"\} [1-9]/);
    expect(text).toMatch(/oz0_egress_tunnel_bytes_total\{direction="down"\} [1-9]/);
  });
});

describe('limits', () => {
  test('[I12] tunnels of one tool, and no other tool’s; time, silence and bytes', async () => {
    const small = await startWorld({
      toolLimits: { tunnels: 3 },
      toolBounds: { maxMs: 1_500, maxBytes: 64 * 1024, idleMs: 400 },
    });
    try {
      for (const name of ['search', 'mail']) small.setHosts(name, [`raw.example.com:${small.raw.port}`]);
      const target = `raw.example.com:${small.raw.port}`;
      const open = await Promise.all([1, 2, 3].map(() => ask(small, target)));
      expect(open.map(({ status }) => status)).toEqual([200, 200, 200]);
      const refused = await ask(small, target);
      expect(refused).toMatchObject({ status: 429, body: { error: { code: 'too-many' } } });
      expect(refused.head).toMatch(/^retry-after: /m);
      const other = await ask(small, target, small.mail);
      expect(other.status).toBe(200);
      // Silence ends them, and their places are free again.
      for (const { socket } of [...open, other]) expect(await closes(socket)).toBe(true);
      const again = await ask(small, target);
      expect(again.status).toBe(200);
      again.socket.write(Buffer.alloc(256 * 1024));
      expect(await closes(again.socket)).toBe(true);
      const long = await ask(small, target);
      const drip = setInterval(() => long.socket.write('x'), 100);
      expect(await closes(long.socket, 3_000)).toBe(true);
      clearInterval(drip);
      const ends = () => small.cluster.egress.shell.metrics.text();
      for (const end of ['idle', 'too-many-bytes', 'too-long']) {
        await expect.poll(ends).toMatch(new RegExp(`end="${end}"\\} [1-9]`));
      }
    } finally {
      await small.close();
    }
  });

  test('a head that is too long, and one that does not end', async () => {
    const answer = await ask(world, api(), world.search, `X: ${'x'.repeat(20_000)}\r\n`).catch(() => undefined);
    expect(answer?.status === 200).toBe(false);
  });
});

/** An address of this machine in a private network, if it has one. */
const own = Object.values(networkInterfaces())
  .flatMap((entries) => entries ?? [])
  .find(({ address, internal }) => !internal && classifyAddress(address) === 'private')?.address;

test.skipIf(own === undefined)(
  '[N09] a private network is reached where the admin lists it, for its namespaces and ports, and ends with the process',
  async () => {
    const address = own ?? '';
    const server = createServer((socket) => socket.on('error', () => {}).pipe(socket)).listen(0, address);
    await once(server, 'listening');
    const bound = server.address();
    const port = typeof bound === 'object' ? (bound?.port ?? 0) : 0;
    const cidr = `${address}/${address.includes(':') ? 128 : 32}`;
    const open = async (rule: object) => {
      const allow = readAllowNet(JSON.stringify([{ cidr, ...rule }]));
      if (!allow.ok) throw new Error(allow.problems.join());
      const opened = await startWorld({ drainMs: 20_000 }, { allow: allow.rules });
      opened.dns.zone = ({ type }) => ({
        records:
          (type === 'AAAA') === address.includes(':')
            ? [{ type: address.includes(':') ? 'AAAA' : 'A', value: address }]
            : [],
      });
      opened.setHosts('search', [`git.corp.example:${port}`]);
      return opened;
    };
    try {
      for (const rule of [{ namespaces: ['other'] }, { ports: [port === 1 ? 2 : 1] }]) {
        const closed = await open(rule);
        expect(await ask(closed, `git.corp.example:${port}`)).toMatchObject({ body: { error: { class: 'private' } } });
        await closed.close();
      }
      const opened = await open({ namespaces: ['team'], ports: [port] });
      const { status, socket } = await ask(opened, `git.corp.example:${port}`);
      expect(status).toBe(200);
      expect(await say(socket, 'hello')).toBe('hello');
      const started = performance.now();
      const closing = opened.close();
      expect(await closes(socket)).toBe(true);
      await closing;
      // Not the whole drain: what comes next may no longer open that network.
      expect(performance.now() - started).toBeLessThan(10_000);
    } finally {
      server.close();
    }
  },
);
