// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is what users write

/**
 * Who may make tools use a Secret: only who may read it. The attacker writes Plugins, Tools and Connections with the role that the
 * chart ships for that, and may read no Secret; so whatever of theirs uses one would be a way around that.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Actor,
  bind,
  component,
  expectAllowed,
  expectRefused,
  person,
  tryCreate,
  tryPatch,
  untilMay,
} from './actors.ts';
import { apply, type Manifest, storyNamespace } from './cluster.ts';

/** Writes tools; may watch Secrets, which RBAC says apart from getting one. */
const author = person('story-references-author');
/** Also may get one Secret. */
const holder = person('story-references-holder');
/** May get every Secret of the namespace. */
const owner = person('story-references-owner');
const controller = component('controller');

const OURS = 'ours';
const THEIRS = 'theirs';
const SERVER = 'https://mcp.example.com/mcp';
const IMAGE = { reference: 'acme.example/tool:1', command: ['/tool'] };

let space: Awaited<ReturnType<typeof storyNamespace>>;
let namespace: string;

type Fields = Record<string, unknown>;

const object = (kind: string, name: string, spec: Fields): Manifest => ({
  apiVersion: 'oz0.ai/v1alpha1',
  kind,
  metadata: { name, namespace },
  spec,
});
const plugin = (spec: Fields, name = 'acme') => object('Plugin', name, { version: '1', ...spec });
// A package: nothing of it runs, so these objects stand still.
const tool = (spec: Fields, name = 'acme') => object('Tool', name, { package: 'npm:acme@1.0.0', ...spec });
const connection = (secret: string, spec: Fields = {}) =>
  object('Connection', 'acme', {
    tools: ['acme'],
    kind: 'secret',
    secret: { secretRef: { name: secret }, key: 'token' },
    bind: [{ host: 'api.example.com' }],
    ...spec,
  });
const entry = (fields: Fields = {}) => ({ id: 'acme', package: 'npm:acme@1.0.0', ...fields });

/** Every way to refer to a Secret. */
const WAYS: Record<string, (secret: string) => Manifest> = {
  'a Plugin that names it': (name) => plugin({ requires: { secrets: ['A'], secretRef: { name } } }),
  'a Plugin of its name': (name) => plugin({ requires: { secrets: ['A'] } }, name),
  'a Plugin whose source is pulled with it': (name) => plugin({ source: { image: 'a/b', pullSecrets: [name] } }),
  'a tool of a Plugin whose image is pulled with it': (name) =>
    plugin({ tools: [entry(), { id: 'acme_b', image: { ...IMAGE, pullSecrets: [name] } }] }),
  'a Tool that names it': (name) => tool({ secrets: ['A'], secretRef: { name } }),
  'a Tool of its name': (name) => tool({ secrets: ['A'] }, name),
  'a Tool that binds it': (name) =>
    tool({ secrets: ['A'], secretRef: { name }, inject: [{ secret: 'A', host: 'api.example.com' }] }),
  'a Tool that sends it': (name) =>
    object('Tool', 'acme', { url: SERVER, secrets: ['A'], secretRef: { name }, headers: { Authorization: '${A}' } }),
  'a Tool whose image is pulled with it': (name) =>
    object('Tool', 'acme', { image: { ...IMAGE, pullSecrets: [name] } }),
  'a Connection': (name) => connection(name),
  'a Connection in a Plugin': (name) =>
    plugin({ tools: [entry()], connections: [{ name: 'acme-key', ...(connection(name)['spec'] as Fields) }] }),
};
const ways = Object.entries(WAYS);

const refused = (answer: Awaited<ReturnType<typeof tryCreate>>, secret = THEIRS) =>
  expectRefused(answer, 'references', new RegExp(`gives Secret ${secret} to what it runs or names.*only who may get`));

