/** What the stories share: kubectl, namespaces of their own, agents, waits with a bound and a reason. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { kubeconfig } from '../../hack/cluster/layout.ts';
import { program } from '../../hack/cluster/programs.ts';
import { imageOf } from '../../hack/images/catalog.ts';
import { run } from '../../hack/shell/command.ts';
import { waitFor } from '../../hack/shell/wait.ts';

export const OPERATOR_NAMESPACE = 'oz0-system';

export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; [field: string]: unknown };
  [field: string]: unknown;
}

export interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
  observedGeneration?: number;
}

/** An object as kubectl prints it; tests look into it as deep as they need. */
// biome-ignore lint/suspicious/noExplicitAny: live objects of many kinds, read by tests only
export type Live = any;

export function kubectl(...args: string[]): Promise<string> {
  return run(program('kubectl'), ['--kubeconfig', kubeconfig, ...args], { timeoutSeconds: 120 });
}

export async function get(...args: string[]): Promise<Live> {
  return JSON.parse(await kubectl('get', ...args, '--output=json'));
}

export async function apply(...manifests: Manifest[]): Promise<string> {
  const input = manifests.map((manifest) => JSON.stringify(manifest)).join('\n---\n');
  return await run(program('kubectl'), ['--kubeconfig', kubeconfig, 'apply', '--server-side', '--filename=-'], {
    input,
    timeoutSeconds: 60,
  });
}

/** Runs kubectl as a user; what the API server answers, whether it agrees or not. */
export async function kubectlAs(user: string, groups: readonly string[], args: readonly string[], input?: string) {
  const impersonation = [`--as=${user}`, ...groups.map((group) => `--as-group=${group}`)];
  try {
    const stdout = await run(program('kubectl'), ['--kubeconfig', kubeconfig, ...impersonation, ...args], {
      timeoutSeconds: 30,
      ...(input === undefined ? {} : { input }),
    });
    return { ok: true, output: stdout };
  } catch (error) {
    return { ok: false, output: error instanceof Error ? error.message : String(error) };
  }
}

/** A namespace for one story, gone when the story ends. */
export async function storyNamespace(story: string): Promise<{ name: string; [Symbol.asyncDispose](): Promise<void> }> {
  const name = `${story}-${randomBytes(3).toString('hex')}`;
  await apply({
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name,
      labels: { 'pod-security.kubernetes.io/enforce': 'restricted', 'pod-security.kubernetes.io/warn': 'restricted' },
    },
  });
  return {
    name,
    [Symbol.asyncDispose]: async () => {
      await kubectl('delete', 'namespace', name, '--wait=false');
    },
  };
}

export function image(name: string): string {
  const found = imageOf(name);
  if (!found) throw new Error(`no image named ${name}`);
  return found.reference;
}

/** A pod that plays an agent: the official clients, a token for the gateway, and trust in its certificate. */
export function agentPod(namespace: string, name: string, serviceAccount: string, node?: string): Manifest[] {
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: serviceAccount, namespace } },
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace },
      spec: {
        serviceAccountName: serviceAccount,
        automountServiceAccountToken: false,
        terminationGracePeriodSeconds: 1,
        ...(node === undefined ? {} : { nodeSelector: { 'kubernetes.io/hostname': node } }),
        securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
        containers: [
          {
            name: 'agent',
            image: image('agent'),
            command: ['node', '-e', 'setInterval(() => {}, 1e9); process.on("SIGTERM", () => process.exit(0))'],
            env: [
              { name: 'NODE_EXTRA_CA_CERTS', value: '/etc/oz0/ca.crt' },
              { name: 'HOME', value: '/tmp' },
            ],
            securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
            volumeMounts: [
              { name: 'token', mountPath: '/var/run/secrets/oz0', readOnly: true },
              { name: 'trust', mountPath: '/etc/oz0', readOnly: true },
            ],
          },
        ],
        volumes: [
          {
            name: 'token',
            projected: {
              sources: [{ serviceAccountToken: { path: 'token', audience: 'oz0-gateway', expirationSeconds: 600 } }],
            },
          },
          { name: 'trust', configMap: { name: 'oz0' } },
        ],
      },
    },
  ];
}

