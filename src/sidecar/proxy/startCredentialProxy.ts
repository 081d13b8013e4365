/**
 * The credential proxy of a tool pod, on loopback: the tool's way out, and the place where bound secrets enter its requests.
 * Everything it knows of the tool's secrets is read from files that only the sidecar has.
 */
import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { rootCertificates, type SecureContext } from 'node:tls';
import type { SecretProblem, SidecarConfig } from '../../domain/config/sidecar.ts';
import { bindingProblem, type LiveBinding } from '../../domain/credential/binding.ts';
import { compileInjection, type Injection } from '../../domain/credential/decideInjection.ts';
import { makePlaceholder, PLACEHOLDER_ENTROPY_BYTES } from '../../domain/credential/placeholder.ts';
import type { Secret } from '../../domain/credential/secret.ts';
import type { OpenTunnel } from '../../net/egressTunnel.ts';
import { originTrust } from '../../net/originTls.ts';
import { createRateLimit } from '../../net/rateLimit.ts';
import type { Log } from '../log.ts';
import { DEFAULT_LIMITS, type ProxyLimits } from './limits.ts';
import { listenOnLoopback } from './loopbackServer.ts';
import { createPodAuthority } from './podAuthority.ts';
import { answerRefusal } from './refusal.ts';
import { openSecretFiles, type SecretFiles } from './secretFiles.ts';
import { type ProxyNote, serveClient } from './serveClient.ts';
import { CA_BUNDLE_PATH, CA_PATH, proxyEnvironment, TRUST_STORE_PATH } from './toolEnvironment.ts';
import { trustStore } from './trustStore.ts';

export const PORT_PROXY = 15_001;

export interface CredentialProxyOptions {
  readonly config: Pick<SidecarConfig, 'secrets' | 'bindings' | 'hosts'>;
  /** Where the kubelet mounts the tool's secrets. */
  readonly secretsDir: string;
  /** Authorities to trust besides the public ones, PEM; a file that is not there is none. */
  readonly upstreamCaFile?: string;
  readonly openTunnel: OpenTunnel;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly port?: number;
  readonly limits?: Partial<ProxyLimits>;
  /** Paths of the bundle files as the tool sees them. */
  readonly paths?: { readonly bundle: string; readonly ca: string; readonly store: string };
  readonly pollMs?: number;
}

export interface CredentialProxy {
  readonly port: number;
  /** For the tool's process, at each start anew: proxy, trust, environment secrets, placeholders of bound ones. */
  readonly environment: () => Readonly<Record<string, string>>;
  /** To be written where the tool's container can read, and not write. */
  readonly bundleFiles: () => readonly { readonly path: string; readonly content: string | Buffer }[];
  /** While there are any, no process of the tool may start. */
  readonly problems: () => readonly { readonly name: string; readonly problem: SecretProblem }[];
  /**
   * Calls back when secrets that the tool has in its environment changed, or what is wrong with any of them did: the tool's
   * process is then to be started again, between calls. Bound secrets need no such thing.
   */
  readonly onRotated: (listener: (names: readonly string[]) => void) => () => void;
  /** Connections of the tool. */
  readonly connections: () => number;
  readonly close: () => Promise<void>;
}

/** How many replaced values of a secret are still looked for in answers. */
const FORMER_VALUES = 4;

