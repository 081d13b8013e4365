/**
 * The whole system on this machine, from nothing to real calls: a two-node cluster, the operator, three MCP servers as a
 * Plugin, and an agent in a pod that lists and calls them through its node's gateway. Says what happens, and what to try.
 *
 *   hack/demo            all of it; a second time it is quick
 *   hack/demo --env      prints what puts kubectl, helm, oz0 and the kubeconfig in your shell: eval "$(hack/demo --env)"
 *   hack/demo --down     removes the cluster
 */
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { dirname, join } from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { kubeconfig } from './cluster/layout.ts';
import { program } from './cluster/programs.ts';
import { installOperator, script } from './operator.ts';
import { run } from './shell/command.ts';
import { report } from './shell/failure.ts';
import { elapsed, step } from './shell/steps.ts';

const namespace = 'demo';
const samples = join(import.meta.dirname, '../config/samples');

function kubectl(...args: string[]): Promise<string> {
  return run(program('kubectl'), ['--kubeconfig', kubeconfig, ...args], { timeoutSeconds: 300 });
}

/** What the agent's client prints; also when the call was refused, which its exit code says. */
async function agent(...args: string[]): Promise<string> {
  const command = ['exec', '--namespace', namespace, 'demo-agent', '--', 'node', '/app/agent.mjs', ...args];
  try {
    const { stdout } = await promisify(execFile)(program('kubectl'), ['--kubeconfig', kubeconfig, ...command]);
    return stdout;
  } catch (error) {
    if (error instanceof Error && 'stdout' in error && typeof error.stdout === 'string' && error.stdout !== '') {
      return error.stdout;
    }
    throw error;
  }
}

function say(text: string): void {
  console.log(`\n${text}`);
}

function indent(text: string): string {
  return text
    .trimEnd()
    .split('\n')
    .map((line) => `    ${line}`)
    .join('\n');
}

interface CallResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
  readonly _meta: Readonly<Record<string, string>>;
}

/** Calls a function and shows what an agent's model gets to see. */
async function showCall(name: string, args: Record<string, unknown>, ...options: string[]): Promise<CallResult> {
  const result: CallResult = JSON.parse(await agent('call', name, JSON.stringify(args), ...options));
  const text = result.content.map((block) => block.text ?? `[${block.type}]`).join('\n');
  console.log(`\n  ${name} ${JSON.stringify(args)} ${options.join(' ')}`);
  console.log(indent(text.length > 600 ? `${text.slice(0, 600)} …` : text || "(empty: the folder is the pod's own)"));
  return result;
}

/** A function that says it destroys waits for a person; whoever may `decide` decides, once, with kubectl. */
async function showApproval(): Promise<void> {
  const write = ['demo_files__write_file', { path: '/tmp/hello.txt', content: 'written once' }] as const;
  const sameCall = ['--meta', JSON.stringify({ 'ai.oz0/call-id': `demo-${randomUUID()}` })] as const;
  say(
    'A function that can overwrite waits for a person. The agent is not kept waiting: it is told, and may ask again.',
  );
  const waiting = await showCall(...write, ...sameCall);
  const name = waiting._meta['ai.oz0/call'] ?? '';
  say('A person sees the very arguments, and decides. Who decided is proved by the API server, not claimed:');
  console.log(indent(await kubectl('get', 'toolcall', name, '--namespace', namespace)));
  const { uid } = JSON.parse(
    await kubectl('get', 'toolcall', name, '--namespace', namespace, '--output=json'),
  ).metadata;
  const by = JSON.parse(await kubectl('auth', 'whoami', '--output=json')).status.userInfo.username;
  const patch = JSON.stringify({ spec: { decision: { verdict: 'approve', by, uid } } });
  console.log(indent(`kubectl patch toolcall ${name} -n ${namespace} --type=merge -p '${patch}'`));
  await kubectl('patch', 'toolcall', name, '--namespace', namespace, '--type=merge', `--patch=${patch}`);
  await kubectl(
    'wait',
    `toolcall/${name}`,
    '--namespace',
    namespace,
    '--for=jsonpath={.status.phase}=Succeeded',
    '--timeout=60s',
  );
  say('It ran once. The agent asks again under the same call-id, and gets the outcome of that one call:');
  await showCall(...write, ...sameCall);
}

async function demo(): Promise<void> {
  console.log('oz0-operator: a cluster, the operator, three real tools, real calls.\n');
  await script('cluster.ts', 'up');
  await script('images.ts', 'load', 'tool-everything', 'tool-filesystem', 'tool-time', 'agent');
  await installOperator();
  await step('apply the samples: a Plugin with three tools, and an Agent', async () => {
    await kubectl('apply', '--server-side', '--kustomize', samples);
    await kubectl('wait', '--namespace', namespace, 'plugin/demo', '--for=condition=Ready', '--timeout=180s');
    await kubectl('wait', '--namespace', namespace, 'pod/demo-agent', '--for=condition=Ready', '--timeout=120s');
  });

  say(
    'A Plugin became three Tools. Each runs in pods of its own: `node` tools on every node, `any` tools where there is room.',
  );
  console.log(indent(await kubectl('get', 'plugins,tools', '--namespace', namespace)));
  console.log(indent(await kubectl('get', 'pods', '--namespace', namespace, '--output=wide')));

  say('The agent is a pod. It has a ServiceAccount, and the Agent object says what that account may call:');
  console.log(indent(await kubectl('get', 'agents', '--namespace', namespace)));
  const tools: { name: string }[] = JSON.parse(await agent('list'));
  say(`It asks its node's gateway what there is (tools/list, MCP 2026-07-28). It sees ${tools.length} functions:`);
  console.log(indent(tools.map(({ name }) => name).join('\n')));

  say('It calls some. Each call is decided by the gateway, and goes by mutual TLS to one pod:');
  await showCall('demo_time__get_current_time', { timezone: 'Europe/Paris' });
  await showCall('demo_everything__get-sum', { a: 17, b: 25 });
  await showCall('demo_files__list_directory', { path: '/tmp' });
  say('The same from a client of the older protocol, with sessions:');
  await showCall('demo_everything__echo', { message: 'hello from 2025-11-25' }, '--client', 'v1');

  say('What it was not granted does not exist for it:');
  console.log('\n  demo_files__edit_file {"path":"/tmp/x","edits":[]}');
  console.log(indent(await agent('call', 'demo_files__edit_file', '{"path":"/tmp/x","edits":[]}')));

  await showApproval();

  say(`Done in ${elapsed()}. Go on:

    eval "$(./hack/demo --env)"
    kubectl get tools -n demo
    kubectl describe tool demo-time -n demo
    kubectl exec -n demo demo-agent -- node /app/agent.mjs list

  and apply a tool of your own: README.md, "Go on". ./hack/demo --down removes the cluster.`);
}

const { values } = parseArgs({
  options: {
    env: { type: 'boolean', default: false },
    down: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

try {
  if (values.help) {
    console.log('usage: hack/demo [--env | --down]\n\nSee the head of hack/demo.ts.');
  } else if (values.env) {
    console.log(`export KUBECONFIG='${kubeconfig}'`);
    const folders = [dirname(program('kubectl')), dirname(program('helm')), import.meta.dirname];
    console.log(`export PATH='${folders.join(':')}':"$PATH"`);
  } else if (values.down) {
    await script('cluster.ts', 'down');
  } else {
    await demo();
  }
} catch (error) {
  process.exitCode = report(error);
}
