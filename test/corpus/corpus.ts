/**
 * Objects that are right and objects that are wrong, with the field to blame. Two judges read it: the schemas in this process, and a
 * real API server; they must agree on each verdict, and on the defaults.
 */

import {
  API_VERSION,
  about,
  agent,
  type Case,
  DIGEST,
  entry,
  grants,
  image,
  imageTool,
  many,
  plugin,
  right,
  tool,
  wrong,
} from './build.ts';
import { CREDENTIALS } from './credentials.ts';
import { DECISIONS } from './decisions.ts';

export type { Case } from './build.ts';

const toolNames: Case[] = [
  right('name of one letter', imageTool({}, 'a')),
  right('name with digits', imageTool({}, 'a1-2b-3')),
  right('name of 40 characters', imageTool({}, 'a'.repeat(40))),
  wrong('name of 41 characters', imageTool({}, 'a'.repeat(41)), ''),
  wrong('name with two dashes in a row, whose id would hold __', imageTool({}, 'acme--github'), ''),
  wrong('name with a dot', imageTool({}, 'acme.github'), ''),
  wrong('name of the Tool with a digit first', imageTool({}, '7zip'), ''),
  wrong('name of the built-in functions', imageTool({}, 'oz'), ''),
  wrong('reserved prefix on a Tool by itself', imageTool({}, 'oz0-github'), ''),
  right('reserved prefix on a Tool of a plugin', imageTool({ plugin: 'oz0-github' }, 'oz0-github')),
  right('a name that only looks reserved', imageTool({}, 'oz0x')),
];

const sources: Case[] = [
  right('image', tool({ image })),
  right(
    'image with everything',
    tool({
      image: {
        reference: `registry.example:5000/team/tool@${DIGEST}`,
        command: ['/tool'],
        args: ['', '--flag', 'two\nlines'],
        pullSecrets: ['pull', 'pull.two'],
        workingDir: '/srv/work dir',
      },
    }),
  ),
  right('image by tag and digest', tool({ image: { ...image, reference: `acme/tool:2@${DIGEST}` } })),
  right('package of npm', tool({ package: 'npm:@acme/tool@1.2.3' })),
  right('package of PyPI', tool({ package: 'pypi:mcp-server-fetch==2026.8.18' })),
  right('url', tool({ url: 'https://mcp.example.com/mcp' })),
  right('mcp of a plugin', tool({ plugin: 'acme-github', mcp: ['python', '-m', 'acme_github.mcp'] })),
  wrong('no source', tool({}), 'spec'),
  wrong('image and url', imageTool({ url: 'https://mcp.example.com/mcp' }), 'spec'),
  wrong('image and mcp', imageTool({ plugin: 'acme-github', mcp: ['x'] }), 'spec'),
  wrong('package and url', tool({ package: 'npm:a@1.0.0', url: 'https://mcp.example.com/mcp' }), 'spec'),
  wrong('all four', imageTool({ plugin: 'p', mcp: ['x'], package: 'npm:a@1.0.0', url: 'https://a.example/' }), 'spec'),
  wrong('mcp without a plugin', tool({ mcp: ['python'] }), 'spec.mcp'),
  wrong('empty mcp', tool({ plugin: 'p', mcp: [] }), 'spec.mcp'),
  wrong('image without command', tool({ image: { reference: 'acme/tool:2' } }), 'spec.image.command'),
  wrong('image with an empty command', tool({ image: { ...image, command: [] } }), 'spec.image.command'),
  wrong('image with an empty program', tool({ image: { ...image, command: [''] } }), 'spec.image.command'),
  wrong('image with a command as text', tool({ image: { ...image, command: '/tool' } }), 'spec.image.command'),
  wrong('argument that is a number', tool({ image: { ...image, args: [8] } }), 'spec.image.args'),
  wrong('argument that is null', tool({ image: { ...image, args: [null] } }), 'spec.image.args'),
  wrong('argument with a NUL', tool({ image: { ...image, args: ['a\u0000b'] } }), 'spec.image.args'),
  wrong('65 arguments', tool({ image: { ...image, args: many(65, () => 'a') } }), 'spec.image.args'),
  wrong('image without reference', tool({ image: { command: ['/tool'] } }), 'spec.image.reference'),
  wrong('empty reference', tool({ image: { ...image, reference: '' } }), 'spec.image.reference'),
  wrong(
    'reference with a scheme',
    tool({ image: { ...image, reference: 'https://acme/tool' } }),
    'spec.image.reference',
  ),
  wrong('reference with a space', tool({ image: { ...image, reference: 'acme/tool 2' } }), 'spec.image.reference'),
  wrong(
    'reference with a short digest',
    tool({ image: { ...image, reference: 'acme/tool@sha256:12' } }),
    'spec.image.reference',
  ),
  wrong('a pull secret twice', tool({ image: { ...image, pullSecrets: ['a', 'a'] } }), 'spec.image.pullSecrets'),
  wrong(
    'a pull secret of another namespace',
    tool({ image: { ...image, pullSecrets: ['b/a'] } }),
    'spec.image.pullSecrets',
  ),
  wrong(
    'working directory that is relative',
    tool({ image: { ...image, workingDir: 'srv' } }),
    'spec.image.workingDir',
  ),
  wrong('package without version', tool({ package: 'npm:@acme/tool' }), 'spec.package'),
  wrong('package with a range', tool({ package: 'npm:tool@^1.2.3' }), 'spec.package'),
  wrong('package with a tag for a version', tool({ package: 'npm:tool@latest' }), 'spec.package'),
  wrong('package of PyPI with a range', tool({ package: 'pypi:tool>=1' }), 'spec.package'),
  wrong('package from elsewhere', tool({ package: 'git:tool@1.0.0' }), 'spec.package'),
  wrong('url of another scheme', tool({ url: 'ftp://mcp.example.com/' }), 'spec.url'),
  wrong('url with a space', tool({ url: 'https://mcp.example.com/a b' }), 'spec.url'),
];

