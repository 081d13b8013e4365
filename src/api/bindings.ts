// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${...} is what users write

/** Bindings of a secret to a place in requests to one host: the tool sees a placeholder, and its sidecar puts the value in there only. */
import { HEADER_NAME_PATTERN, isTransportHeader, TRANSPORT_PATTERN } from './headers.ts';
import { exactHost } from './hosts.ts';
import { choice, flag, integer, list, object, optional, type Rule, text, withDefault } from './schema.ts';
import { secretName } from './secrets.ts';

export const BINDINGS_MAX = 16;

const VALUE = '${value}';

const place = {
  host: exactHost(
    'The one host whose requests get the value, over TLS. Any other gets the placeholder at most. It opens nothing: a tool reaches what its `hosts` or `url` name.',
  ),
  port: withDefault(integer({ description: 'Port of the host.', min: 1, max: 65_535 }), 443),
  in: withDefault(choice(['header', 'query'], { description: 'Where in a request it goes.' }), 'header'),
  header: optional(
    text({
      description: 'Name of the header. Left out, `Authorization`.',
      max: 64,
      rules: [
        {
          cel: `self.matches('${HEADER_NAME_PATTERN}')`,
          test: (name) => new RegExp(HEADER_NAME_PATTERN).test(name),
          message: 'must be letters, digits and dashes, at most 64, a letter first',
        },
        {
          cel: `!self.lowerAscii().matches('${TRANSPORT_PATTERN}')`,
          test: (name) => !isTransportHeader(name),
          message: 'the transport sets this header itself',
        },
      ],
    }),
  ),
  parameter: optional(
    text({
      description: 'Name of the query parameter, where `in` is `query`.',
      min: 1,
      max: 64,
      pattern: /^[A-Za-z0-9._~-]+$/,
      patternMessage: 'must be letters, digits and . _ ~ -',
    }),
  ),
  format: optional(
    text({
      description:
        'The whole of the header or parameter, with `${value}` for the value. Left out, `Bearer ${value}` in `Authorization`, and the bare value elsewhere.',
      max: 256,
      rules: [
        {
          cel: `self.split('${VALUE}').size() == 2 && self.split('\${').size() == 2`,
          test: (format) => format.split(VALUE).length === 2 && format.split('${').length === 2,
          message: `must hold \${value} once, and no other \${…}`,
        },
        {
          cel: "self.matches('^[!-~]([ -~]*[!-~])?$')",
          test: (format) => /^[!-~]([ -~]*[!-~])?$/.test(format),
          message: 'must be one line of visible ASCII, without blanks around it',
        },
      ],
    }),
  ),
  websocket: withDefault(
    flag({ description: 'Whether a WebSocket may be opened with it. The value is in the opening request only.' }),
    false,
  ),
};

interface Place {
  readonly host: string;
  readonly port: number;
  readonly in: 'header' | 'query';
  readonly header?: string;
  readonly parameter?: string;
}

const placeRules = [
  {
    cel: "self.__in__ == 'query' ? has(self.parameter) && !has(self.header) : !has(self.parameter)",
    test: ({ in: where, header, parameter }: Place) =>
      where === 'query' ? parameter !== undefined && header === undefined : parameter === undefined,
    message: 'in: query names a parameter and no header; in: header may name a header and no parameter',
  },
] as const satisfies readonly Rule<never>[];

const isAuthorization = (binding: string) =>
  `(!has(${binding}.header) || ${binding}.header.lowerAscii() == 'authorization')`;

/** Compared by what names a place: two values in one place of a request cannot both be sent. */
const distinctRule: Rule<readonly Place[]> = {
  cel: `self.all(a, self.exists_one(b, a.host == b.host && a.port == b.port && a.__in__ == b.__in__ && (a.__in__ == 'query' ? has(a.parameter) && has(b.parameter) && a.parameter == b.parameter : ${isAuthorization('a')} ? ${isAuthorization('b')} : has(a.header) && has(b.header) && a.header.lowerAscii() == b.header.lowerAscii())))`,
  test: (bindings) => new Set(bindings.map(placeOf)).size === bindings.length,
  message: 'one place of the requests to a host is bound twice',
};

/** One text for one place. */
export function placeOf({ host, port, in: where, header = 'Authorization', parameter = '' }: Place): string {
  return `${host}:${port} ${where} ${where === 'query' ? parameter : header.toLowerCase()}`;
}

export const inject = list(
  object(
    {
      secret: secretName('Which of the declared secrets.'),
      ...place,
    },
    { description: 'A binding.', rules: placeRules },
  ),
  {
    description:
      'Binds secrets to hosts: the tool gets a placeholder in place of the value, which is put in on the way, in requests to that host only.',
    max: BINDINGS_MAX,
    merge: 'atomic',
    rules: [distinctRule],
  },
);

export const bind = list(object(place, { description: 'A binding.', rules: placeRules }), {
  description: 'Where the credential goes: into requests of these tools to these hosts.',
  min: 1,
  max: BINDINGS_MAX,
  merge: 'atomic',
  rules: [distinctRule],
});

interface Injecting {
  readonly secrets?: readonly string[];
  readonly inject?: readonly { readonly secret: string }[];
}

/** What is bound is declared. */
export const injectRule: Rule<Injecting> = {
  cel: '!has(self.inject) || self.inject.all(binding, has(self.secrets) && binding.secret in self.secrets)',
  test: ({ secrets = [], inject: bindings = [] }) => bindings.every(({ secret }) => secrets.includes(secret)),
  message: 'binds a secret that is not declared in secrets',
  field: '.inject',
};
