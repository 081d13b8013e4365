/**
 * A credential proxy between a client and hosts that a test scripts, over real sockets: an egress that knows CONNECT and
 * leads every name to a port of this machine, hosts with certificates of an authority of their own, which write down what
 * reached them.
 */
import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer as createTlsServer, type TLSSocket, connect as tlsConnect } from 'node:tls';
import type { SecretBinding } from '../../../../src/domain/config/sidecar.ts';
import { connectTunnel, TunnelRefusedError } from '../../../../src/net/connectTunnel.ts';
import type { ProxyLimits } from '../../../../src/sidecar/proxy/limits.ts';
import { createPodAuthority } from '../../../../src/sidecar/proxy/podAuthority.ts';
import { type CredentialProxy, startCredentialProxy } from '../../../../src/sidecar/proxy/startCredentialProxy.ts';

export const SECRET = 'cAnArY+s3cret/value=4711&<q>"x"';
export const HOST = 'api.example.test';
export const OTHER = 'other.example.test';
export const PLAIN = 'plain.example.test';

/** What reached a host, exactly as it stood in the request. */
export interface Seen {
  readonly host: string;
  readonly method: string;
  readonly url: string;
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

export type Script = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

export interface World {
  readonly proxy: CredentialProxy;
  readonly seen: Seen[];
  /** Tunnels that egress opened, and how many are open. */
  readonly tunnels: string[];
  readonly openTunnels: () => number;
  readonly logs: string[];
  readonly placeholder: (name?: string) => string;
  readonly folder: string;
  readonly upstreamCa: string;
  readonly podCa: string;
  /** What the hosts answer from now on; undefined: an echo. */
  script: Script | undefined;
  /** Bytes that HOST answers with, whatever it is asked; then its own parser is out of the way. */
  raw: ((socket: Socket, heard: Buffer) => void) | undefined;
  readonly setSecrets: (values: Readonly<Record<string, string | undefined>>) => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface WorldOptions {
  readonly bindings?: readonly SecretBinding[];
  readonly secrets?: Readonly<Record<string, string | undefined>>;
  readonly limits?: Partial<ProxyLimits>;
  readonly trustHosts?: boolean;
  /** Names that egress refuses. */
  readonly refused?: readonly string[];
}

export const binding = (more: Partial<SecretBinding> = {}): SecretBinding => ({
  secret: 'API_KEY',
  host: HOST,
  port: 443,
  in: 'header',
  name: 'Authorization',
  // biome-ignore lint/suspicious/noTemplateCurlyInString: what a binding says
  format: 'Bearer ${value}',
  websocket: false,
  ...more,
});

export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), 'oz0-proxy-'));
  const bindings = options.bindings ?? [binding()];
  const values = options.secrets ?? { API_KEY: SECRET };
  const seen: Seen[] = [];
  const tunnels: string[] = [];
  const logs: string[] = [];
  const sockets = new Set<Socket>();
  const servers: Server[] = [];
  const authority = createPodAuthority([HOST, OTHER, PLAIN, 'wrong.example.test'], Date.now);
  const world: { script: Script | undefined; raw: World['raw'] } = { script: undefined, raw: undefined };

  const http = createHttpServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('error', () => {});
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const body = Buffer.concat(parts);
      const said = {
        host: request.headers.host ?? '',
        method: request.method ?? '',
        url: request.url ?? '',
        rawHeaders: request.rawHeaders,
        body: body.toString('latin1'),
      };
      seen.push(said);
      if (world.script !== undefined) return world.script(request, response, body);
      const text = JSON.stringify(said);
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) });
      response.end(text);
    });
  });
  http.keepAliveTimeout = 30_000;
  const upgraded = (_: IncomingMessage, socket: import('node:stream').Duplex): void => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
    socket.on('data', (data) => socket.write(data));
    socket.on('error', () => {});
  };
  http.on('upgrade', (request: IncomingMessage, socket) => {
    seen.push({ host: '', method: 'UPGRADE', url: request.url ?? '', rawHeaders: request.rawHeaders, body: '' });
    upgraded(request, socket);
  });
  const serve = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
    if (world.raw === undefined) return void http.emit('connection', socket);
    const { raw } = world;
    let heard = Buffer.alloc(0);
    socket.on('data', (data: Buffer) => {
      heard = Buffer.concat([heard, data]);
      raw(socket, heard);
    });
  };
  const tls = createTlsServer(
    {
      SNICallback: (name, callback) => {
        const context = authority.contextFor(name === 'mislabelled.example.test' ? 'wrong.example.test' : name);
        callback(context === undefined ? new Error('unknown') : null, context);
      },
      minVersion: 'TLSv1.2',
    },
    (socket: TLSSocket) => serve(socket),
  );
  tls.on('tlsClientError', () => {});
  const plain = createServer(serve);
  let open = 0;
  const egress = createHttpServer();
  egress.on('connect', (request: IncomingMessage, client: Socket) => {
    const target = request.url ?? '';
    tunnels.push(target);
    const [host = '', port = ''] = target.split(':');
    client.on('error', () => {});
    if (options.refused?.includes(host)) {
      const body = '{"error":{"code":"host-not-allowed","message":"not on the list"}}';
      client.end(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      return;
    }
    const local = (port === '443' || port === '8443' ? tls : plain).address() as AddressInfo;
    const way = connect(local.port, '127.0.0.1', () => {
      open++;
      client.write('HTTP/1.1 200 OK\r\n\r\n');
      client.pipe(way).pipe(client);
    });
    way.on('error', () => client.destroy());
    way.once('close', () => {
      open--;
      client.destroy();
    });
    client.once('close', () => way.destroy());
  });
  for (const server of [tls, plain, egress]) {
    servers.push(server as Server);
    await new Promise<void>((resolve) => (server as Server).listen(0, '127.0.0.1', resolve));
  }
  const upstreamCa = join(folder, 'upstream-ca.crt');
  if (options.trustHosts !== false) await writeFile(upstreamCa, authority.certificatePem);

  const secretsDir = join(folder, 'secrets');
  await mkdir(secretsDir);
  let mounts = 0;
  /** As the kubelet does it: a new folder, and a link that is swapped in one step. */
  const setSecrets = async (next: Readonly<Record<string, string | undefined>>): Promise<void> => {
    const name = `..mount-${mounts++}`;
    await mkdir(join(secretsDir, name));
    for (const [key, value] of Object.entries(next)) {
      if (value !== undefined) await writeFile(join(secretsDir, name, key), value);
      await symlink(join('..data', key), join(secretsDir, key)).catch(() => {});
    }
    await symlink(name, join(secretsDir, '..data_tmp'));
    await rename(join(secretsDir, '..data_tmp'), join(secretsDir, '..data'));
  };
  await setSecrets(values);

  const stop = new AbortController();
  const proxy = await startCredentialProxy({
    config: { secrets: Object.keys(values).map((name) => ({ name, file: name })), bindings },
    secretsDir,
    upstreamCaFile: upstreamCa,
    async openTunnel(host, port, signal) {
      const { port: at } = egress.address() as AddressInfo;
      const socket = connect(at, '127.0.0.1');
      await connectTunnel(socket, `${host}:${port}`, signal);
      return socket;
    },
    log: (level, message, fields) => void logs.push(JSON.stringify({ level, message, ...fields })),
    signal: stop.signal,
    port: 0,
    pollMs: 20,
    paths: { bundle: join(folder, 'ca-bundle.crt'), ca: join(folder, 'ca.crt'), store: join(folder, 'ca-bundle.p12') },
    ...(options.limits === undefined ? {} : { limits: options.limits }),
  });
  for (const { path, content } of proxy.bundleFiles()) await writeFile(path, content);
  return {
    proxy,
    seen,
    tunnels,
    openTunnels: () => open,
    logs,
    placeholder: (name = 'API_KEY') => proxy.environment()[name] ?? '',
    folder,
    upstreamCa,
    podCa: String(proxy.bundleFiles()[0]?.content ?? ''),
    get script() {
      return world.script;
    },
    set script(script) {
      world.script = script;
    },
    get raw() {
      return world.raw;
    },
    set raw(raw) {
      world.raw = raw;
    },
    setSecrets,
    async close() {
      await proxy.close();
      for (const socket of sockets) socket.destroy();
      http.closeAllConnections();
      egress.closeAllConnections();
      for (const server of servers) await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

export { TunnelRefusedError };

/** A connection to the proxy; `hear` is what came so far, `end` resolves when the other side has closed. */
export interface Line {
  readonly socket: Socket;
  readonly heard: () => string;
  readonly until: (what: string | RegExp) => Promise<string>;
  readonly ended: Promise<string>;
}

export function lineOf(socket: Socket): Line {
  let heard = '';
  const ended = new Promise<string>((resolve) => {
    socket.on('close', () => resolve(heard));
    socket.on('end', () => resolve(heard));
  });
  const waiting = new Set<() => void>();
  socket.on('data', (data: Buffer) => {
    heard += data.toString('latin1');
    for (const each of waiting) each();
  });
  socket.on('error', () => {});
  return {
    socket,
    heard: () => heard,
    ended,
    until: (what) =>
      new Promise((resolve, reject) => {
        const check = (): void => {
          if (typeof what === 'string' ? !heard.includes(what) : !what.test(heard)) return;
          waiting.delete(check);
          resolve(heard);
        };
        waiting.add(check);
        void ended.then(() => {
          check();
          reject(new Error(`ended before ${what}: ${heard.slice(0, 500)}`));
        });
        check();
      }),
  };
}

export function dialProxy(world: World): Line {
  return lineOf(connect(world.proxy.port, '127.0.0.1'));
}

/** Sends bytes to the proxy and returns all that came back until it closed. */
export async function tell(world: World, bytes: string | Buffer): Promise<string> {
  const line = dialProxy(world);
  line.socket.write(bytes);
  const heard = await line.ended;
  line.socket.destroy();
  return heard;
}

export interface TlsChoice {
  readonly servername?: string | undefined;
  readonly alpn?: readonly string[];
  readonly maxVersion?: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3';
  readonly ca?: string;
}

/** CONNECT, then TLS to what is behind it. */
export async function openInner(
  world: World,
  target = `${HOST}:443`,
  { servername = HOST, alpn = ['http/1.1'], maxVersion, ca }: TlsChoice = {},
): Promise<Line> {
  const socket = connect(world.proxy.port, '127.0.0.1');
  await connectTunnel(socket, target, AbortSignal.timeout(5_000));
  return new Promise((resolve, reject) => {
    const tls = tlsConnect({
      socket,
      servername,
      ca: ca ?? world.podCa,
      ALPNProtocols: [...alpn],
      ...(servername === '' ? { checkServerIdentity: () => undefined } : {}),
      ...(maxVersion === undefined ? {} : { maxVersion, minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' }),
    });
    tls.once('error', reject);
    tls.once('close', () => reject(new Error('closed')));
    tls.once('secureConnect', () => resolve(lineOf(tls)));
  });
}

/** One request inside of the tunnel to HOST; all that came back until the connection closed. */
export async function inner(world: World, bytes: string | Buffer): Promise<string> {
  const line = await openInner(world);
  line.socket.write(bytes);
  const heard = await line.ended;
  line.socket.destroy();
  return heard;
}

export function get(headers: readonly string[], target = '/', method = 'GET', body = ''): string {
  return `${[`${method} ${target} HTTP/1.1`, `Host: ${HOST}`, ...headers, 'Connection: close'].join('\r\n')}\r\n\r\n${body}`;
}

export const statusOf = (answer: string): number => Number(/^HTTP\/1\.1 ([0-9]{3})/.exec(answer)?.[1] ?? 0);
export const codeOf = (answer: string): string => /"code":"([a-z-]+)"/.exec(answer)?.[1] ?? '';

/** The body of an answer, with chunks put together. */
export function bodyOf(answer: string): string {
  const at = answer.indexOf('\r\n\r\n');
  const body = answer.slice(at + 4);
  if (!/transfer-encoding: chunked/i.test(answer.slice(0, at))) return body;
  let out = '';
  for (let from = 0; ; ) {
    const end = body.indexOf('\r\n', from);
    const size = Number.parseInt(body.slice(from, end), 16);
    if (!(size > 0)) return out;
    out += body.slice(end + 2, end + 2 + size);
    from = end + 2 + size + 2;
  }
}

/**
 * Where a value shows in a text, in any of the forms that C03 names, and some more; written apart from the code under test.
 */
export function canariesIn(text: string | Buffer, value: string): string[] {
  const hay = (typeof text === 'string' ? Buffer.from(text, 'latin1') : text).toString('latin1');
  const folded = hay.toLowerCase();
  const bytes = Buffer.from(value, 'latin1');
  const forms: [string, string][] = [
    ['raw', value],
    ['url', encodeURIComponent(value)],
    ['hex', bytes.toString('hex')],
    ['json', JSON.stringify(value).slice(1, -1)],
    ['reversed', [...value].reverse().join('')],
  ];
  for (const shift of [0, 1, 2]) {
    // Drop what mixes with its neighbours: at most two characters at each end.
    const text64 = Buffer.concat([Buffer.alloc(shift, 0x41), bytes, Buffer.alloc(3, 0x41)]).toString('base64');
    const core = text64.slice(4, -8);
    forms.push([`base64+${shift}`, core], [`base64url+${shift}`, core.replaceAll('+', '-').replaceAll('/', '_')]);
  }
  return [...new Set(forms.filter(([, form]) => folded.includes(form.toLowerCase())).map(([name]) => name))];
}