beforeAll(async () => {
  space = await storyNamespace('references');
  namespace = space.name;
  for (const actor of [author, holder]) await bind(namespace, actor, 'oz0-author');
  await bind(namespace, owner, 'cluster-admin');
  const rights = (name: string, actor: Actor, rule: Fields): Manifest[] => [
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name, namespace },
      rules: [{ apiGroups: [''], resources: ['secrets'], ...rule }],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: actor.user }],
    },
  ];
  const owned = { secrets: ['A'], secretRef: { name: THEIRS } };
  await apply(
    ...rights('gets-one', holder, { verbs: ['get'], resourceNames: [OURS] }),
    ...rights('lists', author, { verbs: ['list', 'watch'] }),
    // Written by who may: by the cluster's admin.
    plugin(
      {
        source: { image: 'acme.example/plugin:1', pullSecrets: [THEIRS] },
        requires: { ...owned, inject: [{ secret: 'A', host: 'api.example.com' }] },
        tools: [entry({ id: 'kept_a', hosts: ['api.example.com'] }), entry({ id: 'kept_b' })],
      },
      'kept',
    ),
    tool({ ...owned, hosts: ['api.example.com'] }, 'lone'),
    object('Tool', 'remote', { url: SERVER, ...owned, headers: { Authorization: '${A}' } }),
    object('Tool', 'pulled', { image: { ...IMAGE, pullSecrets: [THEIRS] }, nodeSelector: { nowhere: 'here' } }),
    { ...connection(THEIRS), metadata: { name: 'kept', namespace } },
  );
  await untilMay(author, 'create', 'connections.oz0.ai', namespace);
  await untilMay(owner, 'get', 'secrets', namespace);
});

afterAll(async () => {
  await space?.[Symbol.asyncDispose]();
});

describe('[case 79] [S07] who makes something refer to a Secret must be allowed to get it', () => {
  test.for(ways)('%s', async ([, make]) => {
    refused(await tryCreate(author, make(THEIRS)));
    refused(await tryCreate(holder, make(THEIRS)));
    expectAllowed(await tryCreate(holder, make(OURS)));
    expectAllowed(await tryCreate(owner, make(THEIRS)));
  });

  test('a Secret that is not there yet is no exception', async () => {
    refused(await tryCreate(author, connection('later')), 'later');
  });

  test('one of several is enough', async () => {
    refused(await tryCreate(holder, plugin({ source: { image: 'a/b', pullSecrets: [OURS, THEIRS] } })));
  });

  test('a name that is repeated is asked for once', async () => {
    const image = { ...IMAGE, pullSecrets: [OURS] };
    const tools = Array.from({ length: 32 }, (_, index) => ({ id: `acme_t${index}`, image }));
    expectAllowed(await tryCreate(holder, plugin({ tools })));
    refused(
      await tryCreate(
        holder,
        plugin({ tools: [...tools.slice(1), { id: 'acme', image: { ...image, pullSecrets: [THEIRS] } }] }),
      ),
    );
  });

  test('so many names that the API server would not ask for each', async () => {
    const tools = (of: (index: number) => string) =>
      Array.from({ length: 12 }, (_, index) => ({
        id: `acme_t${index}`,
        image: { ...IMAGE, pullSecrets: [of(index)] },
      }));
    expectAllowed(await tryCreate(owner, plugin({ tools: tools((index) => `s${index}`) })));
    refused(await tryCreate(author, plugin({ tools: tools((index) => `s${index}`) })), 's0');
  });

  test('what refers to none is for everybody who writes tools', async () => {
    expectAllowed(await tryCreate(author, plugin({ tools: [entry()] })));
    expectAllowed(await tryCreate(author, tool({ secrets: [] }, THEIRS)));
    expectAllowed(await tryCreate(author, plugin({ requires: {} }, THEIRS)));
  });

  test('the controller copies what was judged', async () => {
    expectAllowed(await tryCreate(controller, tool({ plugin: 'acme', secrets: ['A'], secretRef: { name: THEIRS } })));
  });
});

