/**
 * What our names, labels and accounts mean is guarded by the API server alone. The attacker is the strongest tenant there is:
 * one with every right in the namespace, so whatever is refused is refused by admission and not for want of a right.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../../hack/shell/wait.ts';
import {
  account,
  ask,
  bind,
  component,
  expectAllowed,
  expectRefused,
  person,
  tryCreate,
  tryPatch,
  untilMay,
} from './actors.ts';
import { apply, get, image, kubectl, type Live, type Manifest, OPERATOR_NAMESPACE, storyNamespace } from './cluster.ts';

const owner = person('story-owner');
const rescuer = person('story-owner', 'oz0:break-glass');
const controller = component('controller');
const edge = component('edge');
const node = { user: 'system:node:node1', groups: ['system:nodes', 'system:authenticated'] };

let space: Awaited<ReturnType<typeof storyNamespace>>;
let namespace: string;
/** A pod of the tool that the controller's Deployment made. */
let toolPod: string;

const podSpec = (more: Record<string, unknown> = {}) => ({
  automountServiceAccountToken: false,
  enableServiceLinks: false,
  terminationGracePeriodSeconds: 1,
  securityContext: { runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } },
  containers: [
    {
      name: 'main',
      image: image('pause'),
      imagePullPolicy: 'Never',
      resources: { limits: { memory: '32Mi' } },
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
    },
  ],
  ...more,
});

const manifest = (apiVersion: string, kind: string, name: string, rest: Record<string, unknown> = {}): Manifest => ({
  apiVersion,
  kind,
  ...rest,
  metadata: { name, namespace, ...(rest['metadata'] as Record<string, unknown> | undefined) },
});

const pod = (name: string, metadata: Record<string, unknown> = {}, spec: Record<string, unknown> = {}) =>
  manifest('v1', 'Pod', name, { metadata, spec: podSpec(spec) });

interface Template {
  metadata: { labels: Record<string, string> };
  spec: Record<string, unknown>;
}

/** Every kind that Kubernetes makes pods of. */
const workloads: Record<string, (name: string, template: Template) => Manifest> = {
  Deployment: (name, template) => manifest('apps/v1', 'Deployment', name, { spec: selecting(template) }),
  DaemonSet: (name, template) => manifest('apps/v1', 'DaemonSet', name, { spec: selecting(template) }),
  StatefulSet: (name, template) =>
    manifest('apps/v1', 'StatefulSet', name, { spec: { ...selecting(template), serviceName: 'none' } }),
  ReplicaSet: (name, template) => manifest('apps/v1', 'ReplicaSet', name, { spec: selecting(template) }),
  ReplicationController: (name, template) =>
    manifest('v1', 'ReplicationController', name, { spec: { selector: { app: 'mine' }, template } }),
  PodTemplate: (name, template) => manifest('v1', 'PodTemplate', name, { template }),
  Job: (name, template) => manifest('batch/v1', 'Job', name, { spec: { template: never(template) } }),
  CronJob: (name, template) =>
    manifest('batch/v1', 'CronJob', name, {
      spec: { schedule: '0 0 1 1 *', jobTemplate: { spec: { template: never(template) } } },
    }),
};
const selecting = (template: Template) => ({ selector: { matchLabels: { app: 'mine' } }, template });
const never = ({ metadata, spec }: Template) => ({ metadata, spec: { ...spec, restartPolicy: 'Never' } });
const template = (labels: Record<string, string> = {}, spec: Record<string, unknown> = {}): Template => ({
  metadata: { labels: { app: 'mine', ...labels } },
  spec: podSpec(spec),
});

/** A tool's workload as our controller writes it. */
const toolDeployment = (
  spec: Record<string, unknown> = {},
  labels: Record<string, string> = { 'oz0.ai/tool': 'sample' },
) =>
  manifest('apps/v1', 'Deployment', 'oz0t-sample', {
    metadata: { labels: { 'oz0.ai/tool': 'sample' } },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'sample' } },
      template: {
        metadata: { labels: { app: 'sample', ...labels } },
        spec: podSpec({ serviceAccountName: 'oz0t-sample', ...spec }),
      },
    },
  });
const toolService = () =>
  manifest('v1', 'Service', 'oz0t-sample', {
    metadata: { labels: { 'oz0.ai/tool': 'sample' } },
    spec: { selector: { 'oz0.ai/tool': 'sample' }, ports: [{ port: 443, targetPort: 8443 }] },
  });
