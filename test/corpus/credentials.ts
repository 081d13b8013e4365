// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is what users write

/** Objects of hosts, secrets, headers, bindings and Connections. */
import {
  about,
  type Case,
  connection,
  entry,
  imageTool,
  many,
  plugin,
  right,
  type Spec,
  tool,
  wrong,
} from './build.ts';

const URL = 'https://mcp.example.com/mcp';
const remote = (spec: Spec) => tool({ url: URL, ...spec });
const reaching = (...hosts: unknown[]) => imageTool({ hosts });

/** [case 75] One spelling for one host, and no pattern that means more than it says. */
const hosts: Case[] = [
  ...[
    'api.github.com',
    'a.b',
    'host.example.com:8443',
    'host.example.com:1',
    'host.example.com:65535',
    '*.example.com',
    '*.example.com:8443',
    'xn--fa-hia.example',
    '127.example.com',
    '203.0.113.7',
    '203.0.113.7:8443',
    '10.0.0.5',
    `${'a'.repeat(63)}.example`,
    'localhost.example.com',
    'internal.example.com',
    'mylocal.example',
  ].map((host) => right(`host ${host}`, reaching(host))),
  right('no hosts', reaching()),
  right('32 hosts', reaching(...many(32, (index) => `h${index}.example`))),
  wrong('33 hosts', reaching(...many(33, (index) => `h${index}.example`)), 'spec.hosts'),
  wrong('a host twice', reaching('a.example', 'a.example'), 'spec.hosts'),
  wrong('hosts as text', imageTool({ hosts: 'a.example' }), 'spec.hosts'),
  ...[
    '',
    '*',
    '*.com',
    '*.*.example.com',
    'a.*.example.com',
    'a*.example.com',
    '.example.com',
    'example.com.',
    'a..example.com',
    'API.github.com',
    'faß.example',
    'a_b.example',
    '-a.example',
    'a-.example',
    `${'a'.repeat(64)}.example`,
    'localhost',
    'a.localhost',
    'metadata',
    'metadata.google.internal',
    'metadata.goog:8080',
    'kubernetes.default.svc',
    '*.default.svc.cluster.local',
    'printer.local',
    'https://api.github.com',
    'api.github.com/path',
    'user@api.github.com',
    'api.github.com:0',
    'api.github.com:65536',
    'api.github.com:080',
    'api.github.com:',
    'api.github.com:https',
    '127.0.0.1',
    '127.0.0.1:8443',
    '127.1',
    '2130706433',
    '0x7f000001',
    '0x7f.0.0.1',
    '0177.0.0.1',
    '010.0.0.1',
    '0.0.0.0',
    '169.254.169.254',
    '256.1.1.1',
    '1.2.3.4.5',
    '*.0.0.1',
    '[::1]',
    '::1',
    'a.example\n',
    ' a.example',
    'a.example b.example',
  ].map((host) => wrong(`host ${JSON.stringify(host)}`, reaching(host), 'spec.hosts')),
  right("hosts of a plugin's tool", plugin({ tools: [entry('acme_a', { hosts: ['*.example.com'] })] })),
  wrong(
    'host of a plugin with a scheme',
    plugin({ tools: [entry('acme_a', { hosts: ['http://a.b'] })] }),
    'spec.tools',
  ),
];

/** What a secret, or a variable, may never be named. */
const FORBIDDEN = ['LD_PRELOAD', 'DYLD_LIBRARY_PATH', 'GLIBC_TUNABLES', 'GCONV_PATH', 'PATH', 'OZ0_SIDECAR'];