const environment: Case[] = [
  right('environment', imageTool({ env: { GITHUB_API_URL: 'https://api.github.com', _x: '', lower: 'ü\n' } })),
  right('no environment', imageTool({ env: {} })),
  right('name of 128 characters', imageTool({ env: { ['N'.repeat(128)]: 'x' } })),
  right(
    'names that only look forbidden',
    imageTool({ env: { LDX: '', PATHS: '', MY_PATH: '', OZ0: '', XDG: '', DOCKER: '' } }),
  ),
  right('value of 4096 characters that are not ASCII', imageTool({ env: { A: '😀'.repeat(4096) } })),
  right('64 variables', imageTool({ env: Object.fromEntries(many(64, (index) => [`V${index}`, ''])) })),
  wrong('65 variables', imageTool({ env: Object.fromEntries(many(65, (index) => [`V${index}`, ''])) }), 'spec.env'),
  wrong('value of 4097 characters', imageTool({ env: { A: 'a'.repeat(4097) } }), 'spec.env'),
  wrong('value with a NUL', imageTool({ env: { A: 'a\u0000' } }), 'spec.env'),
  wrong('value that is a number', imageTool({ env: { A: 1 } }), 'spec.env'),
  wrong('value that is null is left out', imageTool({ env: { A: null, 'B-': '' } }), 'spec.env'),
  wrong('empty name', imageTool({ env: { '': 'x' } }), 'spec.env'),
  wrong('name with a digit first', imageTool({ env: { '1A': 'x' } }), 'spec.env'),
  wrong('name with a dash', imageTool({ env: { 'A-B': 'x' } }), 'spec.env'),
  wrong('name with =', imageTool({ env: { 'A=B': 'x' } }), 'spec.env'),
  wrong('name with a newline', imageTool({ env: { 'A\nLD_PRELOAD': 'x' } }), 'spec.env'),
  wrong('name of 129 characters', imageTool({ env: { ['N'.repeat(129)]: 'x' } }), 'spec.env'),
  ...['LD_PRELOAD', 'LD_', 'DYLD_INSERT_LIBRARIES', 'GLIBC_TUNABLES', 'GCONV_PATH', 'PATH', 'OZ0_SIDECAR'].map((name) =>
    wrong(`variable ${name}`, imageTool({ env: { [name]: 'x' } }), 'spec.env'),
  ),
  ...[
    'DOCKER_HOST',
    'CONTAINERS_CONF',
    'CONTAINER_HOST',
    'CONTAINERD_ADDRESS',
    'HOME',
    'XDG_RUNTIME_DIR',
    'REGISTRY_AUTH_FILE',
  ].flatMap((name) => [
    wrong(`variable ${name} of an image`, imageTool({ env: { [name]: 'x' } }), 'spec.env'),
    right(`variable ${name} of a plugin's own code`, tool({ plugin: 'p', mcp: ['x'], env: { [name]: 'x' } })),
    wrong(
      `variable ${name} of an image of a plugin`,
      plugin({ tools: [entry('acme_a', { env: { [name]: 'x' } })] }),
      'spec.tools[0].env',
    ),
  ]),
  ...[
    'https://models.example.com/v1',
    'http://models.example.com:8080',
    'https://10.0.0.5/v1',
    'https://127.example.com/',
  ].map((url) => right(`model at ${url}`, imageTool({ env: { OPENAI_BASE_URL: url, ANTHROPIC_BASE_URL: url } }))),
  ...[
    'http://localhost:8080',
    'http://LOCALHOST/',
    'http://a.localhost/',
    'http://localhost.localdomain/',
    'http://127.0.0.1:11434/v1',
    'http://127.1/',
    'http://2130706433/',
    'http://0x7f000001/',
    'http://0177.0.0.1/',
    'http://0.0.0.0/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://user@127.0.0.1/',
    'http://a.example.com@localhost/',
    'http://localhost./',
    'http://ip6-localhost/',
    ' http://127.0.0.1/',
    'localhost:8080',
    '',
  ].flatMap((url) => [
    wrong(`model of OpenAI's kind at ${JSON.stringify(url)}`, imageTool({ env: { OPENAI_BASE_URL: url } }), 'spec.env'),
    wrong(
      `model of Anthropic's kind at ${JSON.stringify(url)}`,
      imageTool({ env: { ANTHROPIC_BASE_URL: url } }),
      'spec.env',
    ),
  ]),
];

