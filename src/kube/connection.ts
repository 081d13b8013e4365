/**
 * Where the API server is and how to prove who we are, from a kubeconfig or from inside a pod. `@kubernetes/client-node`
 * reads the files and runs credential plugins; nothing else of it is used.
 */
import type { RequestOptions } from 'node:https';
import { KubeConfig } from '@kubernetes/client-node';

/** What one connection needs. Tokens and keys: never to be logged. */
export interface Connection {
  /** `https://host:port`, perhaps with a path; no slash at its end. */
  readonly server: string;
  readonly authorization?: string;
  readonly tls: {
    readonly ca?: string;
    readonly cert?: string;
    readonly key?: string;
    readonly serverName?: string;
    readonly verify: boolean;
  };
}

export interface ConnectionSource {
  /** Namespace of the context, or of the pod's ServiceAccount. */
  readonly namespace: string | undefined;
  /** The current credentials; files and plugins are read again when they may have changed. Throws when they cannot be read. */
  readonly current: () => Promise<Connection>;
  /** What was given out was refused: read everything anew before the next use. */
  readonly refused: () => void;
}

export interface ConnectionOptions {
  /** Path of a kubeconfig; undefined: `KUBECONFIG`, then `~/.kube/config`, then the pod's ServiceAccount. */
  readonly kubeconfig?: string;
  /** How long credentials are used before files are looked at again, in milliseconds. */
  readonly rereadMs?: number;
}

/** Throws when there is no usable configuration. */
export function loadConnection(options: ConnectionOptions = {}): ConnectionSource {
  const rereadMs = options.rereadMs ?? 60_000;
  let config = load(options.kubeconfig);
  let known: { readonly connection: Connection; readonly atMs: number } | undefined;
  let reading: Promise<Connection> | undefined;
  let stale = false;

  async function read(): Promise<Connection> {
    if (stale) {
      // A fresh KubeConfig: token files and credential plugins are cached inside the old one.
      config = load(options.kubeconfig);
      stale = false;
    }
    const connection = await describe(config);
    known = { connection, atMs: performance.now() };
    return connection;
  }

  return {
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,
    current: async () => {
      if (known && !stale && performance.now() - known.atMs < rereadMs) return known.connection;
      reading ??= read().finally(() => {
        reading = undefined;
      });
      return reading;
    },
    refused: () => {
      stale = true;
    },
  };
}

/** A source that never changes: plain HTTP on loopback, in tests. */
export function fixedConnection(connection: Connection, namespace?: string): ConnectionSource {
  return { namespace, current: async () => connection, refused: () => {} };
}

function load(kubeconfig: string | undefined): KubeConfig {
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromDefault();
  else config.loadFromFile(kubeconfig);
  const cluster = config.getCurrentCluster();
  if (!cluster) throw new Error('The Kubernetes configuration names no current cluster.');
  if (cluster.proxyUrl) throw new Error('A proxy-url in the Kubernetes configuration is not supported.');
  return config;
}

async function describe(config: KubeConfig): Promise<Connection> {
  const cluster = config.getCurrentCluster();
  if (!cluster) throw new Error('The Kubernetes configuration names no current cluster.');
  const options: RequestOptions = { headers: {} };
  await config.applyToHTTPSOptions(options);
  const headers = options.headers as Record<string, string>;
  const basic = options.auth ? `Basic ${Buffer.from(options.auth).toString('base64')}` : undefined;
  // A token file that ends in a newline would make an invalid header.
  const authorization = headers['Authorization']?.trim() ?? basic;
  return {
    server: cluster.server.replace(/\/+$/, ''),
    ...(authorization === undefined ? {} : { authorization }),
    tls: {
      ...text('ca', options.ca),
      ...text('cert', options.cert),
      ...text('key', options.key),
      ...(cluster.tlsServerName ? { serverName: cluster.tlsServerName } : {}),
      verify: cluster.skipTLSVerify !== true && options.rejectUnauthorized !== false,
    },
  };
}

function text(name: 'ca' | 'cert' | 'key', value: unknown): { [K in 'ca' | 'cert' | 'key']?: string } {
  if (typeof value === 'string') return { [name]: value };
  return Buffer.isBuffer(value) ? { [name]: value.toString('utf8') } : {};
}
