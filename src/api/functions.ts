/** What a Tool says of its server's functions beyond what the server says itself. */
import { LINE, LINE_MESSAGE } from './policyFields.ts';
import { flag, integer, list, map, object, objectSchema, optional, type Rule, text } from './schema.ts';

export const FUNCTION_NAME = /^[A-Za-z0-9_./-]{1,128}$/;
const FUNCTIONS_MAX = 128;
/** As `admission/tools.yaml` has it. */
export const OUTPUT_SCHEMA_MAX = 65_536;

const annotations = object(
  {
    readOnlyHint: optional(flag({ description: 'Whether it changes nothing.' })),
    destructiveHint: optional(flag({ description: 'Whether it can delete or overwrite.' })),
    idempotentHint: optional(flag({ description: 'Whether calling it twice does what calling it once does.' })),
    openWorldHint: optional(flag({ description: 'Whether it reaches outside your systems.' })),
  },
  {
    description:
      'Hints that the server does not give, or stricter ones: a hint is set where it is missing, and never loosened.',
  },
);

const usage = object(
  {
    service: text({
      description: 'The service that is spent.',
      min: 1,
      max: 63,
      pattern: LINE,
      patternMessage: LINE_MESSAGE,
    }),
    unit: text({ description: 'What is counted.', min: 1, max: 63, pattern: LINE, patternMessage: LINE_MESSAGE }),
    units: integer({ description: 'How many of them a successful call spends.', min: 0, max: 1_000_000_000 }),
    costUsd: optional(
      text({
        description: 'What such a call costs in US dollars, as a decimal number.',
        min: 1,
        max: 16,
        pattern: /^[0-9]{1,9}([.][0-9]{1,6})?$/,
        patternMessage: 'must be a decimal number such as 0 or 0.015',
      }),
    ),
  },
  { description: 'What each successful call spends.' },
);

const override = object(
  {
    annotations: optional(annotations),
    outputSchema: optional(
      objectSchema({
        description:
          'JSON Schema (2020-12) of its structured result, which must be an object; a result that does not match is an error. No references to elsewhere. At most 64 KiB.',
        max: 64,
        maxSize: OUTPUT_SCHEMA_MAX,
      }),
    ),
    usage: optional(usage),
    aiLabel: optional(
      text({
        description:
          'JSON pointer to the string argument that people read, at whose start the tenant’s AI label is put.',
        min: 2,
        max: 256,
        pattern: /^(\/([^~/]|~[01])+)+$/,
        patternMessage: 'must be a JSON pointer such as /body',
      }),
    ),
  },
  { description: 'Of one function.' },
);

/** Fields of a Tool's spec, and of a Plugin's entry. */
export const functionsFields = {
  functions: optional(
    map(override, {
      description: 'What holds of its functions beyond what the server says, by the server’s own names.',
      max: FUNCTIONS_MAX,
      rules: [
        {
          cel: `self.all(name, name.matches('${FUNCTION_NAME.source}'))`,
          test: (self) => Object.keys(self).every((name) => FUNCTION_NAME.test(name)),
          message: 'must be named by the server’s own names of functions',
        },
      ] satisfies Rule<Record<string, unknown>>[],
    }),
  ),
  honoursIdempotencyKey: optional(
    list(
      text({
        description: 'Name of a function.',
        min: 1,
        max: 128,
        pattern: FUNCTION_NAME,
        patternMessage: 'must be the name of a function',
      }),
      {
        description:
          'Functions whose server keeps the keys of calls and does nothing twice for one key. Where they are idempotent too, a call that failed without an answer runs again by itself.',
        max: FUNCTIONS_MAX,
        merge: 'set',
      },
    ),
  ),
};