const settings: Case[] = [
  right(
    'everything',
    imageTool({
      affinity: 'any',
      replicas: 2,
      timeout: '1m30s',
      concurrency: 1,
      runAsUser: 1000,
      resources: {
        requests: { cpu: '50m', memory: '64Mi' },
        limits: { cpu: 2, memory: '256Mi', 'ephemeral-storage': '1Gi' },
      },
      runtimeClassName: 'gvisor',
      nodeSelector: { 'kubernetes.io/arch': 'amd64', 'example.com/gpu': '' },
      tolerations: [
        { operator: 'Exists' },
        { key: 'example.com/gpu', operator: 'Equal', value: 'yes', effect: 'NoSchedule' },
        { key: 'a', effect: 'NoExecute', tolerationSeconds: 60 },
      ],
    }),
  ),
  right('affinity node', imageTool({ affinity: 'node' })),
  wrong('affinity of another word', imageTool({ affinity: 'Node' }), 'spec.affinity'),
  right('url of affinity any', tool({ url: 'https://mcp.example.com/', affinity: 'any' })),
  wrong('url of affinity node', tool({ url: 'https://mcp.example.com/', affinity: 'node' }), 'spec.affinity'),
  right('replicas of a url', tool({ url: 'https://mcp.example.com/', replicas: 3 })),
  wrong('replicas where affinity is left out', imageTool({ replicas: 2 }), 'spec.replicas'),
  wrong('replicas of affinity node', imageTool({ affinity: 'node', replicas: 2 }), 'spec.replicas'),
  wrong('no replicas', imageTool({ affinity: 'any', replicas: 0 }), 'spec.replicas'),
  wrong('replicas as text', imageTool({ affinity: 'any', replicas: '2' }), 'spec.replicas'),
  wrong('half a replica', imageTool({ affinity: 'any', replicas: 1.5 }), 'spec.replicas'),
  ...['1s', '30m', '1800s', '29m60s', '0h30m', '90s', '001s'].map((timeout) =>
    right(`timeout ${timeout}`, imageTool({ timeout })),
  ),
  ...['', 's', '0s', '60', '-1s', '1.5s', '1h', '30m1s', '1d', '500ms', '1s1m', '60 s', '1801s', '99999999s'].map(
    (timeout) => wrong(`timeout "${timeout}"`, imageTool({ timeout }), 'spec.timeout'),
  ),
  wrong('timeout as a number', imageTool({ timeout: 60 }), 'spec.timeout'),
  wrong('no concurrency', imageTool({ concurrency: 0 }), 'spec.concurrency'),
  wrong('concurrency without measure', imageTool({ concurrency: 1025 }), 'spec.concurrency'),
  wrong('root', imageTool({ runAsUser: 0 }), 'spec.runAsUser'),
  wrong("the sidecar's user", imageTool({ runAsUser: 65533 }), 'spec.runAsUser'),
  wrong('a user outside of a user namespace', imageTool({ runAsUser: 65536 }), 'spec.runAsUser'),
  right('timeout that is null has its default', imageTool({ timeout: null, affinity: null })),
];