const secrets: Case[] = [
  right('secrets', imageTool({ secrets: ['GITHUB_TOKEN', '_x', 'lower'], secretRef: { name: 'acme.github' } })),
  right('secrets of the Secret named as the Tool', imageTool({ secrets: ['GITHUB_TOKEN'] })),
  right('no secrets', imageTool({ secrets: [] })),
  right('secret and variable', imageTool({ secrets: ['A'], env: { B: '' } })),
  wrong('a secret that is a variable too', imageTool({ secrets: ['A'], env: { A: '' } }), 'spec.secrets'),
  wrong('a secret twice', imageTool({ secrets: ['A', 'A'] }), 'spec.secrets'),
  wrong('33 secrets', imageTool({ secrets: many(33, (index) => `S${index}`) }), 'spec.secrets'),
  wrong('reference without secrets', imageTool({ secretRef: { name: 'a' } }), 'spec.secretRef'),
  wrong('reference without name', imageTool({ secrets: ['A'], secretRef: {} }), 'spec.secretRef.name'),
  wrong(
    'reference to a Secret of another namespace',
    imageTool({ secrets: ['A'], secretRef: { name: 'b/a' } }),
    'spec.secretRef.name',
  ),
  wrong(
    'reference with a namespace',
    imageTool({ secrets: ['A'], secretRef: { name: 'a', namespace: 'b' } }),
    'spec.secretRef.namespace',
  ),
  ...['', '1A', 'A-B', 'a.b', 'A B', 'A=B', '../A', 'A\n', 'N'.repeat(129)].map((name) =>
    wrong(`secret ${JSON.stringify(name)}`, imageTool({ secrets: [name] }), 'spec.secrets'),
  ),
  ...[...FORBIDDEN, 'OPENAI_BASE_URL', 'ANTHROPIC_BASE_URL'].flatMap((name) => [
    wrong(`secret ${name}`, imageTool({ secrets: [name] }), 'spec.secrets'),
    wrong(`secret ${name} of a plugin`, plugin({ requires: { secrets: [name] } }), 'spec.requires.secrets'),
  ]),
  ...['DOCKER_HOST', 'HOME', 'XDG_RUNTIME_DIR'].flatMap((name) => [
    wrong(`secret ${name} of an image`, imageTool({ secrets: [name] }), 'spec.secrets'),
    right(
      `secret ${name} of a plugin's own code`,
      plugin({ source: { image: 'a/b' }, requires: { secrets: [name] }, tools: [{ id: 'acme', mcp: ['x'] }] }),
    ),
    wrong(
      `secret ${name} of a plugin with an image`,
      plugin({ requires: { secrets: [name] }, tools: [entry('acme')] }),
      'spec.requires',
    ),
  ]),
  right(
    'requires',
    plugin({
      requires: { secrets: ['A', 'B'], secretRef: { name: 'other' }, inject: [{ secret: 'A', host: 'a.example' }] },
    }),
  ),
  right('requires nothing', plugin({ requires: {} })),
  wrong('requires a reference only', plugin({ requires: { secretRef: { name: 'a' } } }), 'spec.requires.secretRef'),
  wrong(
    'secret of a plugin that is a variable too',
    plugin({ requires: { secrets: ['A'] }, tools: [entry('acme', { env: { A: '' } })] }),
    'spec.requires',
  ),
  wrong("secrets on a plugin's tool", plugin({ tools: [entry('acme', { secrets: ['A'] })] }), 'spec.tools[0].secrets'),
];

const bound = (binding: Spec) =>
  imageTool({ secrets: ['A', 'B'], inject: [{ secret: 'A', host: 'a.example', ...binding }] });
const twice = (one: Spec, two: Spec) =>
  imageTool({
    secrets: ['A', 'B'],
    inject: [
      { secret: 'A', host: 'a.example', ...one },
      { secret: 'B', host: 'a.example', ...two },
    ],
  });