const wall = (name: string, metadata: Record<string, unknown> = {}) =>
  manifest('networking.k8s.io/v1', 'NetworkPolicy', name, {
    metadata,
    spec: { podSelector: { matchLabels: { 'oz0.ai/tool': 'sample' } }, policyTypes: ['Ingress', 'Egress'] },
  });

const asController = (object: Manifest) =>
  ask(controller, ['apply', '--server-side', '--field-manager=story', '--filename=-'], object);

beforeAll(async () => {
  space = await storyNamespace('admission');
  namespace = space.name;
  await bind(namespace, owner, 'cluster-admin');
  await untilMay(owner, 'create', 'pods', namespace);
  // All of a tool, written with the controller's own role and nothing more.
  for (const object of [
    manifest('v1', 'ServiceAccount', 'oz0t-sample', { automountServiceAccountToken: false }),
    manifest('v1', 'ConfigMap', 'oz0', { data: { 'trust-domain': 'story' } }),
    wall('oz0t-sample', { labels: { 'oz0.ai/tool': 'sample' } }),
    toolService(),
    toolDeployment(),
    manifest('policy/v1', 'PodDisruptionBudget', 'oz0t-sample', {
      spec: { maxUnavailable: 1, selector: { matchLabels: { 'oz0.ai/tool': 'sample' } } },
    }),
  ]) {
    expectAllowed(await asController(object));
  }
  // And something of the tenant's own.
  await apply(pod('own'), workloads['Deployment']?.('own', template()) as Manifest);
  toolPod = await waitFor(
    'a pod of the tool',
    async () => (await get('pods', `--namespace=${namespace}`, '--selector=oz0.ai/tool')).items[0]?.metadata.name,
    { timeoutSeconds: 60 },
  );
});

afterAll(async () => {
  await space?.[Symbol.asyncDispose]();
});

test('[D04] the API server finds nothing wrong in the policies', async () => {
  const { items } = await get('validatingadmissionpolicies', '--selector=app.kubernetes.io/name=oz0-operator');
  expect(items.length).toBeGreaterThan(5);
  for (const { metadata, status } of items) {
    expect(status.observedGeneration, metadata.name).toBe(metadata.generation);
    expect(status.typeChecking?.expressionWarnings ?? [], metadata.name).toEqual([]);
  }
});

