/** A real API server on loopback, with nothing behind it: for what only it can say, in seconds, and without the cluster. */
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { program } from '../../../hack/cluster/programs.ts';
import { run } from '../../../hack/shell/command.ts';
import { waitFor } from '../../../hack/shell/wait.ts';

export const buildable = ['etcd', 'kube-apiserver', 'kubectl'].every((name) => existsSync(program(name)));

export interface ApiServer {
  readonly kubeconfig: string;
  readonly kubectl: (...args: string[]) => Promise<string>;
  stop(): Promise<void>;
}

export async function startApiServer(): Promise<ApiServer> {
  const folder = mkdtempSync(join(tmpdir(), 'oz0-api-'));
  const at = (name: string) => join(folder, name);
  const [client, peer, secure] = (await freePorts(3)) as [number, number, number];
  const started: ChildProcess[] = [];
  const start = (name: string, args: readonly string[]) => {
    const log = openSync(at(`${name}.log`), 'a');
    const child = spawn(program(name), args, { stdio: ['ignore', log, log] });
    closeSync(log);
    started.push(child);
    return child;
  };
  const stop = async () => {
    for (const child of started.reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL'); // nothing of it is kept
      await once(child, 'exit');
    }
    rmSync(folder, { recursive: true, force: true });
  };

  const { privateKey, publicKey } = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    publicKeyEncoding: { type: 'spki', format: 'pem' },
  });
  writeFileSync(at('accounts.key'), privateKey, { mode: 0o600 });
  writeFileSync(at('accounts.pub'), publicKey);
  writeFileSync(at('tokens.csv'), 'admin,admin,admin,system:masters\n', { mode: 0o600 });
  const cluster = { server: `https://127.0.0.1:${secure}`, 'insecure-skip-tls-verify': true };
  const kubeconfig = at('kubeconfig');
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'it', cluster }],
      users: [{ name: 'admin', user: { token: 'admin' } }],
      contexts: [{ name: 'it', context: { cluster: 'it', user: 'admin' } }],
      'current-context': 'it',
    }),
    { mode: 0o600 },
  );
  const kubectl = (...args: string[]) =>
    run(program('kubectl'), [`--kubeconfig=${kubeconfig}`, ...args], { timeoutSeconds: 30 });

  try {
    start('etcd', [
      `--data-dir=${at('etcd')}`,
      '--unsafe-no-fsync',
      `--listen-client-urls=http://127.0.0.1:${client}`,
      `--advertise-client-urls=http://127.0.0.1:${client}`,
      `--listen-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-cluster=default=http://127.0.0.1:${peer}`,
    ]);
    const server = start('kube-apiserver', [
      '--bind-address=127.0.0.1',
      '--advertise-address=127.0.0.1',
      '--endpoint-reconciler-type=none',
      `--secure-port=${secure}`,
      `--cert-dir=${at('certificates')}`,
      `--etcd-servers=http://127.0.0.1:${client}`,
      `--token-auth-file=${at('tokens.csv')}`,
      '--authorization-mode=RBAC',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-key-file=${at('accounts.pub')}`,
      `--service-account-signing-key-file=${at('accounts.key')}`,
      '--service-cluster-ip-range=10.96.0.0/16',
    ]);
    await waitFor(
      'the API server is ready',
      async () => (await kubectl('get', '--raw=/readyz')) === 'ok' || undefined,
      {
        timeoutSeconds: 50,
        hopeless: () =>
          server.exitCode === null
            ? undefined
            : `it ended: ${readFileSync(at('kube-apiserver.log'), 'utf8').slice(-1000)}`,
      },
    );
  } catch (error) {
    await stop();
    throw error;
  }
  return { kubeconfig, kubectl, stop };
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer().listen(0, '127.0.0.1');
      await once(server, 'listening');
      return server;
    }),
  );
  const ports = servers.map((server) => {
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  });
  await Promise.all(servers.map((server) => once(server.close(), 'close')));
  return ports;
}
