import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { type KubeObject, resourceKey } from '../../engine/contract.ts';
import { at, recordsAt, textAt } from '../live.ts';
import {
  aConnection,
  aPlugin,
  aPluginTool,
  aRemoteTool,
  aTool,
  DIGEST,
  OPERATOR,
  observe,
} from '../testing/objects.ts';
import { TOOL_OWNS } from './children.ts';
import { TEMPLATE_ANNOTATION } from './pod.ts';
import { toolReconciler } from './reconcile.ts';

const reconciler = toolReconciler(OPERATOR, () => Promise.reject(new Error('not asked')));

function childrenOf(
  tool: KubeObject,
  plugins: readonly KubeObject[] = [],
  operator = OPERATOR,
  connections: readonly KubeObject[] = [],
): readonly KubeObject[] {
  const of =
    operator === OPERATOR ? reconciler : toolReconciler(operator, () => Promise.reject(new Error('not asked')));
  const outcome = of.reconcile(observe(of, tool, { reads: { plugin: plugins, connections } }));
  if (outcome.do !== 'converge') throw new Error('held');
  return outcome.children;
}

const child = (children: readonly KubeObject[], kind: string) => {
  const found = children.find((candidate) => candidate.kind === kind);
  if (!found) throw new Error(`no ${kind}`);
  return found;
};
const workload = (tool: KubeObject) =>
  childrenOf(tool).find(({ kind }) => kind === 'DaemonSet' || kind === 'Deployment');
const podSpec = (tool: KubeObject) => at(workload(tool), 'spec', 'template', 'spec');
const containers = (tool: KubeObject) => [
  ...recordsAt(podSpec(tool), 'initContainers'),
  ...recordsAt(podSpec(tool), 'containers'),
];
const container = (tool: KubeObject, name: string) => containers(tool).find((candidate) => candidate['name'] === name);

const EVERYTHING = {
  affinity: 'any',
  replicas: 3,
  timeout: '2m',
  concurrency: 2,
  runAsUser: 1000,
  env: { ZETA: '1', ALPHA: 'two\nlines' },
  resources: { requests: { memory: '512Mi' }, limits: { cpu: 2 } },
  runtimeClassName: 'gvisor',
  nodeSelector: { zone: 'a', 'kubernetes.io/arch': 'amd64' },
  tolerations: [{ key: 'example.com/gpu', operator: 'Exists' }],
};

describe('children of a Tool, as YAML', () => {
  test('[K05] [S01] [S04] [S05] [S06] an image, on each node', async () => {
    await expect(stringify(childrenOf(aTool()), { aliasDuplicateObjects: false })).toMatchFileSnapshot(
      'golden/image-node.golden.yaml',
    );
  });

  test("[K03] [S07] a plugin's own code, anywhere, with everything set", async () => {
    const plugin = aPlugin({ source: { image: `ghcr.example/acme/github@${DIGEST}`, pullSecrets: ['pull'] } });
    const children = childrenOf(aPluginTool(EVERYTHING), [plugin]);
    await expect(stringify(children, { aliasDuplicateObjects: false })).toMatchFileSnapshot(
      'golden/plugin-any.golden.yaml',
    );
  });
});

describe('credentials and remote servers, as YAML', () => {
  const secrets = { secrets: ['TOKEN', 'OTHER'], inject: [{ secret: 'TOKEN', host: 'api.example.com' }] };

  test('[C01] [C02] [N11] secrets of its own and of a Connection', async () => {
    const children = childrenOf(aTool({ ...secrets, hosts: ['api.example.com', '*.example.org'] }), [], OPERATOR, [
      aConnection({ tools: ['everything'] }),
    ]);
    await expect(stringify(child(children, 'DaemonSet'), { aliasDuplicateObjects: false })).toMatchFileSnapshot(
      'golden/secrets.golden.yaml',
    );
  });

  test('[K06] [C05] a server elsewhere', async () => {
    const headers = { 'X-Team': 'platform', Authorization: 'Bearer $'.concat('{TOKEN}') };
    const children = childrenOf(aRemoteTool({ secrets: ['TOKEN'], headers, replicas: 2 }));
    await expect(stringify(children, { aliasDuplicateObjects: false })).toMatchFileSnapshot(
      'golden/remote.golden.yaml',
    );
  });
});

