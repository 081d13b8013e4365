/** What the shipped roles give, to the last verb, as the API server holds and judges them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Actor,
  account,
  bind,
  component,
  components,
  each,
  granted,
  person,
  type Question,
  untilMay,
} from './actors.ts';
import { get, kubectl, type Live, OPERATOR_NAMESPACE, storyNamespace } from './cluster.ts';

/** Every rule that the chart ships: `group/resource[names]: verbs`, the core group being empty. */
const SHIPPED: Record<string, readonly string[]> = {
  'ClusterRole oz0-controller': [
    '/configmaps[oz0]: create delete get list patch watch',
    '/namespaces: get list watch',
    '/nodes: list',
    '/pods: get list watch',
    '/serviceaccounts: create delete get list patch watch',
    '/services: create delete get list patch watch',
    'apps/daemonsets: create delete get list patch watch',
    'apps/deployments: create delete get list patch watch',
    'events.k8s.io/events: create',
    'networking.k8s.io/networkpolicies: create delete get list patch watch',
    'oz0.ai/agents: get list watch',
    'oz0.ai/agents/status: patch',
    'oz0.ai/clustertoolpolicies: get list watch',
    'oz0.ai/clustertoolpolicies/status: patch',
    'oz0.ai/connections: create delete get list patch watch',
    'oz0.ai/connections/status: patch',
    'oz0.ai/plugins: get list watch',
    'oz0.ai/plugins/status: patch',
    'oz0.ai/snapshotapprovals: get list watch',
    'oz0.ai/snapshotapprovals/status: patch',
    'oz0.ai/stops: get list watch',
    'oz0.ai/stops/status: patch',
    'oz0.ai/toolcalls: delete get list watch',
    'oz0.ai/toollistings: create delete get list patch watch',
    'oz0.ai/toolpolicies: get list watch',
    'oz0.ai/toolpolicies/status: patch',
    'oz0.ai/tools: create delete get list patch watch',
    'oz0.ai/tools/status: patch',
    'policy/poddisruptionbudgets: create delete get list patch watch',
  ],
  'Role oz0-controller': [
    '/configmaps[oz0-trust,oz0-upstream-ca]: get list watch',
    'coordination.k8s.io/leases: create',
    'coordination.k8s.io/leases[oz0-controller]: get update',
  ],
  'ClusterRole oz0-gateway': [
    '/pods: list watch',
    'authentication.k8s.io/tokenreviews: create',
    'discovery.k8s.io/endpointslices: list watch',
    'oz0.ai/agents: list watch',
    'oz0.ai/clustertoolpolicies: list watch',
    'oz0.ai/stops: list watch',
    'oz0.ai/toolcalls: create get list watch',
    'oz0.ai/toolcalls/status: update',
    'oz0.ai/toolpolicies: list watch',
    'oz0.ai/tools: list watch',
  ],
  'ClusterRole oz0-egress': [
    '/nodes: list watch',
    'discovery.k8s.io/endpointslices: list watch',
    'networking.k8s.io/servicecidrs: list watch',
    'oz0.ai/tools: list watch',
  ],
  'ClusterRole oz0-edge': ['/pods: get', 'authentication.k8s.io/tokenreviews: create'],
  'Role oz0-edge': [
    '/configmaps: create',
    '/configmaps[oz0-trust]: get update',
    '/secrets: create',
    '/secrets[oz0-edge]: get update',
  ],
  'ClusterRole oz0-author': [
    'oz0.ai/connections: create delete deletecollection get list patch update watch',
    'oz0.ai/plugins: create delete deletecollection get list patch update watch',
    'oz0.ai/tools: create delete deletecollection get list patch update watch',
  ],
  'ClusterRole oz0-approver': [
    'oz0.ai/agents: get list watch',
    'oz0.ai/snapshotapprovals: create delete get list patch update watch',
    'oz0.ai/stops: get list watch',
    'oz0.ai/toolcalls: decide get list patch update watch',
    'oz0.ai/toolpolicies: get list watch',
    'oz0.ai/toollistings: get list watch',
    'oz0.ai/tools: get list watch',
  ],
  'ClusterRole oz0-operator': [
    'oz0.ai/agents: create delete deletecollection get list patch update watch',
    'oz0.ai/connections: get list watch',
    'oz0.ai/plugins: get list watch',
    'oz0.ai/snapshotapprovals: create delete deletecollection get list patch update watch',
    'oz0.ai/stops: create delete deletecollection get list patch update watch',
    'oz0.ai/toolpolicies: create delete deletecollection get list patch update watch',
    'oz0.ai/toollistings: get list watch',
    'oz0.ai/tools: get list watch',
  ],
  'ClusterRole oz0-reader': [
    'oz0.ai/connections: get list watch',
    'oz0.ai/plugins: get list watch',
    'oz0.ai/toollistings: get list watch',
    'oz0.ai/tools: get list watch',
  ],
  'ClusterRole oz0-viewer': [
    'oz0.ai/agents: get list watch',
    'oz0.ai/connections: get list watch',
    'oz0.ai/plugins: get list watch',
    'oz0.ai/snapshotapprovals: get list watch',
    'oz0.ai/stops: get list watch',
    'oz0.ai/toolcalls: get list watch',
    'oz0.ai/toollistings: get list watch',
    'oz0.ai/toolpolicies: get list watch',
    'oz0.ai/tools: get list watch',
  ],
};

