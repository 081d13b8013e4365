/** Install, upgrade, uninstall: what becomes of the kinds and of users' objects. On a real API server of its own. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type ApiServer, buildable, startApiServer } from './apiServer.ts';
import { chart, helm, NAMESPACE, runHelm } from './render.ts';

// Helm waits for the API server, which shares two cores with whatever else is tested.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const missing = helm === undefined || !buildable;

describe.skipIf(missing)(`the chart's life${missing ? " (skipped: the cluster's programs are not built)" : ''}`, () => {
  let server: ApiServer;
  let older: string;

  const onServer = (...args: string[]): string => {
    const { ok, output } = runHelm(...args, `--kubeconfig=${server.kubeconfig}`, `--namespace=${NAMESPACE}`);
    if (!ok) throw new Error(output);
    return output;
  };
  const plugins = async (): Promise<string[]> =>
    JSON.parse(await server.kubectl('get', 'plugins', '--all-namespaces', '--output=json')).items.map(
      ({ metadata }: { metadata: { namespace: string; name: string } }) => `${metadata.namespace}/${metadata.name}`,
    );
  const columnsOfPlugins = async (): Promise<string> =>
    await server.kubectl(
      'get',
      'crd',
      'plugins.oz0.ai',
      '--output=jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}',
    );

  beforeAll(async () => {
    server = await startApiServer();
    // As an older version would have been: its Plugins showed less.
    older = mkdtempSync(join(tmpdir(), 'oz0-chart-'));
    cpSync(chart, older, { recursive: true });
    const kind = join(older, 'templates', 'crds', 'plugins.yaml');
    writeFileSync(kind, readFileSync(kind, 'utf8').replace(/ {8}- name: Version\n(?: {10}.*\n)+/, ''));
  });

  afterAll(async () => {
    await server?.stop();
    if (older !== undefined) rmSync(older, { recursive: true, force: true });
  });

  test('[O01] helm install into an empty cluster works with no values', async () => {
    onServer('install', 'oz0', older, '--create-namespace');
    const workloads = await server.kubectl(
      'get',
      'deployments,daemonsets',
      `--namespace=${NAMESPACE}`,
      '--output=name',
    );
    expect(workloads.trim().split('\n').sort()).toEqual([
      'daemonset.apps/oz0-gateway',
      'deployment.apps/oz0-controller',
      'deployment.apps/oz0-edge',
      'deployment.apps/oz0-egress',
    ]);
    expect(await columnsOfPlugins()).not.toContain('Version');
  });

  test('[D04] the policies hold as soon as the API server has taken them in', async () => {
    await vi.waitFor(
      async () => {
        const attempt = server.kubectl('create', 'serviceaccount', 'oz0t-x', '--namespace=default', '--dry-run=server');
        await expect(attempt).rejects.toThrow(/tool-accounts.oz0.ai/);
      },
      { timeout: 15_000, interval: 300 },
    );
  });

  test("[O01] where the API server is, is found at install for the operator's own policies", async () => {
    const peers = await server.kubectl(
      'get',
      'networkpolicy',
      'oz0-edge',
      `--namespace=${NAMESPACE}`,
      '--output=jsonpath={.spec.egress[*].to[*].ipBlock.cidr}',
    );
    expect(peers).toContain('10.96.0.1/32');
  });

  test('[O01] helm upgrade upgrades the kinds, and keeps what users applied', async () => {
    await server.kubectl('create', 'namespace', 'tenant');
    const file = join(older, 'plugin.json');
    const object = { apiVersion: 'oz0.ai/v1alpha1', kind: 'Plugin', metadata: { name: 'mine', namespace: 'tenant' } };
    writeFileSync(file, JSON.stringify({ ...object, spec: { version: '1.0.0' } }));
    await server.kubectl('create', `--filename=${file}`);
    onServer('upgrade', 'oz0', chart);
    expect(await columnsOfPlugins()).toContain('Version');
    expect(await plugins()).toEqual(['tenant/mine']);
  });

  test('[O01] an upgrade that changes nothing writes nothing', async () => {
    const versions = () =>
      server.kubectl(
        'get',
        'deployments,daemonsets,services,networkpolicies,clusterroles,validatingadmissionpolicies,customresourcedefinitions',
        '--all-namespaces',
        '--selector=app.kubernetes.io/name=oz0-operator',
        '--output=jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.resourceVersion}{"\\n"}{end}',
      );
    const before = await versions();
    onServer('upgrade', 'oz0', chart);
    expect(await versions()).toBe(before);
  });

  test("[O01] helm uninstall leaves users' resources and their kinds, and nothing of the operator's", async () => {
    onServer('uninstall', 'oz0');
    expect(await plugins()).toEqual(['tenant/mine']);
    const left = await server.kubectl(
      'get',
      'deployments,daemonsets,services,configmaps,serviceaccounts,networkpolicies,poddisruptionbudgets,clusterroles,clusterrolebindings,roles,rolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings',
      '--all-namespaces',
      '--selector=app.kubernetes.io/name=oz0-operator',
      '--output=name',
    );
    expect(left.trim()).toBe('');
  });

  test('[O01] and it may be installed again', async () => {
    onServer('install', 'oz0', chart);
    expect(await plugins()).toEqual(['tenant/mine']);
  });
});