describe("[C01] [case 79] secrets are the sidecar's alone", () => {
  const connected = childrenOf(aTool({ secrets: ['TOKEN', 'B'], secretRef: { name: 'mine' } }), [], OPERATOR, [
    aConnection({ tools: ['everything'] }),
  ]);
  const pod = at(child(connected, 'DaemonSet'), 'spec', 'template', 'spec');
  const all = [...recordsAt(pod, 'initContainers'), ...recordsAt(pod, 'containers')];

  test('no other container mounts them, and none has them in its environment', () => {
    const mounting = all.filter((item) => recordsAt(item, 'volumeMounts').some(({ name }) => name === 'secrets'));
    expect(mounting.map(({ name }) => name)).toEqual(['sidecar']);
    for (const item of all) {
      expect(item).not.toHaveProperty('envFrom');
      expect(JSON.stringify(recordsAt(item, 'env'))).not.toContain('secretKeyRef');
    }
  });

  test('[case 81] the declared keys and no other, optional, read-only, readable by the sidecar', () => {
    const volume = recordsAt(pod, 'volumes').find(({ name }) => name === 'secrets');
    expect(volume?.['projected']).toEqual({
      defaultMode: 0o444,
      sources: [
        {
          secret: {
            name: 'mine',
            optional: true,
            items: [
              { key: 'TOKEN', path: 'own/TOKEN' },
              { key: 'B', path: 'own/B' },
            ],
          },
        },
        {
          secret: { name: 'tracker-token', optional: true, items: [{ key: 'token', path: 'connections/tracker' }] },
        },
      ],
    });
    const sidecar = all.find(({ name }) => name === 'sidecar');
    expect(recordsAt(sidecar, 'volumeMounts')).toContainEqual({
      name: 'secrets',
      mountPath: '/oz0/secrets',
      readOnly: true,
    });
  });

  test('a tool without any mounts none', () => {
    expect(JSON.stringify(podSpec(aTool()))).not.toContain('/oz0/secrets');
  });
});

describe('[K06] a server elsewhere', () => {
  const remote = (spec: Record<string, unknown> = {}, ...connections: KubeObject[]) => {
    const children = childrenOf(aRemoteTool(spec), [], OPERATOR, connections);
    const pod = at(child(children, 'Deployment'), 'spec', 'template', 'spec');
    const [sidecar] = recordsAt(pod, 'containers');
    return {
      children,
      pod,
      config: JSON.parse((textAt(recordsAt(sidecar, 'env')[0], 'value') ?? '').replaceAll('$$', () => '$')),
    };
  };

  test('is the sidecar alone, wherever it may run', () => {
    const { children, pod } = remote();
    expect(children.map(({ kind }) => kind)).toContain('Deployment');
    expect(recordsAt(pod, 'containers').map(({ name }) => name)).toEqual(['sidecar']);
    expect(pod).not.toHaveProperty('initContainers');
    expect(recordsAt(pod, 'volumes').map(({ name }) => name)).toEqual(['trust', 'identity', 'journal']);
  });

  test('[S05] behind the same walls', () => {
    const spec = (children: readonly KubeObject[]) => at(child(children, 'NetworkPolicy'), 'spec');
    expect(spec(remote().children)).toEqual(spec(childrenOf(aTool({}, { name: 'tracker' }))));
  });

  test('its host is all that its pod may reach', () => {
    expect(remote().config).toMatchObject({
      argv: [],
      remote: { url: 'https://mcp.example.com/mcp', headers: {} },
      hosts: ['mcp.example.com'],
    });
  });

  test("[N12] a Connection's header at its host wins over one of its own", () => {
    const spec = { secrets: ['TOKEN'], headers: { authorization: 'Bearer $'.concat('{TOKEN}'), 'X-Team': 'a' } };
    const here = aConnection({ bind: [{ host: 'mcp.example.com' }] });
    expect(remote(spec, here).config.remote.headers).toEqual({ 'X-Team': 'a' });
    expect(remote(spec, aConnection()).config.remote.headers).toEqual(spec.headers);
  });

  test('[N12] and so does a binding of the Tool itself; the header then counts for nothing, and its condition says so', () => {
    const spec = {
      secrets: ['TOKEN', 'OLD'],
      headers: { authorization: 'Bearer $'.concat('{OLD}'), 'X-Team': 'a' },
      inject: [{ secret: 'TOKEN', host: 'mcp.example.com' }],
    };
    expect(remote(spec).config.remote.headers).toEqual({ 'X-Team': 'a' });
    const elsewhere = { ...spec, inject: [{ secret: 'TOKEN', host: 'mcp.example.com', port: 8443 }] };
    expect(remote(elsewhere).config.remote.headers).toEqual(spec.headers);
  });

  test('[C05] a bound secret in a header stays there, for the proxy to fill in', () => {
    const headers = { Authorization: 'Bearer $'.concat('{TOKEN}') };
    const { config } = remote({ secrets: ['TOKEN'], headers, inject: [{ secret: 'TOKEN', host: 'mcp.example.com' }] });
    expect(config.remote.headers).toEqual(headers);
    expect(config.bindings).toMatchObject([{ secret: 'TOKEN', host: 'mcp.example.com', name: 'Authorization' }]);
  });
});