export interface AgentAnswer {
  code: number;
  stdout: string;
  stderr: string;
}

/** Runs a program in a pod and keeps what it says, whatever its exit code. */
export function exec(
  namespace: string,
  pod: string,
  command: readonly string[],
  container?: string,
): Promise<AgentAnswer> {
  return new Promise((resolve, reject) => {
    const { child, output } = startExec(namespace, pod, command, container);
    child.on('error', reject);
    child.on('close', (code) => resolve({ code: code ?? -1, ...output }));
  });
}

export function startExec(namespace: string, pod: string, command: readonly string[], container?: string) {
  const child: ChildProcess = spawn(
    program('kubectl'),
    [
      `--kubeconfig=${kubeconfig}`,
      'exec',
      `--namespace=${namespace}`,
      pod,
      ...(container === undefined ? [] : [`--container=${container}`]),
      '--',
      ...command,
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const output = { stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output.stdout += text;
  });
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    output.stderr += text;
  });
  return { child, output };
}

const AGENT = ['node', '/app/agent.mjs'];

export async function listFunctions(namespace: string, pod: string, ...options: string[]): Promise<Live[]> {
  const { stdout, stderr, code } = await exec(namespace, pod, [...AGENT, 'list', ...options]);
  if (code !== 0) throw new Error(`list: ${stderr || stdout}`);
  return JSON.parse(stdout);
}

/** A call's result as the SDK gives it, or `{ error: { code, message } }`. */
export async function callFunction(
  namespace: string,
  pod: string,
  name: string,
  args: unknown,
  ...options: string[]
): Promise<Live> {
  const { stdout, stderr } = await exec(namespace, pod, [...AGENT, 'call', name, JSON.stringify(args), ...options]);
  try {
    return JSON.parse(stdout);
  } catch {
    throw new Error(`call ${name}: ${stderr || stdout}`);
  }
}

export interface SteadyLine {
  at: string;
  ok: boolean;
  ms: number;
  text?: string;
  error?: string;
  code?: number;
  meta?: Record<string, unknown>;
}

/** Calls one after another for some seconds, from some callers at once, while the story kills things. */
export function startSteady(namespace: string, pod: string, name: string, args: unknown, ...options: string[]) {
  const { child, output } = startExec(namespace, pod, [...AGENT, 'steady', name, JSON.stringify(args), ...options]);
  const ended = new Promise<SteadyLine[]>((resolve) => {
    child.on('close', () =>
      resolve(
        output.stdout
          .split('\n')
          .filter((line) => line.startsWith('{'))
          .map((line) => JSON.parse(line)),
      ),
    );
  });
  return { ended, linesSoFar: () => output.stdout.split('\n').filter((line) => line.startsWith('{')).length };
}

/** Waits until an object's condition has a status; the reason of a failure holds what it says instead. */
export async function waitForCondition(
  kind: string,
  namespace: string,
  name: string,
  type: string,
  status = 'True',
  timeoutSeconds = 120,
): Promise<Live> {
  return await waitFor(
    `${kind} ${namespace}/${name}: ${type}=${status}`,
    async () => {
      const object = await get(kind, name, `--namespace=${namespace}`);
      const condition = conditionOf(object, type);
      if (condition?.status === status && object.status.observedGeneration === object.metadata.generation)
        return object;
      throw new Error(JSON.stringify(object.status?.conditions ?? 'no status yet'));
    },
    { timeoutSeconds, everyMs: 500 },
  );
}

export function conditionOf(object: Live, type: string): Condition | undefined {
  return object.status?.conditions?.find((condition: Condition) => condition.type === type);
}

export async function waitForPod(namespace: string, name: string, timeoutSeconds = 120): Promise<void> {
  await kubectl(
    'wait',
    `--namespace=${namespace}`,
    `pod/${name}`,
    '--for=condition=Ready',
    `--timeout=${timeoutSeconds}s`,
  );
}
