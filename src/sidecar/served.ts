/**
 * What a sidecar serves, by its configuration: a process of its pod behind the launcher, with the credential proxy as its
 * way out, or a server elsewhere. The rest of the sidecar does not tell them apart.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { SecretProblem, SidecarConfig, SidecarStatus } from '../domain/config/sidecar.ts';
import type { OpenTunnel } from '../net/egressTunnel.ts';
import type { ServedTool } from './answers.ts';
import type { Launcher } from './launcherSocket.ts';
import type { Log } from './log.ts';
import { type ModelDoor, openModelDoor } from './proxy/modelDoor.ts';
import { openSecretFiles } from './proxy/secretFiles.ts';
import { type CredentialProxy, startCredentialProxy } from './proxy/startCredentialProxy.ts';
import { createHeaders } from './remote/fillHeaders.ts';
import { startRemote } from './remote/remoteTool.ts';
import { createToolProcess, TIMING, type ToolTiming } from './toolProcess.ts';

export interface Served extends ServedTool {
  readonly offer: (launcher: Launcher) => void;
  readonly setSandbox: (holds: boolean, problem: string | undefined) => void;
  /** The pod ends. Resolves when no call runs any more where the sidecar is alone in it; the launcher ends the others. */
  readonly drain: () => Promise<void>;
  readonly secrets: () => SidecarStatus['secrets'];
  readonly close: () => Promise<void>;
}

export interface ServedOptions {
  readonly config: SidecarConfig;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly openTunnel: OpenTunnel;
  readonly secretsFolder: string;
  /** PEM; a file that is not there is none. */
  readonly upstreamCaFile: string;
  /** In the folder that the tool's container mounts read-only. */
  readonly socketPath: string;
  readonly proxyPort?: number;
  readonly modelPort?: number;
  readonly toolTiming?: Partial<ToolTiming>;
}

export async function startServed(options: ServedOptions): Promise<Served> {
  return options.config.remote === undefined ? await serveProcess(options) : await serveRemote(options);
}

async function serveProcess(options: ServedOptions): Promise<Served> {
  const { config, log } = options;
  const timing = { ...TIMING, ...options.toolTiming };
  const proxy = goesOut(config) ? await openProxy(options) : undefined;
  const model = config.usesModel === true ? await openModel(options) : undefined;
  const tool = createToolProcess(config, log, timing, {
    // A secret that the Tool declares by the name of the model's key stands for itself.
    environment: () => ({ ...model?.environment(), ...proxy?.environment() }),
    problem: () => (proxy === undefined ? undefined : describeProblems(proxy.problems())),
  });
  proxy?.onRotated(tool.renew);
  return {
    ...tool,
    drain: async () => tool.drain(),
    secrets: () => (proxy === undefined ? undefined : { problems: proxy.problems() }),
    async close() {
      await tool.close();
      await model?.close();
      await proxy?.close();
    },
  };
}

/** A tool that reaches nothing and has no secret needs no proxy, and its environment stays as small as it was. */
function goesOut({ hosts = [], secrets = [] }: SidecarConfig): boolean {
  return hosts.length > 0 || secrets.length > 0;
}

async function openProxy(options: ServedOptions): Promise<CredentialProxy> {
  const proxy = await startCredentialProxy({
    config: options.config,
    secretsDir: options.secretsFolder,
    upstreamCaFile: options.upstreamCaFile,
    openTunnel: options.openTunnel,
    log: options.log,
    signal: options.signal,
    ...(options.proxyPort === undefined ? {} : { port: options.proxyPort }),
  });
  const folder = dirname(options.socketPath);
  for (const { path, content } of proxy.bundleFiles()) {
    await writeFile(join(folder, basename(path)), content, { mode: 0o644 });
  }
  return proxy;
}

function openModel({ openTunnel, log, signal, modelPort }: ServedOptions): Promise<ModelDoor> {
  return openModelDoor({ openTunnel, log, signal, ...(modelPort === undefined ? {} : { port: modelPort }) });
}

async function serveRemote(options: ServedOptions): Promise<Served> {
  const { config, log, openTunnel } = options;
  const { remote, secrets = [], bindings = [] } = config;
  const url = new URL(remote?.url ?? '');
  let wake = (): void => {};
  const files = await openSecretFiles({
    folder: options.secretsFolder,
    secrets,
    isBound: (name) => bindings.some(({ secret }) => secret === name),
    onChange: () => wake(),
  });
  const upstreamCa = await readFile(options.upstreamCaFile, 'utf8').catch(() => undefined);
  const tool = startRemote({
    url,
    headersNow: createHeaders({ url, headers: remote?.headers ?? {}, bindings, secretsNow: files.current }),
    openTunnel,
    ...(upstreamCa === undefined ? {} : { upstreamCa }),
    config,
    log,
  });
  wake = tool.wake;
  return {
    ...tool,
    // Nothing of such a pod dials a launcher's socket.
    offer: (launcher) => launcher.close(),
    secrets: () => ({ problems: files.current().problems }),
    async close() {
      await tool.close();
      files.close();
    },
  };
}

function describeProblems(problems: readonly { readonly name: string; readonly problem: SecretProblem }[]) {
  if (problems.length === 0) return undefined;
  return problems.map(({ name, problem }) => `the secret ${name} is ${problem}`).join('; ');
}