test('[S09] a tool that asks a model: its sidecar is told, and nothing of the gateway is in the pod', () => {
  const withModels = { ...OPERATOR, modelGateway: true };
  const found = JSON.stringify(childrenOf(aTool({ usesModel: true }), [], withModels));
  expect(found).toContain('\\"usesModel\\":true');
  const without = JSON.stringify(childrenOf(aTool(), [], withModels));
  expect(without).toBe(JSON.stringify(childrenOf(aTool())));
});

describe('[S01] the pod', () => {
  test.for(['launcher', 'sidecar', 'tool'])('container %s has nothing that it does not need', (name) => {
    expect(container(aTool(), name)).toMatchObject({
      securityContext: {
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        readOnlyRootFilesystem: true,
        runAsNonRoot: true,
      },
      resources: {
        limits: { cpu: expect.any(String), memory: expect.any(String), 'ephemeral-storage': expect.any(String) },
      },
    });
  });

  test('tool and sidecar are two users, whoever the tool is', () => {
    expect(at(container(aTool(), 'tool'), 'securityContext', 'runAsUser')).toBe(65532);
    expect(at(container(aTool({ runAsUser: 1000 }), 'tool'), 'securityContext', 'runAsUser')).toBe(1000);
    expect(at(container(aTool(), 'sidecar'), 'securityContext', 'runAsUser')).toBe(65533);
  });

  test("the tool's container has no token, no environment, and may write to /tmp only", () => {
    expect(podSpec(aTool())).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
    const tool = container(aTool({ env: { A: '1' } }), 'tool');
    expect(tool).not.toHaveProperty('env');
    expect(tool).not.toHaveProperty('envFrom');
    const mounts = recordsAt(tool, 'volumeMounts');
    expect(mounts.map(({ name }) => name)).toEqual(['bin', 'run', 'tmp']);
    expect(mounts.filter((mount) => mount['readOnly'] !== true).map(({ name }) => name)).toEqual(['tmp']);
  });

  test("the one token is the sidecar's, of an audience that the API server refuses", () => {
    const mounting = containers(aTool()).filter((item) =>
      recordsAt(item, 'volumeMounts').some(({ name }) => name === 'identity'),
    );
    expect(mounting.map(({ name }) => name)).toEqual(['sidecar']);
    expect(JSON.stringify(podSpec(aTool())).match(/"audience":"[^"]*"/g)).toEqual(['"audience":"oz0-ca"']);
  });

  test('[case 78] the record of calls is in a volume that the sidecar alone mounts', () => {
    const mounting = containers(aTool()).filter((item) =>
      recordsAt(item, 'volumeMounts').some(({ name }) => name === 'journal'),
    );
    expect(mounting.map(({ name }) => name)).toEqual(['sidecar']);
    expect(recordsAt(podSpec(aTool()), 'volumes')).toContainEqual({ name: 'journal', emptyDir: { sizeLimit: '96Mi' } });
  });

  test('every scratch volume has a limit', () => {
    for (const volume of recordsAt(podSpec(aTool()), 'volumes')) {
      if (volume['emptyDir']) expect(textAt(volume, 'emptyDir', 'sizeLimit'), String(volume['name'])).toBeTruthy();
    }
  });

  test('a user namespace where the cluster has them', () => {
    expect(podSpec(aTool())).toHaveProperty('hostUsers', false);
    const without = childrenOf(aTool(), [], { ...OPERATOR, userNamespaces: false });
    expect(at(child(without, 'DaemonSet'), 'spec', 'template', 'spec')).not.toHaveProperty('hostUsers');
  });

  test('[case 116] probes ask the sidecar for its own state; one that is alive is not ended in less than two minutes', () => {
    for (const item of containers(aTool())) {
      const probes = ['startupProbe', 'readinessProbe', 'livenessProbe'].filter((name) => item[name] !== undefined);
      expect(probes).toHaveLength(item['name'] === 'sidecar' ? 3 : 0);
      for (const probe of probes) expect(textAt(item, probe, 'httpGet', 'port')).toBe('health');
    }
    const { periodSeconds, failureThreshold } = at(container(aTool(), 'sidecar'), 'livenessProbe') as Record<
      string,
      number
    >;
    expect((periodSeconds ?? 0) * (failureThreshold ?? 0)).toBeGreaterThanOrEqual(120);
  });

  test('no probe names a host, which Pod Security refuses', () => {
    expect(JSON.stringify(podSpec(aTool()))).not.toContain('"host"');
  });
});

describe('[S04] [S05] the walls', () => {
  const policy = (children: readonly KubeObject[]) => at(child(children, 'NetworkPolicy'), 'spec');
  const part = (component: string) => ({
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'oz0-system' } },
    podSelector: { matchLabels: { 'app.kubernetes.io/name': 'oz0-operator', 'oz0.ai/component': component } },
  });
  const ports = [{ protocol: 'TCP', port: 8443 }];

  test('in: gateways and the controller; out: egress; nothing else', () => {
    expect(policy(childrenOf(aTool()))).toEqual({
      podSelector: {
        matchExpressions: [{ key: 'oz0.ai/tool', operator: 'In', values: ['everything', 'everything.probe'] }],
      },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [part('gateway'), part('controller')], ports }],
      egress: [{ to: [part('egress')], ports }],
    });
  });

  test('a tool resolves no name', () => {
    expect(podSpec(aTool())).toMatchObject({ dnsPolicy: 'None', dnsConfig: { nameservers: ['127.0.0.1'] } });
  });

  test('account and policy come before the workload, and so go after it', () => {
    const kinds = TOOL_OWNS.map(({ kind }) => kind);
    const walls = Math.max(kinds.indexOf('ServiceAccount'), kinds.indexOf('NetworkPolicy'));
    expect(walls).toBeLessThan(Math.min(kinds.indexOf('DaemonSet'), kinds.indexOf('Deployment')));
  });

  test('every child is of a declared kind, in the namespace of its Tool', () => {
    const declared = TOOL_OWNS.map(resourceKey);
    for (const item of [...childrenOf(aTool()), ...childrenOf(aTool({ affinity: 'any' }))]) {
      expect(declared).toContain(resourceKey(item));
      expect(item.metadata.namespace).toBe('acme');
      expect(item.metadata.name).toBe('oz0t-everything');
    }
  });
});

