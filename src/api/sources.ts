/** What a tool runs: the four kinds of source, of which a Tool has exactly one. */
import { serverUrl } from './hosts.ts';
import { ABSOLUTE_PATH, NO_NUL } from './nul.ts';
import { list, object, optional, type Rule, text } from './schema.ts';
import { secretObjectName } from './secrets.ts';

export const imageReference = (description: string) =>
  text({
    description,
    min: 1,
    max: 512,
    pattern:
      /^[A-Za-z0-9][A-Za-z0-9._-]*(:[0-9]{1,5})?(\/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[a-f0-9]{64})?$/,
    patternMessage: 'must be a reference of an image, by tag or digest',
  });

export const pullSecrets = list(secretObjectName, {
  description: 'Secrets of this namespace with which the kubelet pulls the image.',
  max: 8,
  merge: 'set',
});

const command = (description: string) =>
  list(text({ description: 'Program or argument.', max: 4096, ...NO_NUL }), {
    description,
    min: 1,
    max: 64,
    merge: 'atomic',
    rules: [{ cel: "self[0] != ''", test: ([program]) => program !== '', message: 'the program is empty' }],
  });

const image = object(
  {
    reference: imageReference('The image; a digest keeps what runs what was looked at.'),
    command: command(
      "The program that speaks MCP on its standard input and output, and its first arguments. Always stated, since the image's own entry point is not run.",
    ),
    args: optional(
      list(text({ description: 'Argument.', max: 4096, ...NO_NUL }), {
        description: 'Further arguments.',
        max: 64,
        merge: 'atomic',
      }),
    ),
    pullSecrets: optional(pullSecrets),
    workingDir: optional(
      text({
        description: 'Directory in which the program starts.',
        min: 1,
        max: 1024,
        ...ABSOLUTE_PATH,
      }),
    ),
  },
  { description: 'A program in an OCI image, speaking MCP on its standard input and output.' },
);

/** Fields of a Tool's spec, and of a Plugin's entry, that say what runs. */
export const sourceFields = {
  image: optional(image),
  mcp: optional(
    command(
      "A command in the image of the tool's Plugin, speaking MCP on its standard input and output. Plugins only.",
    ),
  ),
  package: optional(
    text({
      description:
        'A published package: `npm:<name>@<version>` or `pypi:<name>==<version>`. This version does not run them yet.',
      min: 1,
      max: 256,
      pattern:
        /^(npm:(@[a-z0-9~][a-z0-9._~-]*\/)?[a-z0-9~][a-z0-9._~-]*@[0-9][A-Za-z0-9.+_-]*|pypi:[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?==[0-9][A-Za-z0-9.!+_-]*)$/,
      patternMessage: 'must be npm:<name>@<version> or pypi:<name>==<version>',
    }),
  ),
  url: optional(serverUrl),
};

interface Sources {
  readonly image?: unknown;
  readonly mcp?: unknown;
  readonly package?: unknown;
  readonly url?: unknown;
}

export const oneSourceRule: Rule<Sources> = {
  // `package` is a word of CEL, which therefore writes the field so.
  cel: '[has(self.image), has(self.mcp), has(self.__package__), has(self.url)].filter(stated, stated).size() == 1',
  test: (spec) => [spec.image, spec.mcp, spec.package, spec.url].filter((source) => source !== undefined).length === 1,
  message: 'exactly one of image, mcp, package and url',
};