describe('pods', () => {
  const message = /only the operator makes them: write a Tool or a Plugin/;

  test.each([
    ['with our name', () => pod('oz0t-mine')],
    ['with our label', () => pod('mine', { labels: { 'oz0.ai/tool': 'sample' } })],
    ["with our plugin's label", () => pod('mine', { labels: { 'oz0.ai/plugin': 'sample' } })],
    ["as a tool's account", () => pod('mine', {}, { serviceAccountName: 'oz0t-sample' })],
    ["as a tool's account, by the old field", () => pod('mine', {}, { serviceAccount: 'oz0t-sample' })],
  ])('[D04] [case 98] a tenant cannot create a pod %s', async (_, object) => {
    expectRefused(await tryCreate(owner, object()), 'tool-pods', message);
  });

  test('[D04] [case 98] nor one whose name is generated from ours', async () => {
    const { metadata, ...rest } = pod('');
    const object = { ...rest, metadata: { namespace, generateName: 'oz0t-mine-' } } as unknown as Manifest;
    expectRefused(await tryCreate(owner, object), 'tool-pods', message);
    expect(metadata.namespace).toBe(namespace);
  });

  test("[D04] not even the controller makes pods of its own: its workloads' do", async () => {
    const { ok, output } = await tryCreate(controller, pod('oz0t-mine'));
    expect(ok).toBe(false);
    expect(output).toMatch(/cannot create resource "pods"/);
  });

  test.each<[string, () => unknown]>([
    [
      'the image of its container',
      () => ({ spec: { containers: [{ ...podSpec().containers[0], image: 'evil.example/x:1' }] } }),
    ],
    ['the time it has left', () => ({ spec: { activeDeadlineSeconds: 1 } })],
  ])("[D04] a tenant cannot change of a tool's pod %s", async (_, patch) => {
    expectRefused(
      await tryPatch(owner, namespace, `pod/${toolPod}`, patch()),
      'tool-pods',
      /what it runs comes from its Tool or Plugin/,
    );
  });

  test('[D04] nor its resources, by resizing', async () => {
    const patch = { spec: { containers: [{ ...podSpec().containers[0], resources: { limits: { memory: '1Gi' } } }] } };
    expectRefused(
      await tryPatch(owner, namespace, `pod/${toolPod}`, patch, 'resize'),
      'tool-pods',
      /what it runs comes from its Tool/,
    );
  });

  test.each<[string, unknown]>([
    ['take the label off, which would take it out of its sandbox', { labels: { 'oz0.ai/tool': null } }],
    ['give it another', { labels: { 'oz0.ai/tool': 'other' } }],
    ["take its workload's label off, which would set it free", { labels: { 'pod-template-hash': null } }],
    ['add a label of ours', { labels: { 'oz0.ai/component': 'gateway' } }],
    ['take its owner away', { ownerReferences: null }],
  ])("[D04] [S05] [case 98] a tenant cannot, with a tool's pod, %s", async (_, metadata) => {
    const answer = await tryPatch(owner, namespace, `pod/${toolPod}`, { metadata });
    expectRefused(answer, 'tool-pods', /set by the operator only, since NetworkPolicies select by them/);
  });

  test('[S05] a tenant cannot give orders to the runtime by annotations', async () => {
    const patch = { metadata: { annotations: { 'k8s.v1.cni.cncf.io/networks': 'other' } } };
    expectRefused(
      await tryPatch(owner, namespace, `pod/${toolPod}`, patch),
      'tool-pods',
      /container runtimes and network plugins obey them/,
    );
    // A network plugin may, having rights on pods everywhere: here the cluster's admin.
    await kubectl(
      'annotate',
      'pod',
      toolPod,
      `--namespace=${namespace}`,
      'plugin.example/address=x',
      '--dry-run=server',
    );
  });

  test('[D04] [case 98] a tenant cannot make a pod of their own into a tool', async () => {
    const patch = { metadata: { labels: { 'oz0.ai/tool': 'sample' } } };
    expectRefused(await tryPatch(owner, namespace, 'pod/own', patch), 'tool-pods', /set by the operator only/);
  });

  test("[D04] [case 98] a tenant cannot make a pod into a tool by binding it, nor bind a tool's", async () => {
    const binding = (name: string, labels: Record<string, string> = {}) => ({
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, namespace, labels },
      target: { kind: 'Node', name: 'node1' },
    });
    await apply(pod('unbound', {}, { schedulerName: 'none' }));
    const paths = (name: string) =>
      ['bindings', `pods/${name}/binding`].map((last) => `/api/v1/namespaces/${namespace}/${last}?dryRun=All`);
    const bind = (path: string, object: Manifest) => ask(owner, ['create', `--raw=${path}`, '--filename=-'], object);
    for (const path of paths('unbound')) {
      const answer = await bind(path, binding('unbound', { 'oz0.ai/tool': 'sample' }));
      expectRefused(answer, 'tool-bindings', /leave them out of the Binding/);
      const { output } = await bind(path, binding('unbound', { mine: 'x' }));
      expect(output).not.toContain('ValidatingAdmissionPolicy');
    }
    for (const path of paths(toolPod)) {
      expectRefused(await bind(path, binding(toolPod)), 'tool-bindings', /only a scheduler binds/);
    }
  });

  test('[case 110] a tenant may delete and evict, and label with labels of their own', async () => {
    expectAllowed(
      await tryPatch(owner, namespace, `pod/${toolPod}`, { metadata: { labels: { 'mine.example/x': 'y' } } }),
    );
    expectAllowed(await ask(owner, ['delete', 'pod', toolPod, `--namespace=${namespace}`, '--dry-run=server']));
    const eviction = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: toolPod, namespace },
      deleteOptions: { dryRun: ['All'] },
    };
    const path = `/api/v1/namespaces/${namespace}/pods/${toolPod}/eviction`;
    const { output } = await ask(owner, ['create', `--raw=${path}`, '--filename=-'], eviction);
    expect(output).not.toContain('ValidatingAdmissionPolicy');
  });

  test('what a tenant does with pods of their own is no affair of ours', async () => {
    expectAllowed(await tryCreate(owner, pod('fine', { labels: { app: 'fine', 'oz0.ai/mine': 'x' } })));
    expectAllowed(
      await tryPatch(owner, namespace, 'pod/own', { metadata: { labels: { a: 'b' }, annotations: { c: 'd' } } }),
    );
  });
});