const amounts: Case[] = [
  ...[1, '1', '1.5', '50m', '0.001', '0.5', '1000m'].map((cpu) =>
    right(`cpu ${JSON.stringify(cpu)}`, imageTool({ resources: { requests: { cpu } } })),
  ),
  ...[0, -1, '0', '-1', '1e3', '0.1m', '1Gi', '0m', '', '0.0', 1.5, '1.2345', ' 1'].map((cpu) =>
    wrong(`cpu ${JSON.stringify(cpu)}`, imageTool({ resources: { limits: { cpu } } }), 'spec.resources.limits.cpu'),
  ),
  ...[67108864, '64Mi', '0.5Gi', '1.5Gi', '1Ti'].map((memory) =>
    right(`memory ${JSON.stringify(memory)}`, imageTool({ resources: { limits: { memory } } })),
  ),
  ...[0, -1, '0', '-64Mi', '1e3', '64mi', '64 Mi', '100m', '64MiB', ''].map((memory) =>
    wrong(
      `memory ${JSON.stringify(memory)}`,
      imageTool({ resources: { limits: { memory } } }),
      'spec.resources.limits.memory',
    ),
  ),
  right(
    'request as its limit, in other units',
    imageTool({ resources: { requests: { cpu: '1000m', memory: '1Gi' }, limits: { cpu: 1, memory: '1024Mi' } } }),
  ),
  wrong(
    'request of cpu over its limit',
    imageTool({ resources: { requests: { cpu: 2 }, limits: { cpu: '1999m' } } }),
    'spec.resources.requests',
  ),
  wrong(
    'request of memory over its limit',
    imageTool({ resources: { requests: { memory: '1Gi' }, limits: { memory: '1G' } } }),
    'spec.resources.requests',
  ),
  wrong(
    'request of disk over its limit',
    imageTool({ resources: { requests: { 'ephemeral-storage': '2Gi' }, limits: { 'ephemeral-storage': '1Gi' } } }),
    'spec.resources.requests',
  ),
  wrong(
    'a resource that is none of these',
    imageTool({ resources: { limits: { 'nvidia.com/gpu': 1 } } }),
    'spec.resources.limits.nvidia.com/gpu',
  ),
];