interface Rule {
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
  verbs: string[];
}

function lines(rules: readonly Rule[]): string[] {
  return rules
    .flatMap(({ apiGroups = [], resources = [], resourceNames, nonResourceURLs = [], verbs }) =>
      [
        ...apiGroups.flatMap((group) =>
          resources.map((resource) => `${group}/${resource}${resourceNames ? `[${resourceNames}]` : ''}`),
        ),
        ...nonResourceURLs.map((path) => `url ${path}`),
      ].map((what) => `${what}: ${[...verbs].sort().join(' ')}`),
    )
    .sort();
}

const roles = ['oz0-approver', 'oz0-author', 'oz0-operator', 'oz0-reader', 'oz0-viewer'] as const;

/** Kinds that say what agents may do, and on which people decide: part of none of Kubernetes' own roles. */
const KEPT = ['agents', 'toolpolicies', 'stops', 'snapshotapprovals', 'toolcalls', 'clustertoolpolicies'];
const holderOf = (role: string): Actor => person(`holder-of-${role}`);
const tool = (namespace: string): Actor => account(namespace, 'oz0t-sample');
const agent = (namespace: string): Actor => account(namespace, 'reviewer');

let space: Awaited<ReturnType<typeof storyNamespace>>;
let tenant: string;

beforeAll(async () => {
  space = await storyNamespace('rights');
  tenant = space.name;
  for (const role of roles) await bind(tenant, holderOf(role), role);
  for (const role of ['view', 'edit', 'admin']) await bind(tenant, holderOf(role), role);
  await untilMay(holderOf('oz0-viewer'), 'get', 'agents.oz0.ai', tenant);
  await untilMay(holderOf('admin'), 'get', 'plugins.oz0.ai', tenant);
});

afterAll(async () => {
  await space?.[Symbol.asyncDispose]();
});

test('[D02] [case 121] the shipped roles give what is listed here, and nothing else is shipped', async () => {
  const { items } = await get(
    'clusterroles,roles',
    '--all-namespaces',
    '--selector=app.kubernetes.io/name=oz0-operator',
  );
  const shipped = Object.fromEntries(
    items.map((role: Live) => [`${role.kind} ${role.metadata.name}`, lines(role.rules)] as const),
  );
  expect(shipped).toEqual(
    Object.fromEntries(Object.entries(SHIPPED).map(([role, rules]) => [role, [...rules].sort()])),
  );
});

test('[D02] each account has its own roles, and no other binding names it', async () => {
  const { items } = await get('clusterrolebindings,rolebindings', '--all-namespaces');
  const bound = items
    .filter(({ subjects = [] }: Live) =>
      subjects.some((one: Live) => one.kind === 'ServiceAccount' && one.namespace === OPERATOR_NAMESPACE),
    )
    .flatMap(({ kind, roleRef, subjects }: Live) =>
      subjects.map(
        (one: Live) => `${one.name} → ${kind === 'RoleBinding' ? 'here ' : ''}${roleRef.kind} ${roleRef.name}`,
      ),
    )
    .sort();
  expect(bound).toEqual([
    'oz0-controller → ClusterRole oz0-controller',
    'oz0-controller → here Role oz0-controller',
    'oz0-edge → ClusterRole oz0-edge',
    'oz0-edge → here Role oz0-edge',
    'oz0-egress → ClusterRole oz0-egress',
    'oz0-gateway → ClusterRole oz0-gateway',
  ]);
});