describe('workloads', () => {
  const message = /belong to tools, and only the operator makes these: write a Tool or a Plugin/;

  describe.each(Object.entries(workloads))('%s', (kind, make) => {
    test.each<[string, () => Manifest]>([
      ['with our name', () => make('oz0t-mine', template())],
      ['with our label on its pods', () => make('mine', template({ 'oz0.ai/tool': 'sample' }))],
      ["with our plugin's label on its pods", () => make('mine', template({ 'oz0.ai/plugin': 'sample' }))],
      ["with a tool's account", () => make('mine', template({}, { serviceAccountName: 'oz0t-sample' }))],
      ["with a tool's account, by the old field", () => make('mine', template({}, { serviceAccount: 'oz0t-sample' }))],
      [
        'with our label on itself',
        () => {
          const made = make('mine', template());
          return { ...made, metadata: { ...made.metadata, labels: { 'oz0.ai/tool': 'sample' } } };
        },
      ],
    ])(`[D04] [case 98] a tenant cannot create a ${kind} %s`, async (_, object) => {
      expectRefused(await tryCreate(owner, object()), 'tool-workloads', message);
    });

    test(`a tenant may create any other ${kind}`, async () => {
      expectAllowed(await tryCreate(owner, make('mine', template())));
    });
  });

  test.each<[string, unknown]>([
    ['the label', { metadata: { labels: { 'oz0.ai/tool': 'sample' } } }],
    ['the account', { spec: { serviceAccountName: 'oz0t-sample' } }],
  ])("[D04] [case 98] a tenant cannot give the template of a Deployment of their own a tool's %s", async (_, patch) => {
    const answer = await tryPatch(owner, namespace, 'deployment/own', { spec: { template: patch } });
    expectRefused(answer, 'tool-workloads', /belong to tools: choose others/);
  });

  test.each<[string, unknown]>([
    ['its image', { spec: { template: { spec: { containers: [{ name: 'main', image: 'evil.example/x:1' }] } } } }],
    ['its account', { spec: { template: { spec: { serviceAccountName: 'default' } } } }],
    ['the label of its pods', { spec: { template: { metadata: { labels: { 'oz0.ai/tool': null } } } } }],
    ['annotations of its pods', { spec: { template: { metadata: { annotations: { 'x.example/runtime': 'y' } } } } }],
    ['its own label', { metadata: { labels: { 'oz0.ai/tool': null } } }],
    ['its owner', { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'own', uid: 'x' }] } }],
  ])("[D04] a tenant cannot change of a tool's Deployment %s", async (_, patch) => {
    const answer = await tryPatch(owner, namespace, 'deployment/oz0t-sample', patch);
    expectRefused(
      answer,
      'tool-workloads',
      /it may be restarted and scaled; for what it runs, change its Tool or Plugin/,
    );
  });

  test('[case 98] a tenant cannot change the ReplicaSet that Kubernetes made of it', async () => {
    const { items } = await get('replicasets', `--namespace=${namespace}`, '--selector=oz0.ai/tool');
    const patch = { spec: { template: { metadata: { annotations: { a: 'b' } } } } };
    const answer = await tryPatch(owner, namespace, `replicaset/${items[0].metadata.name}`, patch);
    expectRefused(answer, 'tool-workloads', /runs a tool/);
  });

  test('[case 111] a tenant may restart and scale a tool, and Kubernetes rolls it out', async () => {
    expectAllowed(await ask(owner, ['rollout', 'restart', 'deployment/oz0t-sample', `--namespace=${namespace}`]));
    expectAllowed(
      await ask(owner, [
        'scale',
        'deployment/oz0t-sample',
        '--replicas=2',
        `--namespace=${namespace}`,
        '--dry-run=server',
      ]),
    );
    await waitFor(
      'a second ReplicaSet',
      async () =>
        (await get('replicasets', `--namespace=${namespace}`, '--selector=oz0.ai/tool')).items.length > 1 || undefined,
      { timeoutSeconds: 60 },
    );
    toolPod = await waitFor(
      'a pod of the new template, which stays',
      async () =>
        (await get('pods', `--namespace=${namespace}`, '--selector=oz0.ai/tool')).items.find(
          (one: Live) => one.metadata.annotations?.['kubectl.kubernetes.io/restartedAt'] !== undefined,
        )?.metadata.name,
      { timeoutSeconds: 60 },
    );
  });
});

