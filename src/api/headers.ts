// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is what users write

/** Headers that go to a remote server with every request. No credential stands in them: `${SECRET}` is where one is put in. */
import { map, type Rule, text } from './schema.ts';

/** Only letters, digits and dashes: `_` and the rest of HTTP's tokens are read in more than one way on the way. */
export const HEADER_NAME_PATTERN = '^[A-Za-z][A-Za-z0-9-]{0,63}$';

/** Lower case: what HTTP and MCP set themselves, and what says who asked. */
export const TRANSPORT_PATTERN =
  '^(host|accept|accept-encoding|content-.*|mcp-.*|last-event-id|connection|keep-alive|range|transfer-encoding|te|trailer|upgrade|expect|proxy-.*|sec-.*|http2-settings|via|forwarded|x-forwarded-.*|date|origin)$';

/** Lower case: a header named so carries a credential. */
const CREDENTIAL_PATTERN = 'token|key|secret|auth|^cookie$';
const REFERENCE = '[$][{][A-Za-z_][A-Za-z0-9_]*[}]';
/** Every `${` is closed. Short, since the API server counts its length for each header of each tool of a Plugin. */
const REFERENCES = '^([^$]|[$]+[^{$]|[$]*[$][{][^}]+[}])*[$]*$';

type Headers = Readonly<Record<string, string>>;

export const isTransportHeader = (name: string) => new RegExp(TRANSPORT_PATTERN).test(name.toLowerCase());
const isCredential = (name: string) => new RegExp(CREDENTIAL_PATTERN).test(name.toLowerCase());

/** Names in `${…}`. */
function references(value: string): readonly string[] {
  return value
    .split('${')
    .slice(1)
    .map((part) => part.split('}')[0] ?? '');
}

export const headers = map(
  text({ description: 'Value: one line of visible ASCII, with `${SECRET}` for a secret.', max: 4096 }),
  {
    description:
      'Headers that go to the remote server of `url` with every request. `${NAME}` stands for the declared secret of that name, and what carries a credential must be written so. Names that a Connection or `inject` binds are theirs.',
    max: 16,
    rules: [
      {
        cel: `self.all(name, name.matches('${HEADER_NAME_PATTERN}'))`,
        test: (all) => Object.keys(all).every((name) => new RegExp(HEADER_NAME_PATTERN).test(name)),
        message: 'names are letters, digits and dashes, at most 64, a letter first',
      },
      {
        cel: "self.all(name, self[name].matches('^([!-~]([ -~]*[!-~])?)?$'))",
        test: (all) => Object.values(all).every((value) => /^([!-~]([ -~]*[!-~])?)?$/.test(value)),
        message: 'a value is one line of visible ASCII: no control character, no blank around it',
      },
      {
        cel: `self.all(name, !name.lowerAscii().matches('${TRANSPORT_PATTERN}'))`,
        test: (all) => !Object.keys(all).some(isTransportHeader),
        message:
          'the transport sets these itself: Host, Accept, Content-*, Mcp-*, Last-Event-ID, Connection, Proxy-*, Sec-*, Forwarded and the like',
      },
      {
        cel: `self.all(name, !name.lowerAscii().matches('${CREDENTIAL_PATTERN}') || self[name].matches('${REFERENCE}'))`,
        test: (all) =>
          Object.entries(all).every(([name, value]) => !isCredential(name) || new RegExp(REFERENCE).test(value)),
        message:
          'a credential is not written here, where everybody reads it: Authorization, Cookie and names with token, key, secret or auth take theirs from a declared secret, as in "Bearer ${SEARCH_TOKEN}"',
      },
      {
        cel: `self.all(name, self[name].matches('${REFERENCES}'))`,
        test: (all) => Object.values(all).every((value) => new RegExp(REFERENCES).test(value)),
        message: '${ begins the name of a secret, and } ends it',
      },
      {
        cel: `self.all(name, self[name].indexOf('\${') == -1 || self[name].substring(self[name].indexOf('\${') + 2).indexOf('\${') == self[name].substring(self[name].indexOf('\${') + 2).lastIndexOf('\${'))`,
        test: (all) => Object.values(all).every((value) => references(value).length <= 2),
        message: 'at most two ${…} in one value',
      },
      {
        cel: 'self.all(name, self.exists_one(other, other.lowerAscii() == name.lowerAscii()))',
        test: (all) => new Set(Object.keys(all).map((name) => name.toLowerCase())).size === Object.keys(all).length,
        message: 'one header stands twice, in upper and lower case',
      },
    ],
  },
);