const bindings: Case[] = [
  right('binding', bound({})),
  right(
    'binding with everything',
    bound({ port: 8443, in: 'header', header: 'X-Api-Key', format: 'v1 ${value}.', websocket: true }),
  ),
  right('binding of a query parameter', bound({ in: 'query', parameter: 'api_key', format: '${value}' })),
  wrong('binding of a secret that is not declared', bound({ secret: 'C' }), 'spec.inject'),
  wrong('binding without secrets', imageTool({ inject: [{ secret: 'A', host: 'a.example' }] }), 'spec.inject'),
  wrong('binding without a host', imageTool({ secrets: ['A'], inject: [{ secret: 'A' }] }), 'spec.inject[0].host'),
  ...[
    '*.example.com',
    'a.example:8443',
    'A.example',
    'a.example.',
    'https://a.example',
    'localhost',
    '127.0.0.1',
    '203.0.113.7',
    'a.internal',
    '',
  ].map((host) => wrong(`binding to ${JSON.stringify(host)}`, bound({ host }), 'spec.inject[0].host')),
  ...[0, 65_536, '443'].map((port) =>
    wrong(`binding to port ${JSON.stringify(port)}`, bound({ port }), 'spec.inject[0].port'),
  ),
  ...[
    '',
    'X Key',
    'X_Key',
    'X-Key:',
    'X-Key\n',
    '1-Key',
    'Host',
    'content-length',
    'Transfer-Encoding',
    'Proxy-Authorization',
    'Mcp-Session-Id',
    'Connection',
  ].map((header) => wrong(`binding to header ${JSON.stringify(header)}`, bound({ header }), 'spec.inject[0].header')),
  ...[
    '',
    'Bearer',
    'Bearer $value',
    '${value}${value}',
    '${value} ${other}',
    '${VALUE}',
    '${ value }',
    '${value}\n',
    ' ${value}',
    '${value} ',
  ].map((format) => wrong(`format ${JSON.stringify(format)}`, bound({ format }), 'spec.inject[0].format')),
  wrong('binding in the body', bound({ in: 'body' }), 'spec.inject[0].in'),
  wrong('binding in the query without parameter', bound({ in: 'query' }), 'spec.inject[0]'),
  wrong('binding in the query with a header', bound({ in: 'query', parameter: 'a', header: 'X-A' }), 'spec.inject[0]'),
  wrong('binding in a header with a parameter', bound({ parameter: 'a' }), 'spec.inject[0]'),
  wrong('parameter with an &', bound({ in: 'query', parameter: 'a&b' }), 'spec.inject[0].parameter'),
  right('one host, two headers', twice({}, { header: 'X-Key' })),
  right('one host, two ports', twice({}, { port: 8443 })),
  right('one host, header and parameter', twice({}, { in: 'query', parameter: 'Authorization' })),
  right('one host, two parameters', twice({ in: 'query', parameter: 'a' }, { in: 'query', parameter: 'A' })),
  wrong('one host, one header', twice({}, {}), 'spec.inject'),
  wrong('one host, one header in two spellings', twice({}, { header: 'AUTHORIZATION' }), 'spec.inject'),
  wrong('one host, another header in two spellings', twice({ header: 'x-key' }, { header: 'X-Key' }), 'spec.inject'),
  wrong(
    'one host, one parameter',
    twice({ in: 'query', parameter: 'a' }, { in: 'query', parameter: 'a' }),
    'spec.inject',
  ),
  wrong(
    '17 bindings',
    imageTool({ secrets: ['A'], inject: many(17, (index) => ({ secret: 'A', host: `h${index}.example` })) }),
    'spec.inject',
  ),
  wrong(
    'binding of a plugin of a secret that is not declared',
    plugin({ requires: { secrets: ['A'], inject: [{ secret: 'B', host: 'a.example' }] } }),
    'spec.requires.inject',
  ),
];

const urls: Case[] = [
  ...[
    URL,
    'https://mcp.example.com',
    'https://mcp.example.com:8443/a?b=c%20d',
    'https://203.0.113.7/mcp',
    'http://mcp.example.com/mcp',
    'https://{params.host}/mcp?a=b',
    'https://{params.host}',
  ].map((url) => right(`url ${url}`, tool({ url }))),
  ...[
    'https://',
    'https://mcp',
    'https://localhost/mcp',
    'https://a.localhost/mcp',
    'https://127.0.0.1/mcp',
    'http://127.0.0.1:3000/mcp',
    'https://169.254.169.254/',
    'https://metadata.google.internal/',
    'https://kubernetes.default.svc:443/',
    'https://2130706433/',
    'https://[::1]/mcp',
    'https://user@mcp.example.com/',
    'https://a:b@mcp.example.com/',
    'https://mcp.example.com/#a',
    'https://mcp.example.com\\@evil.example/',
    'https://MCP.example.com/',
    'HTTPS://mcp.example.com/',
    'https://mcp.example.com./',
    'https://mcp.example.com:0/',
    'https://*.example.com/',
    'https://mcp.example.com/ä',
    'http://{params.host}/mcp',
    'https://{params.host}:8443/mcp',
    'https://{params.host}.evil.example/',
    'https://a.{params.host}/',
    'https://user@{params.host}/',
    'https://{params.host}/{params.path}',
    'https://{params.Host}/',
    'https://{params.host}?a=b',
    'https://{params.host}/#a',
    'https://{host}/mcp',
    'ftp://mcp.example.com/',
    '//mcp.example.com/',
  ].map((url) => wrong(`url ${JSON.stringify(url)}`, tool({ url }), 'spec.url')),
  wrong('url with hosts', remote({ hosts: ['a.example'] }), 'spec.hosts'),
  wrong('url with an environment', remote({ env: { A: '' } }), 'spec.env'),
];