const scheduling: Case[] = [
  wrong('label of a node that is none', imageTool({ nodeSelector: { 'a b': 'x' } }), 'spec.nodeSelector'),
  wrong('label of a node with two slashes', imageTool({ nodeSelector: { 'a/b/c': 'x' } }), 'spec.nodeSelector'),
  wrong('value of a label with a space', imageTool({ nodeSelector: { a: 'x y' } }), 'spec.nodeSelector'),
  wrong('value of a label of 64 characters', imageTool({ nodeSelector: { a: 'x'.repeat(64) } }), 'spec.nodeSelector'),
  wrong('toleration of nothing', imageTool({ tolerations: [{}] }), 'spec.tolerations[0]'),
  wrong(
    'toleration without key that is not Exists',
    imageTool({ tolerations: [{ operator: 'Equal' }] }),
    'spec.tolerations[0]',
  ),
  wrong(
    'toleration Exists with a value',
    imageTool({ tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] }),
    'spec.tolerations[0]',
  ),
  wrong(
    'seconds of another effect',
    imageTool({ tolerations: [{ key: 'a', effect: 'NoSchedule', tolerationSeconds: 1 }] }),
    'spec.tolerations[0]',
  ),
  wrong('17 tolerations', imageTool({ tolerations: many(17, () => ({ operator: 'Exists' })) }), 'spec.tolerations'),
  wrong('RuntimeClass that is none', imageTool({ runtimeClassName: 'gVisor' }), 'spec.runtimeClassName'),
];

const plugins: Case[] = [
  right('plugin without tools', plugin({})),
  right(
    'plugin',
    plugin({
      source: { image: `ghcr.example/acme/github@${DIGEST}`, pullSecrets: ['pull'] },
      tools: [
        {
          id: 'acme_github',
          mcp: ['python', '-m', 'acme_github.mcp'],
          env: { GITHUB_API_URL: 'https://api.github.com' },
        },
        { id: 'acme_fetch', package: 'pypi:mcp-server-fetch==2026.8.18', affinity: 'any' },
        { id: 'acme_search', url: 'https://mcp.example.com/mcp' },
        entry('acme'),
      ],
    }),
  ),
  right('id that is the name', plugin({ tools: [entry('acme')] }, 'acme')),
  right('id that starts with the name', plugin({ tools: [entry('acme_github_issues')] })),
  right('reserved name, which the cluster admin judges', plugin({ tools: [entry('oz0_github')] }, 'oz0-github')),
  wrong('plugin without version', { ...plugin({}), spec: {} }, 'spec.version'),
  wrong('version with a space', { ...plugin({}), spec: { version: '1 4' } }, 'spec.version'),
  wrong('name of 41 characters', plugin({}, 'a'.repeat(41)), ''),
  wrong('name with two dashes in a row', plugin({}, 'acme--github'), ''),
  wrong('id of nobody', plugin({ tools: [entry('github')] }), 'spec.tools'),
  wrong('id whose first word only starts like the name', plugin({ tools: [entry('acmex_github')] }), 'spec.tools'),
  wrong('id of which the name only starts with the first word', plugin({ tools: [entry('ac_github')] }), 'spec.tools'),
  wrong('second id of nobody', plugin({ tools: [entry('acme'), entry('fetch')] }), 'spec.tools'),
  wrong('id with dashes', plugin({ tools: [entry('acme-github')] }), 'spec.tools[0].id'),
  wrong('id with __', plugin({ tools: [entry('acme__github')] }), 'spec.tools[0].id'),
  wrong('id with _ at the end', plugin({ tools: [entry('acme_')] }), 'spec.tools[0].id'),
  wrong('id of 41 characters', plugin({ tools: [entry(`acme_${'a'.repeat(36)}`)] }), 'spec.tools[0].id'),
  wrong('an id twice', plugin({ tools: [entry('acme_a'), entry('acme_a')] }), 'spec.tools'),
  wrong('entry without id', plugin({ tools: [{ image }] }), 'spec.tools[0].id'),
  wrong('33 tools', plugin({ tools: many(33, (index) => entry(`acme_t${index}`)) }), 'spec.tools'),
  wrong('mcp without a source', plugin({ tools: [{ id: 'acme_a', mcp: ['x'] }] }), 'spec.source'),
  wrong('entry with two sources', plugin({ tools: [entry('acme_a', { url: 'https://a.example/' })] }), 'spec.tools[0]'),
  wrong('entry without source', plugin({ tools: [{ id: 'acme_a' }] }), 'spec.tools[0]'),
  wrong(
    'entry with replicas of affinity node',
    plugin({ tools: [entry('acme_a', { replicas: 2 })] }),
    'spec.tools[0].replicas',
  ),
  wrong(
    'entry with an environment that is refused',
    plugin({ tools: [entry('acme_a', { env: { LD_PRELOAD: 'x' } })] }),
    'spec.tools[0].env',
  ),
  wrong(
    'entry with a request over its limit',
    plugin({ tools: [entry('acme_a', { resources: { requests: { cpu: 2 }, limits: { cpu: 1 } } })] }),
    'spec.tools[0].resources.requests',
  ),
  wrong(
    'entry with a timeout that is none',
    plugin({ tools: [entry('acme_a', { timeout: '1h' })] }),
    'spec.tools[0].timeout',
  ),
  wrong('entry with a plugin', plugin({ tools: [entry('acme_a', { plugin: 'acme-github' })] }), 'spec.tools[0].plugin'),
  wrong('source without image', plugin({ source: {} }), 'spec.source.image'),
];