describe('[S06] where pods are', () => {
  const kinds = (spec: Record<string, unknown>) => childrenOf(aTool(spec)).map(({ kind }) => kind);

  test('node: one on each', () => {
    expect(kinds({})).toEqual(['ServiceAccount', 'NetworkPolicy', 'DaemonSet']);
    expect(at(workload(aTool()), 'spec', 'updateStrategy', 'rollingUpdate')).toEqual({
      maxSurge: 1,
      maxUnavailable: 0,
    });
  });

  test('node: the sidecar knows its node, whose gateway alone may call; elsewhere it knows none', () => {
    const env = (tool: KubeObject) =>
      recordsAt(container(tool, 'sidecar'), 'env').filter(({ name }) => name === 'OZ0_NODE');
    expect(env(aTool())).toEqual([{ name: 'OZ0_NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }]);
    expect(env(aTool({ affinity: 'any' }))).toEqual([]);
  });

  test('any: a few, spread, found by their Service', () => {
    expect(kinds({ affinity: 'any' })).toEqual([
      'ServiceAccount',
      'NetworkPolicy',
      'Service',
      'PodDisruptionBudget',
      'Deployment',
    ]);
    expect(at(workload(aTool({ affinity: 'any' })), 'spec', 'strategy', 'rollingUpdate')).toEqual({
      maxSurge: 1,
      maxUnavailable: 0,
    });
  });

  test('[case 111] a number of pods that nobody wrote is left to whoever scales', () => {
    expect(at(workload(aTool({ affinity: 'any' })), 'spec')).not.toHaveProperty('replicas');
    expect(at(workload(aTool({ affinity: 'any', replicas: 3 })), 'spec', 'replicas')).toBe(3);
  });
});

describe('[S07] what a Tool may set', () => {
  test.for([
    [
      {},
      { requests: { cpu: '50m', memory: '64Mi' }, limits: { cpu: '1', memory: '256Mi', 'ephemeral-storage': '512Mi' } },
    ],
    [{ requests: { memory: '1Gi' } }, { requests: { memory: '1Gi' }, limits: { memory: '1Gi' } }],
    [{ limits: { memory: '32Mi' } }, { requests: { memory: '32Mi' }, limits: { memory: '32Mi' } }],
    [
      { requests: { cpu: 2 }, limits: { cpu: 3 } },
      { requests: { cpu: '2' }, limits: { cpu: '3' } },
    ],
    [{ limits: { 'ephemeral-storage': '2Gi' } }, { limits: { 'ephemeral-storage': '2Gi' } }],
  ] as const)('resources %j come to %j', ([resources, wanted]) => {
    expect(container(aTool({ resources }), 'tool')).toMatchObject({ resources: wanted });
  });

  test.for([
    ['1s', 16],
    ['60s', 75],
    ['9m50s', 605],
    ['30m', 605],
  ] as const)('a timeout of %s is given %s seconds to drain', ([timeout, seconds]) => {
    expect(podSpec(aTool({ timeout }))).toHaveProperty('terminationGracePeriodSeconds', seconds);
  });

  test('the sidecar is told what to run, in one order', () => {
    const [variable] = recordsAt(container(aTool(EVERYTHING), 'sidecar'), 'env');
    expect(variable).toEqual({
      name: 'OZ0_SIDECAR',
      value:
        '{"namespace":"acme","tool":"everything","argv":["/usr/bin/tool","--stdio"],"env":{"ALPHA":"two\\nlines","ZETA":"1"},"timeoutMs":120000,"concurrency":2,"maxMessageBytes":4194304}',
    });
  });
});

test('dollars arrive as they are written, since the kubelet would read $(NAME) and $$', () => {
  const [variable] = recordsAt(container(aTool({ env: { A: '$(HOME) $$ $B' } }), 'sidecar'), 'env');
  expect(textAt(variable, 'value')).toContain('"A":"$$(HOME) $$$$ $$B"');
});

describe('what rolls pods', () => {
  const template = (tool: KubeObject) => at(workload(tool), 'spec', 'template');
  const shuffle = <T>(value: T, next: () => number): T => {
    if (Array.isArray(value)) return value.map((item) => shuffle(item, next)) as T;
    if (typeof value !== 'object' || value === null) return value;
    const entries = Object.entries(value).map(([key, item]) => ({ key, item: shuffle(item, next), at: next() }));
    return Object.fromEntries(entries.sort((a, b) => a.at - b.at).map(({ key, item }) => [key, item])) as T;
  };

  test('[case 107] the order of maps does not, in a thousand shuffles', { timeout: 60_000 }, () => {
    let seed = 7;
    const next = () => {
      seed = (seed * 1103515245 + 12345) % 2147483648;
      return seed;
    };
    const wanted = JSON.stringify(childrenOf(aTool(EVERYTHING)));
    for (let round = 0; round < 1000; round++) {
      expect(JSON.stringify(childrenOf(shuffle(aTool(EVERYTHING), next)))).toBe(wanted);
    }
  });

  test('a change of what runs does, and the template says so', () => {
    const hash = (tool: KubeObject) => at(template(tool), 'metadata', 'annotations', TEMPLATE_ANNOTATION);
    expect(hash(aTool({ env: { A: '1' } }))).not.toBe(hash(aTool({ env: { A: '2' } })));
    expect(hash(aTool({ affinity: 'any', replicas: 1 }))).toBe(hash(aTool({ affinity: 'any', replicas: 2 })));
  });

  test('[case 119] what selects pods never changes, since selectors cannot', () => {
    for (const spec of [{}, { affinity: 'any' }, EVERYTHING]) {
      expect(at(workload(aTool(spec)), 'spec', 'selector')).toEqual({ matchLabels: { 'oz0.ai/tool': 'everything' } });
    }
  });
});

test('[case 122] the longest names fit what Kubernetes takes', () => {
  const name = 'a'.repeat(40);
  for (const item of childrenOf(aTool({ affinity: 'any' }, { name }))) {
    expect(item.metadata.name.length).toBeLessThanOrEqual(63);
    for (const value of Object.values(item.metadata.labels ?? {})) expect(value.length).toBeLessThanOrEqual(63);
  }
});

test('nothing is labelled so that a GitOps tool would take it for its own', () => {
  expect(JSON.stringify(childrenOf(aTool({}, { labels: { 'app.kubernetes.io/instance': 'app' } })))).not.toContain(
    'instance',
  );
});
