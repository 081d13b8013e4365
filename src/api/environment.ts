/** Environment variables that may be written on a Tool. They are read by everybody who may read the Tool: no place for secrets. */
import { NO_NUL } from './nul.ts';
import { map, type Rule, text } from './schema.ts';

export const NAME_PATTERN = '^[A-Za-z_][A-Za-z0-9_]{0,127}$';

/** They change what runs, or are ours: the dynamic loaders', the search path, the operator's own. */
export const FORBIDDEN_PATTERN = '^(LD_.*|DYLD_.*|GLIBC_TUNABLES|GCONV_PATH|PATH|OZ0_.*)$';

/** What a container runtime reads; refused for tools that are images. */
export const RUNTIME_PATTERN =
  '^(DOCKER_.*|CONTAINER.*_.*|BUILDAH_.*|PODMAN_.*|REGISTRY_AUTH_FILE|STORAGE_DRIVER|STORAGE_OPTS|HOME|XDG_.*)$';

/**
 * An address of a model server: http or https, then a full host name or an IPv4 address that is written plainly. What else could
 * name loopback (a single word, an address in hex, octal or one number, IPv6, a user before the host) is not taken at all.
 */
const MODEL_URL_PATTERN =
  '^https?://(([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?[.])+[A-Za-z][A-Za-z0-9-]*|([1-9][0-9]{0,2})([.](0|[1-9][0-9]{0,2})){3})(:[0-9]{1,5})?(/[!-~]*)?$';
const LOOPBACK_PATTERN = '^https?://(127([.][0-9]+){3}([:/]|$)|([^/:]*[.])?local(host|domain)([:/]|$))';

const MODEL_URL = new RegExp(MODEL_URL_PATTERN);
const LOOPBACK = new RegExp(LOOPBACK_PATTERN);
export const MODEL_URL_NAMES = ['OPENAI_BASE_URL', 'ANTHROPIC_BASE_URL'];

type Environment = Record<string, string>;

function everyName(pattern: string, wanted: boolean): Pick<Rule<Environment>, 'cel' | 'test'> {
  const expression = new RegExp(pattern);
  return {
    cel: `self.all(name, ${wanted ? '' : '!'}name.matches('${pattern}'))`,
    test: (env) => Object.keys(env).every((name) => expression.test(name) === wanted),
  };
}

export const environment = map(text({ description: 'Value of the variable.', max: 4096, ...NO_NUL }), {
  description:
    "Environment variables of the tool's process, beside the few that it always gets (PATH and LANG of its image, HOME, TMPDIR, its way out). No secrets: whoever may read this object reads them.",
  max: 64,
  rules: [
    { ...everyName(NAME_PATTERN, true), message: 'names are letters, digits and _, at most 128, no digit first' },
    {
      ...everyName(FORBIDDEN_PATTERN, false),
      message: 'LD_*, DYLD_*, GLIBC_TUNABLES, GCONV_PATH, PATH and OZ0_* cannot be set',
    },
    {
      cel: `${JSON.stringify(MODEL_URL_NAMES).replaceAll('"', "'")}.all(name, !(name in self) || (self[name].matches('${MODEL_URL_PATTERN}') && !self[name].lowerAscii().matches('${LOOPBACK_PATTERN}')))`,
      test: (env) =>
        MODEL_URL_NAMES.every((name) => {
          const value = env[name];
          return value === undefined || (MODEL_URL.test(value) && !LOOPBACK.test(value.toLowerCase()));
        }),
      message:
        'OPENAI_BASE_URL and ANTHROPIC_BASE_URL are http(s) addresses with a full host name or an IPv4 address, never loopback',
    },
  ],
});

/** A tool that is an image, on a Tool's spec or an entry of a Plugin, sets nothing that a container runtime reads. */
export const imageEnvironmentRule: Rule<{
  readonly image?: unknown;
  readonly env?: Environment;
}> = {
  cel: `!has(self.image) || !has(self.env) || self.env.all(name, !name.matches('${RUNTIME_PATTERN}'))`,
  test: ({ image, env }) =>
    image === undefined || Object.keys(env ?? {}).every((name) => !new RegExp(RUNTIME_PATTERN).test(name)),
  message:
    'a tool that is an image cannot set what a container runtime reads: DOCKER_*, CONTAINER*_*, HOME, XDG_* and the like',
  field: '.env',
};
