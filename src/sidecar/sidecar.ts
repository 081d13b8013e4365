/**
 * The sidecar of a tool pod: proves who the pod is and that its walls hold, runs the tool through the launcher, and
 * serves it over mutual TLS. Nothing here is reachable by the tool but the launcher's socket.
 */
import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { join } from 'node:path';
import type { SandboxReport, SidecarConfig, SidecarStatus } from '../domain/config/sidecar.ts';
import type { Identity } from '../domain/identity/identity.ts';
import { createMcpEndpoint } from '../mcp/endpoint.ts';
import { egressTunnel, type OpenTunnel } from '../net/egressTunnel.ts';
import { type IdentityHolder, startIdentity } from '../net/identity.ts';
import { identityRequest } from '../net/identityRequest.ts';
import { NoIdentityError } from '../net/noIdentity.ts';
import { startTlsServer } from '../net/tlsServer.ts';
import { createCalls } from './calls.ts';
import { type HealthServer, startHealth } from './healthServer.ts';
import { folderDisk } from './journal/disk.ts';
import { openJournal } from './journal/journal.ts';
import { listenForLauncher } from './launcherSocket.ts';
import type { Log } from './log.ts';
import { answerListing, answerQuestion, refuseNode } from './requests.ts';
import { kernelWalls, type SandboxState, type SandboxTiming, watchSandbox } from './sandbox.ts';
import { startServed } from './served.ts';
import { createToolHandler } from './toolHandler.ts';
import type { ToolTiming } from './toolProcess.ts';
import { openTrustFolder } from './trustFolder.ts';

export interface SidecarOptions {
  readonly config: SidecarConfig;
  readonly log: Log;
  readonly trustFolder: string;
  readonly tokenFile: string;
  readonly socketPath: string;
  /** Where the kubelet mounts the tool's secrets. */
  readonly secretsFolder?: string;
  /** Of this container alone; outlives it. */
  readonly journalFolder: string;
  /** The node whose gateway alone may call; unset: any gateway may. */
  readonly node?: string;
  /** Of the tool's way out, on loopback; unset: the usual one. */
  readonly proxyPort?: number;
  /** Of its way to the model gateway, likewise. */
  readonly modelPort?: number;
  /** Unset: all addresses. */
  readonly host?: string;
  readonly tlsPort: number;
  readonly healthPort: number;
  readonly sandboxTiming?: Partial<SandboxTiming>;
  readonly toolTiming?: Partial<ToolTiming>;
}

export interface Sidecar {
  readonly healthPort: number;
  /** Resolves with the port once there is a certificate. */
  readonly tlsPort: Promise<number>;
  readonly status: () => SidecarStatus;
  readonly close: () => Promise<void>;
}

const RETRY_MS = 500;
const CLOSE_GRACE_MS = 2_000;