const withHeaders = (headers: Spec, more: Spec = {}) => remote({ secrets: ['SEARCH_TOKEN', 'B'], headers, ...more });

/** [C06] */
const headers: Case[] = [
  right('headers', withHeaders({ Authorization: 'Bearer ${SEARCH_TOKEN}', 'X-Team': 'platform', 'X-Empty': '' })),
  right('two secrets in one header', withHeaders({ 'X-Both': '${SEARCH_TOKEN}:${B}' })),
  right('dollars that begin nothing', withHeaders({ 'X-Price': '$5 $$ {a} }' })),
  right('dollars before a secret', withHeaders({ 'X-Price': '$$${B}' })),
  right('16 headers', withHeaders(Object.fromEntries(many(16, (index) => [`X-${index}`, 'a'])))),
  right('header of 4096 characters', withHeaders({ 'X-Team': 'a'.repeat(4096) })),
  wrong('17 headers', withHeaders(Object.fromEntries(many(17, (index) => [`X-${index}`, 'a']))), 'spec.headers'),
  wrong('header of 4097 characters', withHeaders({ 'X-Team': 'a'.repeat(4097) }), 'spec.headers'),
  ...[' a', 'a ', ' ', 'a\nb', 'a\r\nX-Evil: b', 'a\u0000', 'ä', '\t', 'a\u2028b'].map((value) =>
    wrong(`value ${JSON.stringify(value)}`, withHeaders({ 'X-Team': value }), 'spec.headers'),
  ),
  ...['', 'X Team', 'X_Team', 'X-Team:', 'X-Team\n', '__proto__x', '1-Team', `X${'-'.repeat(64)}`].map((name) =>
    wrong(`header ${JSON.stringify(name)}`, withHeaders({ [name]: 'a' }), 'spec.headers'),
  ),
  ...[
    'Authorization',
    'authorization',
    'Cookie',
    'COOKIE',
    'X-Api-Key',
    'X-Token',
    'Client-Secret',
    'X-Auth',
    'Keyword',
  ].flatMap((name) => [
    wrong(`${name} that is written`, withHeaders({ [name]: 'abc' }), 'spec.headers'),
    right(`${name} from a secret`, withHeaders({ [name]: '${B}' })),
    wrong(`${name} over plain http`, withHeaders({ [name]: '${B}' }, { url: 'http://mcp.example.com/' }), 'spec.url'),
  ]),
  ...[
    'Host',
    'HOST',
    'Content-Type',
    'Content-Length',
    'Accept',
    'Mcp-Session-Id',
    'Mcp-Protocol-Version',
    'Last-Event-ID',
    'Connection',
    'Transfer-Encoding',
    'TE',
    'Upgrade',
    'Proxy-Authorization',
    'X-Forwarded-For',
  ].map((name) => wrong(`header ${name} of the transport`, withHeaders({ [name]: '${B}' }), 'spec.headers')),
  ...[
    '${C}',
    '${}',
    '${ B }',
    '${b}',
    '${SEARCH_TOKENS}',
    '${B',
    '${SEARCH_TOKEN} ${C}',
    '${C} ${B}',
    '${${B}}',
    'a}${B',
  ].map((value) => wrong(`value ${value}`, withHeaders({ 'X-Team': value }), 'spec.headers')),
  wrong('three secrets in one header', withHeaders({ 'X-Team': '${B}${B}${B}' }), 'spec.headers'),
  wrong('one header in two spellings', withHeaders({ 'X-Team': 'a', 'x-team': 'b' }), 'spec.headers'),
  wrong('secret in a header where none is declared', remote({ headers: { 'X-Team': '${B}' } }), 'spec.headers'),
  right('header over plain http', remote({ url: 'http://mcp.example.com/', headers: { 'X-Team': 'platform' } })),
  wrong(
    '[case 77] any secret over plain http',
    withHeaders({ 'X-Team': '${B}' }, { url: 'http://mcp.example.com/' }),
    'spec.url',
  ),
  wrong('headers of an image', imageTool({ headers: { 'X-Team': 'a' } }), 'spec.headers'),
  right(
    'headers of a plugin',
    plugin({
      requires: { secrets: ['B'] },
      tools: [{ id: 'acme', url: URL, headers: { Authorization: 'Bearer ${B}' } }],
    }),
  ),
  wrong(
    'header of a plugin that names what it does not require',
    plugin({ requires: { secrets: ['B'] }, tools: [{ id: 'acme', url: URL, headers: { 'X-A': '${C}' } }] }),
    'spec.tools',
  ),
  wrong(
    'header of a plugin that requires nothing',
    plugin({ tools: [{ id: 'acme', url: URL, headers: { 'X-A': '${C}' } }] }),
    'spec.tools',
  ),
  wrong(
    'credential of a plugin that is written',
    plugin({ tools: [{ id: 'acme', url: URL, headers: { Authorization: 'abc' } }] }),
    'spec.tools[0].headers',
  ),
];