describe('accounts', () => {
  test.each<[string, () => Manifest]>([
    ['of our name', () => manifest('v1', 'ServiceAccount', 'oz0t-mine')],
    [
      'with our label',
      () => manifest('v1', 'ServiceAccount', 'mine', { metadata: { labels: { 'oz0.ai/tool': 'sample' } } }),
    ],
  ])('[D04] a tenant cannot create a ServiceAccount %s', async (_, object) => {
    expectRefused(
      await tryCreate(owner, object()),
      'tool-accounts',
      /belong to tools, and only the operator writes them/,
    );
  });

  test("[D04] a tenant cannot change a tool's ServiceAccount", async () => {
    const patch = { imagePullSecrets: [{ name: 'mine' }] };
    expectRefused(
      await tryPatch(owner, namespace, 'serviceaccount/oz0t-sample', patch),
      'tool-accounts',
      /only the operator writes them/,
    );
  });

  test.each(['oz0-ca', 'oz0-gateway'])(
    "[D04] [case 79] a tenant gets no token of a tool's account, for audience %s",
    async (audience) => {
      const args = ['create', 'token', 'oz0t-sample', `--namespace=${namespace}`, `--audience=${audience}`];
      expectRefused(await ask(owner, args), 'tool-accounts', /only kubelets get one, for the tool's own pod/);
      expectRefused(
        await ask(owner, [...args, '--bound-object-kind=Pod', `--bound-object-name=${toolPod}`]),
        'tool-accounts',
        /only kubelets get one/,
      );
    },
  );

  test('[D04] [case 79] not even the controller gets one, nor the tool itself, nor another tool', async () => {
    for (const actor of [controller, account(namespace, 'oz0t-sample'), account(namespace, 'oz0t-other')]) {
      const { ok } = await ask(actor, [
        'create',
        'token',
        'oz0t-sample',
        `--namespace=${namespace}`,
        '--audience=oz0-ca',
      ]);
      expect(ok).toBe(false);
    }
  });

  test('[D04] a kubelet gets one, for the pod that it runs', async () => {
    const live = await waitFor(
      'the pod has a node',
      async () => {
        const found = await get('pod', toolPod, `--namespace=${namespace}`);
        return found.spec.nodeName ? found : undefined;
      },
      { timeoutSeconds: 30 },
    );
    const kubelet = { ...node, user: `system:node:${live.spec.nodeName}` };
    const args = ['create', 'token', 'oz0t-sample', `--namespace=${namespace}`, '--audience=oz0-ca'];
    const bound = [
      `--bound-object-kind=Pod`,
      `--bound-object-name=${toolPod}`,
      `--bound-object-uid=${live.metadata.uid}`,
    ];
    // Which audiences a node may ask for is in the API server's own admission: those that the pod's volumes name.
    const { output } = await ask(kubelet, [...args, ...bound]);
    expect(output).not.toContain('ValidatingAdmissionPolicy');
  });

  test("[D04] [case 79] a tenant gets no Secret with a tool's token in it", async () => {
    const secret = manifest('v1', 'Secret', 'stolen', {
      metadata: { annotations: { 'kubernetes.io/service-account.name': 'oz0t-sample' } },
      type: 'kubernetes.io/service-account-token',
    });
    expectRefused(await tryCreate(owner, secret), 'tool-accounts', /so no Secret may hold one/);
  });

  test("a tenant's own accounts, tokens and Secrets are no affair of ours", async () => {
    expectAllowed(await tryCreate(owner, manifest('v1', 'ServiceAccount', 'mine')));
    expectAllowed(await tryCreate(owner, manifest('v1', 'Secret', 'mine', { stringData: { a: 'b' } })));
    expectAllowed(
      await ask(owner, ['create', 'token', 'default', `--namespace=${namespace}`, '--audience=oz0-gateway']),
    );
  });
});

describe('where a tool is found', () => {
  const slice = (name: string, labels: Record<string, string>) =>
    manifest('discovery.k8s.io/v1', 'EndpointSlice', name, {
      metadata: { labels },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.244.1.99'] }],
      ports: [{ port: 8443 }],
    });

  test.each<[string, () => Manifest, RegExp]>([
    [
      'a Service of our name',
      () => manifest('v1', 'Service', 'oz0t-mine', { spec: { ports: [{ port: 1 }] } }),
      /Services named oz0t-/,
    ],
    [
      'Endpoints of our name',
      () => manifest('v1', 'Endpoints', 'oz0t-sample', { subsets: [] }),
      /only Kubernetes' own controllers do/,
    ],
    [
      "an EndpointSlice of a tool's Service",
      () => slice('mine', { 'kubernetes.io/service-name': 'oz0t-sample' }),
      /only Kubernetes' own controllers do/,
    ],
    [
      'an EndpointSlice with our label',
      () => slice('mine', { 'oz0.ai/tool': 'sample' }),
      /only Kubernetes' own controllers do/,
    ],
  ])('[D04] a tenant cannot create %s', async (_, object, message) => {
    expectRefused(await tryCreate(owner, object()), 'tool-services', message);
  });

  test("[D04] a tenant cannot turn a tool's Service to pods of their own", async () => {
    const patch = { spec: { selector: { 'oz0.ai/tool': null, app: 'mine' } } };
    const labels = { metadata: { labels: { 'oz0.ai/tool': null } } };
    expectRefused(
      await tryPatch(owner, namespace, 'service/oz0t-sample', labels, 'status'),
      'tool-services',
      /only the operator writes them/,
    );
    expectRefused(
      await tryPatch(owner, namespace, 'service/oz0t-sample', patch),
      'tool-services',
      /only the operator writes them/,
    );
  });

  test("[D04] Kubernetes writes the tool's EndpointSlice, and a tenant cannot change it", async () => {
    const found = await waitFor(
      'an EndpointSlice',
      async () =>
        (await get('endpointslices', `--namespace=${namespace}`, '--selector=kubernetes.io/service-name=oz0t-sample'))
          .items[0],
      { timeoutSeconds: 30 },
    );
    const object = `endpointslice/${found.metadata.name}`;
    const message = /only Kubernetes' own controllers do/;
    const added = { endpoints: [{ addresses: ['10.244.1.99'] }] };
    expectRefused(await tryPatch(owner, namespace, object, added), 'tool-services', message);
    const stolen = { metadata: { labels: { 'kubernetes.io/service-name': 'mine' } } };
    expectRefused(await tryPatch(owner, namespace, object, stolen), 'tool-services', message);
  });

  test("a tenant's own Services and slices are no affair of ours", async () => {
    expectAllowed(await tryCreate(owner, manifest('v1', 'Service', 'mine', { spec: { ports: [{ port: 1 }] } })));
    expectAllowed(await tryCreate(owner, slice('mine', { 'kubernetes.io/service-name': 'mine' })));
  });
});

describe('Tools', () => {
  const tool = (name: string, metadata: Record<string, unknown> = {}, spec: Record<string, unknown> = {}) =>
    manifest('oz0.ai/v1alpha1', 'Tool', name, {
      metadata,
      spec: { image: { reference: image('tool-time'), command: ['mcp-server-time'] }, ...spec },
    });

  test('[D04] [K02] a tenant applies a Tool, but cannot say that it is of a Plugin', async () => {
    expectAllowed(await tryCreate(owner, tool('mine')));
    const message = /set by the operator, on the Tools that it makes from a Plugin/;
    expectRefused(await tryCreate(owner, tool('mine', {}, { plugin: 'other' })), 'tools', message);
    expectRefused(await tryCreate(owner, tool('mine', { labels: { 'oz0.ai/plugin': 'other' } })), 'tools', message);
  });

  test('[K01] the controller does, and nobody takes it back', async () => {
    const made = tool('story', { labels: { 'oz0.ai/plugin': 'story' } }, { plugin: 'story' });
    expectAllowed(await asController(made));
    const message = /is made from Plugin story: change the Plugin/;
    expectRefused(await tryPatch(owner, namespace, 'tool/story', { spec: { plugin: null } }), 'tools', message);
    expectRefused(
      await tryPatch(owner, namespace, 'tool/story', { metadata: { labels: { 'oz0.ai/plugin': null } } }),
      'tools',
      message,
    );
    await kubectl('delete', 'tools.oz0.ai', 'story', `--namespace=${namespace}`);
  });

  test.each(['kube-system', OPERATOR_NAMESPACE])(
    '[D04] no Tool is put into %s, not even by the admin',
    async (where) => {
      const answer = await tryCreate(person('story-admin', 'system:masters'), tool('mine', { namespace: where }));
      expectRefused(answer, 'tools', /beside the Secrets of the cluster or the operator/);
    },
  );
});

test('[D04] a tenant cannot write whom tools and agents trust', async () => {
  const forged = manifest('v1', 'ConfigMap', 'oz0', { data: { 'ca.crt': 'mine' } });
  const message = /only the operator writes it/;
  expectRefused(
    await ask(owner, ['apply', '--server-side', '--force-conflicts', '--dry-run=server', '--filename=-'], forged),
    'trust',
    message,
  );
  const elsewhere = await storyNamespace('admission-b');
  await using _ = elsewhere;
  await bind(elsewhere.name, owner, 'cluster-admin');
  await untilMay(owner, 'create', 'configmaps', elsewhere.name);
  expectRefused(
    await tryCreate(owner, { ...forged, metadata: { name: 'oz0', namespace: elsewhere.name } }),
    'trust',
    message,
  );
  expectAllowed(await tryCreate(owner, manifest('v1', 'ConfigMap', 'mine', { data: {} })));
});

describe('a way into a tool pod', () => {
  const message = /exec, attach, port-forward, proxy and ephemeral containers are refused there/;
  const ways: [string, () => string[]][] = [
    ['exec', () => ['exec', toolPod, '--', 'id']],
    ['attach', () => ['attach', toolPod]],
    ['port-forward', () => ['port-forward', toolPod, '28443:8443']],
    ['an ephemeral container', () => ['debug', toolPod, `--image=${image('probe')}`, '--profile=restricted']],
    ['the proxy', () => ['get', `--raw=/api/v1/namespaces/${namespace}/pods/${toolPod}/proxy/`]],
    [
      'the proxy with scheme and port',
      () => ['get', `--raw=/api/v1/namespaces/${namespace}/pods/https:${toolPod}:8443/proxy/`],
    ],
    [
      'the proxy of its Service',
      () => ['get', `--raw=/api/v1/namespaces/${namespace}/services/https:oz0t-sample:443/proxy/`],
    ],
  ];

  test.each(ways)('[D04] [S04] a tenant gets none by %s', async (_, args) => {
    expectRefused(await ask(owner, [`--namespace=${namespace}`, ...args()]), 'tool-debugging', message);
  });

  test('[D04] the break-glass group gets one', async () => {
    // What the kubelet then says is another matter: the container may not run yet.
    for (const args of [ways[0]?.[1](), ways[4]?.[1](), ways[3]?.[1]()]) {
      const { output } = await ask(rescuer, [`--namespace=${namespace}`, ...(args ?? [])]);
      expect(output).not.toContain('ValidatingAdmissionPolicy');
    }
  });

  test("pods of a tenant's own may be debugged", async () => {
    const { output } = await ask(owner, ['exec', 'own', `--namespace=${namespace}`, '--', 'id']);
    expect(output).not.toContain('ValidatingAdmissionPolicy');
  });
});

describe("a tool's NetworkPolicy", () => {
  const message = /the walls of tools' sandboxes, and only the operator writes and removes them/;

  test.each<[string, () => ReturnType<typeof ask>]>([
    ['created by name', () => tryCreate(owner, wall('oz0t-mine'))],
    ['created with our label', () => tryCreate(owner, wall('mine', { labels: { 'oz0.ai/tool': 'sample' } }))],
    ['opened', () => tryPatch(owner, namespace, 'networkpolicy/oz0t-sample', { spec: { egress: [{}] } })],
    [
      'freed of our label',
      () => tryPatch(owner, namespace, 'networkpolicy/oz0t-sample', { metadata: { labels: { 'oz0.ai/tool': null } } }),
    ],
    [
      'deleted',
      () => ask(owner, ['delete', 'networkpolicy', 'oz0t-sample', `--namespace=${namespace}`, '--dry-run=server']),
    ],
    [
      'deleted with all others',
      () =>
        ask(owner, ['delete', `--raw=/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies?dryRun=All`]),
    ],
  ])('[S04] [S05] cannot be %s by a tenant', async (_, attempt) => {
    expectRefused(await attempt(), 'tool-network-policies', message);
  });

  test("[case 97] a tenant's own may be written, and is for the Tool's status to report", async () => {
    expectAllowed(await tryCreate(owner, wall('mine')));
  });

  test('[case 110] goes with its owner, and with its namespace', async () => {
    const elsewhere = await storyNamespace('admission-gone');
    const within = { namespace: elsewhere.name };
    await apply(manifest('v1', 'ConfigMap', 'parent', { metadata: within, data: {} }));
    const { metadata } = await get('configmap', 'parent', `--namespace=${elsewhere.name}`);
    const ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'parent', uid: metadata.uid }];
    expectAllowed(await asController(wall('oz0t-owned', { ...within, ownerReferences })));
    expectAllowed(await asController(wall('oz0t-alone', within)));
    await kubectl('delete', 'configmap', 'parent', `--namespace=${elsewhere.name}`);
    await waitFor(
      'the garbage collector takes it',
      async () => {
        const { items } = await get('networkpolicies', `--namespace=${elsewhere.name}`);
        return items.length === 1 || undefined;
      },
      { timeoutSeconds: 60 },
    );
    await kubectl('delete', 'namespace', elsewhere.name, '--timeout=60s');
  });
});