export async function startSidecar(options: SidecarOptions): Promise<Sidecar> {
  const { config, log } = options;
  const stop = new AbortController();
  const { signal } = stop;
  const trust = openTrustFolder(options.trustFolder);
  const kernel = await kernelWalls();
  let tunnel: OpenTunnel | undefined;
  const tool = await startServed({
    config,
    log,
    signal,
    openTunnel(host, port, until) {
      if (tunnel === undefined) return Promise.reject(new NoIdentityError('this pod has no certificate yet'));
      return tunnel(host, port, until);
    },
    secretsFolder: options.secretsFolder ?? '/oz0/secrets',
    upstreamCaFile: join(options.trustFolder, 'upstream-ca.crt'),
    socketPath: options.socketPath,
    ...(options.proxyPort === undefined ? {} : { proxyPort: options.proxyPort }),
    ...(options.modelPort === undefined ? {} : { modelPort: options.modelPort }),
    ...(options.toolTiming === undefined ? {} : { toolTiming: options.toolTiming }),
  });
  const journal = await openJournal({ disk: folderDisk(options.journalFolder), log });
  const calls = createCalls(tool, journal);
  let sandbox: SandboxState = { kind: 'unproved', problem: 'the sandbox is not proved yet' };
  let identity: IdentityHolder | undefined;

  const peers = new WeakMap<IncomingMessage, Identity>();
  const endpoint = createMcpEndpoint<Identity>({
    handler: createToolHandler(config.tool, tool, calls),
    // Who may come in at all was decided before; see `handle`.
    admit: (request) => {
      const peer = peers.get(request);
      return peer === undefined ? { ok: false, status: 403, message: 'not for you' } : { ok: true, context: peer };
    },
    maxBodyBytes: config.maxMessageBytes + 64 * 1024,
    maxStreams: 256,
    onProblem: (error) => log('error', 'bug: a request failed', { reason: String(error) }),
  });

  // A server elsewhere has no launcher, and its pod no folder for the socket.
  const socket =
    config.remote === undefined
      ? await listenForLauncher({
          path: options.socketPath,
          maxQueuedBytes: 2 * config.maxMessageBytes + 16 * 1024 * 1024,
          onLauncher(launcher) {
            tool.offer(launcher);
            if (tool.status().phase !== 'Draining') endpoint.takeStreams();
          },
          onTerminating() {
            endpoint.endStreams();
            void tool.drain();
          },
        })
      : undefined;
  const health: HealthServer = await startHealth({
    ...(options.host === undefined ? {} : { host: options.host }),
    port: options.healthPort,
    started: () =>
      identity?.current() === undefined
        ? 'no certificate yet'
        : sandbox.kind === 'holds'
          ? undefined
          : problemOf(sandbox),
    ready() {
      const { phase, problem } = tool.status();
      if (identity?.current() === undefined) return 'no certificate';
      return phase === 'Ready' ? undefined : (problem ?? phase);
    },
  });

  function handle(request: IncomingMessage, response: ServerResponse, peer: Identity | undefined): void {
    const path = request.url;
    if (peer === undefined || (peer.kind !== 'gateway' && peer.kind !== 'controller')) {
      log('warn', 'peer refused', { peer: peer?.kind ?? 'none' });
      response.writeHead(403, { connection: 'close', 'content-length': 0 }).end();
    } else if (path === '/status' && request.method === 'GET') {
      const body = JSON.stringify(status());
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
        .end(body);
    } else if (peer.kind === 'gateway' && options.node !== undefined && peer.node !== options.node) {
      log('warn', 'gateway of another node refused', { node: peer.node });
      refuseNode(response);
    } else if (path === '/mcp') {
      peers.set(request, peer);
      endpoint.handle(request, response);
    } else if (path === '/calls' && request.method === 'POST' && peer.kind === 'gateway') {
      void answerQuestion(request, response, calls);
    } else if (path === '/listing' && request.method === 'GET' && peer.kind === 'controller') {
      answerListing(response, tool.listing());
    } else {
      response.writeHead(404, { connection: 'close', 'content-length': 0 }).end();
    }
  }

  function status(): SidecarStatus {
    const held = identity?.current()?.identity;
    const secrets = tool.secrets();
    return {
      podUid: held?.kind === 'tool' ? held.podUid : '',
      ...tool.status(),
      sandbox: report(),
      ...(secrets === undefined ? {} : { secrets }),
    };
  }

  function report(): SandboxReport {
    return { holds: sandbox.kind === 'holds', open: sandbox.kind === 'open' ? sandbox.addresses : [], ...kernel };
  }

  async function beSomeone() {
    // The folder is filled by the controller, perhaps after this pod came up.
    const { trustDomain, egress } = await retried(log, signal, async () => ({
      trustDomain: await trust.trustDomain(),
      egress: await trust.egress(),
    }));
    const holder = startIdentity({
      request: async (csrPem, until, heldBundle) => {
        const now = await trust.egress().catch(() => egress);
        return identityRequest({
          route: { kind: 'egress', host: now.host, port: now.port, servername: now.name },
          trustDomain,
          trustBundlePem: trust.bundle,
          token: () => readFile(options.tokenFile, 'utf8'),
        })(csrPem, until, heldBundle);
      },
      trustDomain,
      log: (level, event, fields) => log(level, event, fields),
      signal,
    });
    identity = holder;
    tunnel = egressTunnel({ egress: trust.egress, credentials: holder, trustDomain });
    const server = await startTlsServer({
      ...(options.host === undefined ? {} : { host: options.host }),
      port: options.tlsPort,
      credentials: holder,
      trustDomain,
      clientCertificate: 'required',
      handler: handle,
      limits: { maxConnections: 512 },
      signal,
    });
    void watchSandbox({
      walls: trust.walls,
      onChange(state) {
        sandbox = state;
        if (state.kind === 'holds') log('info', 'the sandbox holds');
        else if (state.kind === 'open') log('error', 'the sandbox is open', { problem: problemOf(state) });
        else log('info', 'the sandbox is not proved', { problem: problemOf(state) });
        tool.setSandbox(state.kind === 'holds', problemOf(state));
      },
      signal,
      ...(options.sandboxTiming === undefined ? {} : { timing: options.sandboxTiming }),
    });
    return server;
  }

  const serving = beSomeone();
  serving.catch((error) => {
    if (!signal.aborted) log('error', 'the sidecar cannot serve', { reason: String(error) });
  });
  const tlsPort = serving.then((server) => server.address.port);
  tlsPort.catch(() => {});

  return {
    healthPort: health.port,
    tlsPort,
    status,
    async close() {
      endpoint.endStreams();
      // Alone in its pod it is told by the kubelet itself that the pod ends.
      if (config.remote !== undefined) await tool.drain();
      await tool.close();
      if (identity?.current() === undefined) stop.abort(new Error('the sidecar closes'));
      const server = await serving.catch(() => undefined);
      await server?.close(CLOSE_GRACE_MS);
      stop.abort(new Error('the sidecar closes'));
      identity?.close();
      endpoint.close();
      await socket?.close();
      await journal.close();
      await health.close();
    },
  };
}

function problemOf(state: SandboxState): string | undefined {
  if (state.kind === 'holds') return undefined;
  return state.kind === 'unproved' ? state.problem : `these answer, and should not: ${state.addresses.join(', ')}`;
}

async function retried<T>(log: Log, signal: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (let said = ''; ; ) {
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      const reason = error instanceof Error ? error.message : String(error);
      if (reason !== said) log('warn', 'waits for the trust folder', { reason });
      said = reason;
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      signal.throwIfAborted();
    }
  }
}
