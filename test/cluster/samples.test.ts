import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../../hack/shell/wait.ts';
import {
  callFunction,
  conditionOf,
  exec,
  get,
  kubectl,
  type Live,
  listFunctions,
  waitForCondition,
  waitForPod,
} from './cluster.ts';

const SAMPLES = join(import.meta.dirname, '../../config/samples');
const NAMESPACE = 'demo';
const AGENT = 'demo-agent';

describe('the samples, as a newcomer applies them', () => {
  beforeAll(async () => {
    await kubectl('apply', '--server-side', '--kustomize', SAMPLES);
    await waitForCondition('plugin', NAMESPACE, 'demo', 'Ready', 'True', 240);
    await waitForPod(NAMESPACE, AGENT);
  });

  afterAll(async () => {
    await kubectl('delete', '--kustomize', SAMPLES, '--wait=false', '--ignore-not-found');
  });

  test('[K01] [K03] [K05] a Plugin makes its Tools, owned by it, and each is ready with what it listed', async () => {
    const plugin = await get('plugin', 'demo', `--namespace=${NAMESPACE}`);
    const { items } = await get('tools', `--namespace=${NAMESPACE}`);
    expect(items.map((tool: Live) => tool.metadata.name).sort()).toEqual([
      'demo-everything',
      'demo-files',
      'demo-time',
    ]);
    for (const tool of items) {
      expect(tool.metadata.ownerReferences).toMatchObject([
        { kind: 'Plugin', uid: plugin.metadata.uid, controller: true },
      ]);
      expect(tool.spec.plugin).toBe('demo');
      expect(conditionOf(tool, 'Ready')).toMatchObject({
        status: 'True',
        observedGeneration: tool.metadata.generation,
      });
      expect(tool.status.listing.count).toBeGreaterThan(0);
    }
  });

  const CLIENTS = [
    ['the v2 client, 2026-07-28', ['--client', 'v2', '--era', 'modern']],
    ['the v2 client, the older era', ['--client', 'v2', '--era', 'legacy']],
    ['the v1 client', ['--client', 'v1']],
  ] as const;

  test.each(CLIENTS)('[P01] [D05] %s lists and calls every tool through the gateway', async (_, options) => {
    const names = (await listFunctions(NAMESPACE, AGENT, ...options)).map(({ name }) => name);
    expect(names).toEqual(
      expect.arrayContaining(['demo_everything__echo', 'demo_time__get_current_time', 'demo_files__list_directory']),
    );
    expect(names).not.toContain('demo_files__edit_file');

    const time = await callFunction(
      NAMESPACE,
      AGENT,
      'demo_time__get_current_time',
      { timezone: 'Europe/Paris' },
      ...options,
    );
    expect(time.content[0].text).toContain('Europe/Paris');
    const echo = await callFunction(NAMESPACE, AGENT, 'demo_everything__echo', { message: 'ping' }, ...options);
    expect(echo.content[0].text).toContain('ping');
    const files = await callFunction(NAMESPACE, AGENT, 'demo_files__list_directory', { path: '/tmp' }, ...options);
    expect(files.isError ?? false).toBe(false);
  });

  test('[P01] a second, independent client: the inspector', async () => {
    const inspector = (...args: string[]) =>
      exec(NAMESPACE, AGENT, [
        'node',
        '-e',
        `const { readFileSync } = require('node:fs');
         const { spawnSync } = require('node:child_process');
         const token = readFileSync('/var/run/secrets/oz0/token', 'utf8').trim();
         const run = spawnSync('node', ['/app/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
           '--cli', '--server-url', 'https://oz0-gateway.oz0-system.svc/mcp', '--transport', 'http',
           '--header', 'Authorization: Bearer ' + token, ...process.argv.slice(1)], { encoding: 'utf8' });
         process.stdout.write(run.stdout); process.stderr.write(run.stderr); process.exitCode = run.status;`,
        '--',
        ...args,
      ]);
    const listed = await inspector('--method', 'tools/list');
    expect(listed.stderr + listed.stdout).toContain('demo_everything__echo');
    const called = await inspector(
      '--method',
      'tools/call',
      '--tool-name',
      'demo_everything__get-sum',
      '--tool-arg',
      'a=17',
      'b=25',
    );
    expect(called.stdout).toContain('42');
  });

  test("[P01] one endpoint per tool has the server's own names", async () => {
    const url = 'https://oz0-gateway.oz0-system.svc/tools/demo-everything/mcp';
    const names = (await listFunctions(NAMESPACE, AGENT, '--url', url)).map(({ name }) => name);
    expect(names).toContain('echo');
    expect((await callFunction(NAMESPACE, AGENT, 'echo', { message: 'own' }, '--url', url)).content[0].text).toContain(
      'own',
    );
  });

  test('[case 114] what kubectl shows a person first', async () => {
    const tools = await kubectl('get', 'tools', `--namespace=${NAMESPACE}`);
    expect(tools.split('\n')[0]?.split(/\s{2,}/)).toEqual(
      expect.arrayContaining(['NAME', 'ID', 'READY', 'SOURCE', 'AFFINITY', 'FUNCTIONS', 'AGE']),
    );
    const { items } = await get('events', `--namespace=${NAMESPACE}`);
    const reasons = items
      .filter((event: Live) => event.involvedObject.kind === 'Tool')
      .map((event: Live) => event.reason);
    expect(reasons.length).toBeGreaterThan(0);
  });

  test('[K01] deleting the Plugin removes all that was made for it, and nothing else', async () => {
    await kubectl('create', 'secret', 'generic', 'mine', `--namespace=${NAMESPACE}`, '--from-literal=a=b');
    await kubectl('delete', 'plugin', 'demo', `--namespace=${NAMESPACE}`);
    await waitFor(
      'everything of the plugin is gone',
      async () => {
        const { items } = await get(
          'tools,daemonsets,deployments,replicasets,pods,services,networkpolicies,serviceaccounts,poddisruptionbudgets,endpointslices',
          `--namespace=${NAMESPACE}`,
        );
        const left = items
          .map((object: Live) => `${object.kind}/${object.metadata.name}`)
          .filter((name: string) => /oz0t-|demo-(everything|files|time)/.test(name));
        if (left.length > 0) throw new Error(left.join(', '));
        return true;
      },
      { timeoutSeconds: 120, everyMs: 1000 },
    );
    expect((await get('secret', 'mine', `--namespace=${NAMESPACE}`)).metadata.name).toBe('mine');
  });
});