const agents: Case[] = [
  right('agent', grants('acme_github.get_pr', 'acme_search.*')),
  right('agent without grants', agent({ serviceAccounts: ['reviewer'] })),
  right('functions as servers name them', grants('a.b', 'a.B-c.d/e_1', 'acme.tracker.list')),
  wrong('agent that is nobody', agent({ tools: ['a.*'] }), 'spec.serviceAccounts'),
  wrong('agent with no ServiceAccount', agent({ serviceAccounts: [] }), 'spec.serviceAccounts'),
  wrong('a ServiceAccount twice', agent({ serviceAccounts: ['a', 'a'] }), 'spec.serviceAccounts'),
  wrong('a ServiceAccount of another namespace', agent({ serviceAccounts: ['b/a'] }), 'spec.serviceAccounts'),
  ...[
    '*',
    'a',
    'a.',
    '.b',
    '*.*',
    'a.*b',
    'a.b*',
    'a b.c',
    'acme-github.get_pr',
    'acme__github.x',
    'a_.x',
    'A.x',
    'a.b c',
    'a.b\n',
    '',
  ].map((grant) => wrong(`grant ${JSON.stringify(grant)}`, grants(grant), 'spec.tools')),
  wrong('a grant twice', grants('a.*', 'a.*'), 'spec.tools'),
  wrong('257 grants', grants(...many(257, (index) => `a.f${index}`)), 'spec.tools'),
];

/** [case 47] A misspelt setting is refused, wherever it stands. */
const unknown: Case[] = [
  wrong('unknown field of a Tool', imageTool({ timeOut: '60s' }), 'spec.timeOut'),
  wrong('unknown field of an image', tool({ image: { ...image, transport: { stdio: {} } } }), 'spec.image.transport'),
  wrong('unknown field of resources', imageTool({ resources: { limit: {} } }), 'spec.resources.limit'),
  wrong(
    'unknown field of a toleration',
    imageTool({ tolerations: [{ operator: 'Exists', keys: 'a' }] }),
    'spec.tolerations[0].keys',
  ),
  wrong('unknown field of a Plugin', plugin({ skills: [] }), 'spec.skills'),
  wrong("unknown field of a Plugin's entry", plugin({ tools: [entry('acme_a', { host: [] })] }), 'spec.tools[0].host'),
  wrong('unknown field of an Agent', agent({ serviceAccounts: ['a'], tool: [] }), 'spec.tool'),
  wrong('unknown field beside the spec', { ...imageTool({}), specs: {} }, 'specs'),
  wrong('no spec', { apiVersion: API_VERSION, kind: 'Tool', metadata: { name: 'a' } }, 'spec'),
  wrong('spec that is text', { ...imageTool({}), spec: 'x' }, 'spec'),
];

export const CORPUS: readonly Case[] = [
  ...toolNames,
  ...sources,
  ...about('[S03]', environment),
  ...settings,
  ...amounts,
  ...scheduling,
  ...plugins,
  ...agents,
  ...CREDENTIALS,
  ...DECISIONS,
  ...unknown,
].map((item) => ({ ...item, name: `${item.object.kind}: ${item.name}` }));