describe('our own parts', () => {
  test.each<[string, () => Manifest, RegExp]>([
    [
      'a workload of another name',
      () => ({ ...toolDeployment(), metadata: { name: 'mine', namespace } }),
      /writes only what is named oz0t-/,
    ],
    [
      "a tool beside the cluster's Secrets",
      () => ({ ...toolDeployment(), metadata: { name: 'oz0t-sample', namespace: 'kube-system' } }),
      /no tool runs in namespace kube-system/,
    ],
    [
      "a tool beside edge's Secret",
      () => ({ ...toolDeployment(), metadata: { name: 'oz0t-sample', namespace: OPERATOR_NAMESPACE } }),
      /no tool runs in namespace/,
    ],
    [
      "a tool with another's account",
      () => toolDeployment({ serviceAccountName: 'default' }),
      /a ServiceAccount named oz0t-/,
    ],
    ['a tool without the label that its sandbox selects', () => toolDeployment({}, {}), /has the label oz0.ai\/tool/],
    [
      "a tool with the API server's token",
      () => toolDeployment({ automountServiceAccountToken: true }),
      /no token but one of audience oz0-ca/,
    ],
    [
      'a tool with a token of another audience',
      () =>
        toolDeployment({
          volumes: [{ name: 't', projected: { sources: [{ serviceAccountToken: { path: 't', audience: 'x' } }] } }],
        }),
      /no token but one of audience oz0-ca/,
    ],
    [
      'a tool with a token of the default audience',
      () =>
        toolDeployment({ volumes: [{ name: 't', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] }),
      /no token but one of audience oz0-ca/,
    ],
    ["a tool in its node's network", () => toolDeployment({ hostNetwork: true }), /nothing of its node/],
    [
      "a tool with its node's files",
      () => toolDeployment({ volumes: [{ name: 'h', hostPath: { path: '/' } }] }),
      /nothing of its node/,
    ],
    [
      'a privileged tool',
      () => toolDeployment({ containers: [{ name: 'x', image: 'x', securityContext: { privileged: true } }] }),
      /no privileges and cannot gain any/,
    ],
    [
      'a Service outside the cluster',
      () => ({ ...toolService(), spec: { type: 'NodePort', ports: [{ port: 443 }] } }),
      /within the cluster only/,
    ],
  ])('[D02] the controller cannot write %s', async (_, object, message) => {
    const args = [
      'apply',
      '--server-side',
      '--force-conflicts',
      '--field-manager=story',
      '--dry-run=server',
      '--filename=-',
    ];
    expectRefused(await ask(controller, args, object()), 'controller', message);
  });

  test('[D02] the controller may write a token of the audience that edge signs for', async () => {
    const volumes = [
      {
        name: 't',
        projected: {
          sources: [{ serviceAccountToken: { path: 't', audience: 'oz0-ca' } }, { configMap: { name: 'oz0' } }],
        },
      },
    ];
    const args = ['apply', '--server-side', '--field-manager=story', '--dry-run=server', '--filename=-'];
    expectAllowed(await ask(controller, args, toolDeployment({ volumes })));
  });

  test('[D02] edge writes its own Secret and bundle only, and no token of an account', async () => {
    const within = { metadata: { namespace: OPERATOR_NAMESPACE } };
    const message = /edge writes the Secret oz0-edge/;
    expectRefused(await tryCreate(edge, manifest('v1', 'Secret', 'other', within)), 'edge', message);
    expectRefused(await tryCreate(edge, manifest('v1', 'ConfigMap', 'other', within)), 'edge', message);
    const token = manifest('v1', 'Secret', 'oz0-edge', {
      metadata: {
        namespace: OPERATOR_NAMESPACE,
        annotations: { 'kubernetes.io/service-account.name': 'oz0-controller' },
      },
      type: 'kubernetes.io/service-account-token',
    });
    const { ok, output } = await tryCreate(edge, token);
    expect(ok).toBe(false);
    expect(output).toMatch(/edge writes the Secret oz0-edge|already exists/);
  });
});
