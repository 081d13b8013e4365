/** Secrets of a tool: which keys of which Secret, by the names under which the tool knows them. Values are in no object of ours. */
import { FORBIDDEN_PATTERN, MODEL_URL_NAMES, NAME_PATTERN, RUNTIME_PATTERN } from './environment.ts';
import { list, object, type Rule, text } from './schema.ts';

export const SECRETS_MAX = 32;
export const SECRET_NAME_MAX = 128;

export const secretObjectName = text({
  description: 'Name of the Secret.',
  min: 1,
  max: 253,
  pattern: /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/,
  patternMessage: 'must be the name of a Secret of this namespace',
});

export const secretRef = (description: string) => object({ name: secretObjectName }, { description });

/** A secret that a binding or a header names; that it is declared is judged where both are seen. */
export const secretName = (description: string) => text({ description, min: 1, max: SECRET_NAME_MAX });

const everyName = (pattern: string, wanted: boolean): Pick<Rule<string[]>, 'cel' | 'test'> => ({
  cel: `self.all(name, ${wanted ? '' : '!'}name.matches('${pattern}'))`,
  test: (names) => names.every((name) => new RegExp(pattern).test(name) === wanted),
});

export const secrets = list(secretName('A key of the Secret, and the name by which the tool knows it.'), {
  description:
    "Keys of the Secret that the tool gets, each under its own name: one that is bound to a host (`inject`) as a placeholder, another as an environment variable of the tool's process.",
  max: SECRETS_MAX,
  merge: 'set',
  rules: [
    {
      ...everyName(NAME_PATTERN, true),
      message: 'names are those of environment variables: letters, digits and _, at most 128, no digit first',
    },
    {
      ...everyName(FORBIDDEN_PATTERN, false),
      message: 'LD_*, DYLD_*, GLIBC_TUNABLES, GCONV_PATH, PATH and OZ0_* cannot be names of secrets',
    },
    {
      ...everyName(`^(${MODEL_URL_NAMES.join('|')})$`, false),
      message: 'an address of a model is no secret: set OPENAI_BASE_URL and ANTHROPIC_BASE_URL in env',
    },
  ],
});

interface Declared {
  readonly secrets?: readonly string[];
  readonly secretRef?: unknown;
}

/** A reference without a key would mount nothing. */
export const secretRefRule: Rule<Declared> = {
  cel: '!has(self.secretRef) || has(self.secrets)',
  test: ({ secretRef: reference, secrets: names }) => reference === undefined || names !== undefined,
  message: 'names the Secret of which `secrets` names the keys: state both',
  field: '.secretRef',
};

/** On what has secrets and says what runs: a Tool. */
export const ownSecretsRules: readonly Rule<
  Declared & { readonly image?: unknown; readonly env?: Readonly<Record<string, string>> }
>[] = [
  {
    cel: `!has(self.image) || !has(self.secrets) || self.secrets.all(name, !name.matches('${RUNTIME_PATTERN}'))`,
    test: ({ image, secrets: names = [] }) => image === undefined || !names.some(isRuntimeName),
    message: 'a tool that is an image cannot get what a container runtime reads: DOCKER_*, CONTAINER*_*, HOME, XDG_*',
    field: '.secrets',
  },
  {
    cel: '!has(self.env) || !has(self.secrets) || self.secrets.all(name, !(name in self.env))',
    test: ({ env = {}, secrets: names = [] }) => !names.some((name) => Object.hasOwn(env, name)),
    message: 'a name stands in env and in secrets: leave it in one of them',
    field: '.secrets',
  },
];

interface Plugged {
  readonly requires?: Declared;
  readonly tools?: readonly { readonly image?: unknown; readonly env?: Readonly<Record<string, string>> }[];
}

/** The same on a Plugin, whose tools all get its secrets. */
export const sharedSecretsRules: readonly Rule<Plugged>[] = [
  {
    cel: `!has(self.requires) || !has(self.requires.secrets) || !has(self.tools) || !self.tools.exists(tool, has(tool.image)) || self.requires.secrets.all(name, !name.matches('${RUNTIME_PATTERN}'))`,
    test: ({ requires, tools = [] }) =>
      !tools.some(({ image }) => image !== undefined) || !(requires?.secrets ?? []).some(isRuntimeName),
    message: 'a tool that is an image cannot get what a container runtime reads: DOCKER_*, CONTAINER*_*, HOME, XDG_*',
    field: '.requires',
  },
  {
    cel: '!has(self.requires) || !has(self.requires.secrets) || !has(self.tools) || self.tools.all(tool, !has(tool.env) || self.requires.secrets.all(name, !(name in tool.env)))',
    test: ({ requires, tools = [] }) =>
      tools.every(({ env = {} }) => !(requires?.secrets ?? []).some((name) => Object.hasOwn(env, name))),
    message: "a name stands in requires.secrets and in a tool's env: leave it in one of them",
    field: '.requires',
  },
];

function isRuntimeName(name: string): boolean {
  return new RegExp(RUNTIME_PATTERN).test(name);
}