/** @throws Error for a binding that is wrong, or for a port that is taken */
export async function startCredentialProxy(options: CredentialProxyOptions): Promise<CredentialProxy> {
  const { config, log } = options;
  const limits: ProxyLimits = { ...DEFAULT_LIMITS, ...options.limits };
  const secrets = config.secrets ?? [];
  const bindings = config.bindings ?? [];
  for (const binding of bindings) {
    const known = secrets.some(({ name }) => name === binding.secret);
    const problem = known ? bindingProblem(binding) : 'it names no secret of this tool';
    if (problem !== undefined) throw new Error(`binding of ${binding.secret}: ${problem}`);
  }
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const isBound = (name: string): boolean => bindings.some(({ secret }) => secret === name);
  const placeholders = new Map(
    secrets
      .filter(({ name }) => isBound(name))
      .map(({ name }) => [name, makePlaceholder(randomBytes(PLACEHOLDER_ENTROPY_BYTES))]),
  );
  const placeholderOf = (name: string): string => placeholders.get(name) ?? '';
  const former = new Map<string, Secret[]>();
  const listeners = new Set<(names: readonly string[]) => void>();
  let files: SecretFiles | undefined;
  let injection: Injection = compile(new Map());

  function compile(values: ReadonlyMap<string, Secret>): Injection {
    const live = bindings.map((binding): LiveBinding => {
      return { binding, placeholder: placeholderOf(binding.secret), value: values.get(binding.secret) };
    });
    const replaced = [...former].flatMap(([name, old]) =>
      old.map((each) => ({ value: each.reveal(), placeholder: placeholderOf(name) })),
    );
    return compileInjection(live, replaced);
  }

  function onChange(changed: readonly string[], before: SecretFiles | undefined, old: ReadonlyMap<string, Secret>) {
    const state = before?.current();
    if (state === undefined) return;
    for (const name of changed) {
      const was = old.get(name);
      if (was !== undefined && isBound(name)) {
        former.set(name, [was, ...(former.get(name) ?? [])].slice(0, FORMER_VALUES));
      }
    }
    injection = compile(state.values);
    log('info', 'secrets changed', { names: changed.join(', ') });
    for (const { name, problem } of state.problems) log('warn', 'a secret cannot be used', { name, problem });
    const forTool = changed.filter((name) => !isBound(name) || old.has(name) !== state.values.has(name));
    if (forTool.length > 0) for (const listener of [...listeners]) listener(forTool);
  }

  let last: ReadonlyMap<string, Secret> = new Map();
  files = await openSecretFiles({
    folder: options.secretsDir,
    secrets,
    isBound,
    onChange(changed) {
      const old = last;
      last = files?.current().values ?? last;
      onChange(changed, files, old);
    },
    ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
  });
  last = files.current().values;
  injection = compile(last);
  const reader = files;

  const authority = createPodAuthority([...new Set(bindings.map(({ host }) => host))], Date.now);
  const upstreamCa = await readOptional(options.upstreamCaFile);
  const extraCa = upstreamCa === undefined ? [] : [upstreamCa];
  let trust: SecureContext | undefined;
  const saying = createRateLimit(60, 60, 256, Date.now);
  const note = ({ decision, host, port, reason, injected }: ProxyNote): void => {
    if (decision === 'send' || !saying.take(`${decision} ${reason ?? ''}`)) return;
    log(decision === 'refuse' ? 'warn' : 'info', 'proxy', {
      decision,
      ...(host === undefined ? {} : { host, port }),
      ...(reason === undefined ? {} : { reason }),
      ...(injected === undefined ? {} : { injected: injected.join(', ') }),
    });
  };

  const server = await listenOnLoopback({
    port: options.port ?? PORT_PROXY,
    maxConnections: limits.maxConnections,
    onTooMany(socket) {
      note({ decision: 'refuse', reason: 'too-many-connections' });
      answerRefusal(socket, 'too-many-connections');
    },
    onConnection(socket) {
      serveClient(socket, {
        bindings,
        injection: () => injection,
        authority,
        openTunnel: options.openTunnel,
        trust() {
          trust ??= originTrust(upstreamCa);
          return trust;
        },
        limits,
        note,
        signal,
      }).catch((error) => {
        log('error', 'bug: a proxied connection failed', { reason: error instanceof Error ? (error.stack ?? '') : '' });
        socket.destroy();
      });
    },
  });
  const close = (): Promise<void> => {
    stop.abort(new Error('the proxy closes'));
    reader.close();
    listeners.clear();
    return server.close();
  };
  options.signal.addEventListener('abort', () => void close(), { once: true });
  const { port } = server;

  const paths = options.paths ?? { bundle: CA_BUNDLE_PATH, ca: CA_PATH, store: TRUST_STORE_PATH };
  return {
    port,
    environment() {
      const { values } = reader.current();
      const own = [...values]
        .filter(([name]) => !isBound(name))
        .map(([name, value]): [string, string] => [name, value.reveal()]);
      return {
        ...proxyEnvironment(`http://127.0.0.1:${port}`, paths),
        ...Object.fromEntries([...placeholders, ...own]),
      };
    },
    bundleFiles() {
      const bundle = joinPem([authority.certificatePem, ...extraCa, ...rootCertificates]);
      return [
        // What comes on top of the public ones, for clients that know those: to hosts without a binding they verify by themselves.
        { path: paths.ca, content: joinPem([authority.certificatePem, ...extraCa]) },
        { path: paths.bundle, content: bundle },
        { path: paths.store, content: trustStore(bundle) },
      ];
    },
    problems: () => reader.current().problems,
    onRotated(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    connections: server.connections,
    close,
  };
}

function joinPem(certificates: readonly string[]): string {
  return `${certificates.map((pem) => pem.trimEnd()).join('\n')}\n`;
}

async function readOptional(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined;
  const pem = await readFile(path, 'utf8').catch(() => '');
  return pem.includes('-----BEGIN CERTIFICATE-----') ? pem : undefined;
}