const WRITE = ['create', 'update', 'patch', 'delete'];
const READ = ['get', 'list', 'watch'];

describe('no right to a Secret of a tenant', () => {
  const holders: [string, () => Actor][] = [
    ...components.map((name): [string, () => Actor] => [`the ${name}`, () => component(name)]),
    ...roles.map((role): [string, () => Actor] => [`who has ${role}`, () => holderOf(role)]),
    ['a tool', () => tool(tenant)],
    ['an agent', () => agent(tenant)],
  ];

  test.each(holders)('[D02] [case 79] %s neither reads nor writes one', async (_, actor) => {
    const questions = [
      ...each([...READ, ...WRITE], ['secrets'], { namespace: tenant }),
      ...each([...READ, ...WRITE], ['secrets'], { namespace: tenant, name: 'mine' }),
      ...each(READ, ['secrets']),
    ];
    expect(await granted(actor(), questions)).toEqual([]);
  });

  test('[D02] edge reads and renews one of its own namespace, by name, and no other part does', async () => {
    const own = { namespace: OPERATOR_NAMESPACE };
    const questions: Question[] = [
      ['get', 'secrets', { ...own, name: 'oz0-edge' }],
      ['get', 'secrets', { ...own, name: 'other' }],
      ['list', 'secrets', own],
      ['update', 'secrets', { ...own, name: 'oz0-edge' }],
      ['update', 'secrets', { ...own, name: 'other' }],
      ['delete', 'secrets', { ...own, name: 'oz0-edge' }],
    ];
    expect(await granted(component('edge'), questions)).toEqual(['get secrets oz0-edge', 'update secrets oz0-edge']);
    for (const other of ['controller', 'gateway', 'egress'] as const) {
      expect(await granted(component(other), questions), other).toEqual([]);
    }
  });
});

describe('no way round it', () => {
  test.each(components)('[D02] the %s can do none of what would give it more', async (name) => {
    const here = { namespace: tenant };
    const questions: Question[] = [
      ...each(WRITE, ['pods', 'replicasets.apps', 'jobs.batch', 'agents.oz0.ai', 'plugins.oz0.ai'], here),
      ...each(
        ['create', 'get'],
        ['pods/exec', 'pods/attach', 'pods/portforward', 'pods/proxy', 'services/proxy'],
        here,
      ),
      ...each(['update', 'patch'], ['pods/ephemeralcontainers', 'pods/status', 'pods/resize'], here),
      ['create', 'serviceaccounts/token', here],
      ['create', 'serviceaccounts/token', { namespace: OPERATOR_NAMESPACE }],
      ...each(['impersonate'], ['users', 'groups', 'serviceaccounts']),
      ...each(
        [...WRITE, 'bind', 'escalate'],
        ['roles.rbac.authorization.k8s.io', 'clusterroles.rbac.authorization.k8s.io'],
      ),
      ...each(WRITE, ['rolebindings.rbac.authorization.k8s.io', 'clusterrolebindings.rbac.authorization.k8s.io']),
      ...each(WRITE, [
        'validatingadmissionpolicies.admissionregistration.k8s.io',
        'validatingadmissionpolicybindings.admissionregistration.k8s.io',
        'customresourcedefinitions.apiextensions.k8s.io',
        'namespaces',
        'nodes',
      ]),
      ...each(['get', 'create'], ['nodes/proxy']),
      ...each(READ, ['configmaps'], here),
      ['create', 'configmaps', here],
    ];
    expect(await granted(component(name), questions)).toEqual([]);
  });

  test('[D02] the controller writes one ConfigMap of a tenant, by name, even when it creates it', async () => {
    const questions = ['oz0', 'other'].flatMap((name) =>
      each(['create', 'patch'], ['configmaps'], { namespace: tenant, name }),
    );
    expect(await granted(component('controller'), questions)).toEqual([
      'create configmaps oz0',
      'patch configmaps oz0',
    ]);
  });

  test.each([
    ['a tool', tool],
    ['an agent', agent],
  ] as const)('[D04] [case 41] [case 79] %s may write none of our kinds, nor read them', async (_, actor) => {
    const kinds = ['plugins', 'tools', 'connections', ...KEPT].flatMap((kind) => [
      `${kind}.oz0.ai`,
      `${kind}.oz0.ai/status`,
    ]);
    const verbs = [...READ, ...WRITE, 'decide'];
    expect(await granted(actor(tenant), each(verbs, [...kinds, 'deciders.oz0.ai'], { namespace: tenant }))).toEqual([]);
  });
});