const SECRET = { secretRef: { name: 'tracker' }, key: 'token' };
const BIND = [{ host: 'gitlab.example.com' }];
const connected = (spec: Spec, name?: string) =>
  connection({ tools: ['tracker'], kind: 'secret', secret: SECRET, bind: BIND, ...spec }, name);

const connecting = (more: Spec) =>
  plugin({
    tools: [entry('acme')],
    connections: [{ name: 'tracker', tools: ['acme'], kind: 'secret', secret: SECRET, bind: BIND, ...more }],
  });

const connections: Case[] = [
  right('connection', connected({})),
  right('connection in a plugin', connecting({})),
  wrong('connection in a plugin without a name', connecting({ name: undefined }), 'spec.connections'),
  wrong('connection in a plugin, named as an id', connecting({ name: 'a_b' }), 'spec.connections'),
  wrong('connection in a plugin for no tool', connecting({ tools: [] }), 'spec.connections'),
  wrong('connection in a plugin without a host', connecting({ bind: [{ host: 'localhost' }] }), 'spec.connections'),
  right(
    'connection with everything',
    connected({
      tools: ['a', 'b_c'],
      secret: { ...SECRET, key: 'a.b_c-1' },
      bind: [
        { host: 'a.example', port: 8443, header: 'X-Key', format: 'k ${value}', websocket: true },
        { host: 'a.example', in: 'query', parameter: 'key' },
      ],
    }),
  ),
  wrong('connection for no tool', connected({ tools: [] }), 'spec.tools'),
  wrong('connection for a tool by its name', connected({ tools: ['a-b'] }), 'spec.tools'),
  wrong('connection for a tool twice', connected({ tools: ['a', 'a'] }), 'spec.tools'),
  ...['steps', 'clientCredentials', 'jwtExchange', 'identity', 'onBehalfOf', 'federated', 'Secret'].map((kind) =>
    wrong(`connection of kind ${kind}`, connected({ kind }), 'spec.kind'),
  ),
  wrong('connection without kind', connection({ tools: ['a'], secret: SECRET, bind: BIND }), 'spec.kind'),
  wrong('connection without secret', connection({ tools: ['a'], kind: 'secret', bind: BIND }), 'spec.secret'),
  wrong('connection without key', connected({ secret: { secretRef: { name: 'a' } } }), 'spec.secret.key'),
  wrong('connection without reference', connected({ secret: { key: 'a' } }), 'spec.secret.secretRef'),
  ...['', '.', '..', '..a', '../a', 'a/b', 'a b'].map((key) =>
    wrong(`key ${JSON.stringify(key)}`, connected({ secret: { ...SECRET, key } }), 'spec.secret.key'),
  ),
  wrong('connection without bindings', connection({ tools: ['a'], kind: 'secret', secret: SECRET }), 'spec.bind'),
  wrong('connection with no binding', connected({ bind: [] }), 'spec.bind'),
  wrong('connection to any host', connected({ bind: [{ host: '*.example.com' }] }), 'spec.bind[0].host'),
  wrong('connection that binds a place twice', connected({ bind: [...BIND, ...BIND] }), 'spec.bind'),
  wrong(
    'binding of a connection with a secret',
    connected({ bind: [{ host: 'a.example', secret: 'A' }] }),
    'spec.bind[0].secret',
  ),
  wrong('connection with a value', connected({ secret: { ...SECRET, value: 'abc' } }), 'spec.secret.value'),
  wrong('name with a dot', connected({}, 'a.b'), ''),
  wrong('name of 41 characters', connected({}, 'a'.repeat(41)), ''),
];

export const CREDENTIALS: readonly Case[] = [
  ...about('[S05]', hosts),
  ...about('[C01] [S03]', secrets),
  ...about('[C02]', bindings),
  ...about('[K06] [N07]', urls),
  ...about('[C06]', headers),
  ...connections,
];