describe('[case 79] who changes what uses a Secret must be allowed to get it', () => {
  const lone = 'tool/lone';
  const remote = 'tool/remote';
  const kept = 'plugin/kept';
  const tools = (first: Fields, ...more: Fields[]) => ({
    tools: [entry({ id: 'kept_a', hosts: ['api.example.com'], ...first }), ...more],
  });
  const second = entry({ id: 'kept_b' });

  test.for<[string, string, Fields]>([
    ['another key', lone, { secrets: ['A', 'B'] }],
    ['another Secret', lone, { secretRef: { name: 'other' } }],
    ['the Secret of its name', lone, { secretRef: null }],
    ['another program', lone, { package: 'npm:evil@1.0.0' }],
    ['an environment, in which programs may stand', lone, { env: { NODE_OPTIONS: '--import=data:text/javascript,' } }],
    ['another host to send it to', lone, { hosts: ['api.example.com', 'evil.example'] }],
    ['a binding', lone, { inject: [{ secret: 'A', host: 'evil.example' }] }],
    ['another server', remote, { url: 'https://evil.example/mcp' }],
    ['another header', remote, { headers: { 'X-Echo': '${A}' } }],
    ['a program in place of a server', remote, { url: null, headers: null, package: 'npm:evil@1.0.0' }],
    ['another image of the plugin', kept, { source: { image: 'evil.example/plugin:1' } }],
    ['another binding of the plugin', kept, { requires: { inject: [{ secret: 'A', host: 'evil.example' }] } }],
    ['no binding of the plugin, which gives its tools the value', kept, { requires: { inject: null } }],
    ['another tool of the plugin', kept, tools({}, second, entry({ id: 'kept_evil' }))],
    ["another program of the plugin's tool", kept, tools({ package: 'npm:evil@1.0.0' }, second)],
    ["another host of the plugin's tool", kept, tools({ hosts: ['evil.example'] }, second)],
    [
      "a server in place of the plugin's tool",
      kept,
      { tools: [{ id: 'kept_a', url: SERVER, headers: { 'X-A': '${A}' } }, second] },
    ],
    ['another host of the connection', 'connection/kept', { bind: [{ host: 'evil.example' }] }],
    ['another tool of the connection', 'connection/kept', { tools: ['acme', 'evil'] }],
    ['another key of the connection', 'connection/kept', { secret: { key: 'other' } }],
  ])('%s', async ([, name, spec]) => {
    const answer = await tryPatch(author, namespace, name, { spec });
    expectRefused(answer, 'references', /gives Secret [a-z]+ to what it runs or names/);
    expectAllowed(await tryPatch(owner, namespace, name, { spec }));
  });

  test.for<[string, string, Fields]>([
    ['a label', lone, { metadata: { labels: { team: 'a' } } }],
    ['how long a call may take', lone, { spec: { timeout: '90s', concurrency: 2 } }],
    ['where it runs', lone, { spec: { affinity: 'any', replicas: 2, nodeSelector: { zone: 'a' } } }],
    ['what it may use of its node', lone, { spec: { resources: { limits: { memory: '64Mi' } }, runAsUser: 1000 } }],
    ['the version', kept, { spec: { version: '2' } }],
    ['one tool less', kept, { spec: tools({}) }],
    ["how long a call of the plugin's tool may take", kept, { spec: tools({ timeout: '90s' }, second) }],
    ['the order of tools', kept, { spec: { tools: [second, ...tools({}).tools] } }],
    ['another image by the same pull secret', 'tool/pulled', { spec: { image: { reference: 'acme.example/tool:2' } } }],
    ['stricter hints', lone, { spec: { functions: { get: { annotations: { destructiveHint: true } } } } }],
    ['a label of the connection', 'connection/kept', { metadata: { labels: { team: 'a' } } }],
    ['no secrets any more', lone, { spec: { secrets: null, secretRef: null } }],
  ])('but not for %s', async ([, name, patch]) => {
    expectAllowed(await tryPatch(author, namespace, name, patch));
  });

  test('another pull secret', async () => {
    const image = { pullSecrets: [THEIRS, 'other'] };
    refused(await tryPatch(author, namespace, 'tool/pulled', { spec: { image } }), 'other');
  });

  test('the message says what to do', async () => {
    const { output } = await tryCreate(author, connection(THEIRS));
    expect(output).toContain('ask for that right, or have someone write it who has it');
  });
});