describe("Kubernetes' own roles", () => {
  const granting = (role: string, verbs: readonly string[], ...kinds: string[]) =>
    granted(holderOf(role), each(verbs, kinds, { namespace: tenant }));

  test('[O01] edit and admin may write Plugins, Tools and Connections, view may read them', async () => {
    const kinds = ['plugins.oz0.ai', 'tools.oz0.ai', 'connections.oz0.ai'];
    for (const role of ['edit', 'admin']) {
      expect(await granting(role, WRITE, ...kinds), role).toHaveLength(12);
    }
    expect(await granting('view', READ, ...kinds)).toHaveLength(9);
    expect(await granting('view', WRITE, ...kinds)).toEqual([]);
  });

  test('[D04] [Y03] [case 41] none of them may read or write a grant, a policy, a stop, an approval or a call, nor decide', async () => {
    const kinds = [...KEPT, 'deciders'].map((kind) => `${kind}.oz0.ai`);
    for (const role of ['view', 'edit', 'admin']) {
      expect(await granting(role, [...READ, ...WRITE, 'decide'], ...kinds), role).toEqual([]);
    }
  });

  test('[Y03] [case 41] who may decide is said by one role, which gives no decider’s role', async () => {
    const kinds = ['toolcalls.oz0.ai', 'deciders.oz0.ai'];
    for (const role of roles) {
      const may = role === 'oz0-approver' ? ['decide toolcalls.oz0.ai'] : [];
      expect(await granting(role, ['decide'], ...kinds), role).toEqual(may);
    }
    for (const name of components) {
      expect(await granted(component(name), each(['decide', 'patch'], kinds, { namespace: tenant })), name).toEqual([]);
    }
  });

  test('[D04] nobody but the controller writes a status, and gateways that of a call', async () => {
    const kinds = ['plugins', 'tools', 'connections', ...KEPT.filter((kind) => kind !== 'toolcalls')].map(
      (kind) => `${kind}.oz0.ai/status`,
    );
    for (const role of ['edit', 'admin', ...roles]) {
      expect(await granting(role, WRITE, ...kinds), role).toEqual([]);
    }
    expect(await granted(component('controller'), each(['patch'], kinds, { namespace: tenant }))).toHaveLength(
      kinds.length,
    );
    const call = ['toolcalls.oz0.ai/status'];
    for (const role of ['edit', 'admin', ...roles]) expect(await granting(role, WRITE, ...call), role).toEqual([]);
    expect(await granted(component('gateway'), each(WRITE, call, { namespace: tenant }))).toEqual([
      'update toolcalls.oz0.ai/status',
    ]);
  });

  test('[D02] who writes tools does not say who may call them, nor the other way round', async () => {
    expect(await granting('oz0-author', ['create'], 'tools.oz0.ai', 'agents.oz0.ai')).toEqual(['create tools.oz0.ai']);
    expect(await granting('oz0-operator', ['create'], 'tools.oz0.ai', 'agents.oz0.ai')).toEqual([
      'create agents.oz0.ai',
    ]);
  });
});

test('[case 121] no part was ever refused by the API server for want of a right', async ({ skip }) => {
  const { items } = await get('pods', `--namespace=${OPERATOR_NAMESPACE}`, '--selector=oz0.ai/component');
  const running = items.filter((pod: Live) => pod.status.containerStatuses?.some((one: Live) => one.started));
  skip(running.length === 0, 'no part of the operator runs');
  for (const pod of running) {
    const log = await kubectl('logs', pod.metadata.name, `--namespace=${OPERATOR_NAMESPACE}`, '--tail=-1');
    expect(
      log
        .split('\n')
        .filter((line) => /forbidden|cannot (get|list|watch|create|patch|update|delete) resource/i.test(line)),
      pod.metadata.name,
    ).toEqual([]);
  }
});