interface Remote {
  readonly url?: string;
  readonly headers?: Headers;
  readonly hosts?: unknown;
  readonly env?: unknown;
}

/** On a Tool, and on an entry of a Plugin. */
export const remoteRules: readonly Rule<Remote>[] = [
  {
    cel: '!has(self.headers) || has(self.url)',
    test: ({ url, headers: all }) => all === undefined || url !== undefined,
    message: 'headers go to a remote server: they stand beside url',
    field: '.headers',
  },
  {
    cel: `!has(self.url) || !has(self.headers) || !self.url.startsWith('http://') || self.headers.all(name, !name.lowerAscii().matches('${CREDENTIAL_PATTERN}') && !self.headers[name].contains('\${'))`,
    test: ({ url = '', headers: all = {} }) =>
      !url.startsWith('http://') ||
      Object.entries(all).every(([name, value]) => !isCredential(name) && !value.includes('${')),
    message: 'credentials do not go over plain http: use https',
    field: '.url',
  },
  {
    cel: '!has(self.url) || !has(self.hosts)',
    test: ({ url, hosts }) => url === undefined || hosts === undefined,
    message: "a remote server's host is in its url, and its pod reaches no other: leave hosts out",
    field: '.hosts',
  },
  {
    cel: '!has(self.url) || !has(self.env)',
    test: ({ url, env }) => url === undefined || env === undefined,
    message: 'a remote server has no environment here: leave env out',
    field: '.env',
  },
];

/** CEL: the first and the last `${…}` of each header, of at most two, name one of a list. */
function declaredCel(all: string, has: string, names: string): string {
  const named = (index: string) => `${all}[name].substring(${all}[name].${index}('\${') + 2).split('}')[0] in ${names}`;
  return `${all}.all(name, !${all}[name].contains('\${') || (${has} && ${named('indexOf')} && ${named('lastIndexOf')}))`;
}

const DECLARED = 'a header names a secret in ${…} that is not declared in';

/** On a Tool: what its headers name is declared. */
export const declaredRule: Rule<Remote & { readonly secrets?: readonly string[] }> = {
  cel: `!has(self.headers) || ${declaredCel('self.headers', 'has(self.secrets)', 'self.secrets')}`,
  test: ({ headers: all = {}, secrets = [] }) => undeclared(all, secrets).length === 0,
  message: `${DECLARED} secrets`,
  field: '.headers',
};

/** On a Plugin, whose tools' headers name what it requires. */
export const sharedDeclaredRule: Rule<{
  readonly requires?: { readonly secrets?: readonly string[] };
  readonly tools?: readonly Remote[];
}> = {
  cel: `!has(self.tools) || self.tools.all(tool, !has(tool.headers) || ${declaredCel('tool.headers', 'has(self.requires) && has(self.requires.secrets)', 'self.requires.secrets')})`,
  test: ({ requires, tools = [] }) =>
    tools.every(({ headers: all = {} }) => undeclared(all, requires?.secrets ?? []).length === 0),
  message: `${DECLARED} requires.secrets`,
  field: '.tools',
};

function undeclared(all: Headers, declared: readonly string[]): readonly string[] {
  return Object.values(all).flatMap((value) => references(value).filter((name) => !declared.includes(name)));
}
