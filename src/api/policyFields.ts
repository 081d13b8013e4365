/** What a ToolPolicy and a ClusterToolPolicy say alike: verdicts by kind of function, and rules. */
import { choice, flag, list, object, optional, text, withDefault } from './schema.ts';

export const POLICY_RULES_MAX = 256;

/** Each is a question to the authorizer when somebody decides, of which the API server allows few. */
const DECIDER_ROLES_MAX = 8;

/** `<tool id>.<function>`, `<tool id>.*`, or `*`. */
export const FUNCTIONS = /^([*]|[a-z][a-z0-9]*(_[a-z0-9]+)*[.]([*]|[A-Za-z0-9_./-]{1,128}))$/;

/** Control, invisible and direction-changing characters; the latter as they are, since Go does not know JavaScript's escapes. */
const HIDDEN = '\\x00-\\x1f\\x7f-\\x9f\u200b-\u200f\u2027-\u202e\u2060-\u2069\ufeff';

/** One line that people read. */
export const LINE = new RegExp(`^[^${HIDDEN}]*$`);
export const LINE_MESSAGE = 'must be one line without control or invisible characters';

export const verdict = (description: string) => choice(['run', 'wait', 'refuse'], { description });

const kinds = object(
  {
    readOnly: optional(verdict('Functions that say they change nothing. Unset, they run.')),
    additive: optional(verdict('Functions that write, and say that they only add. Unset, they run.')),
    destructive: optional(verdict('Functions that can delete or overwrite. Unset, they wait for a person.')),
    undeclared: optional(
      verdict('Functions that do not say what they do to the world. Unset, they wait for a person.'),
    ),
  },
  { description: 'What becomes of a call by what its function says of itself, where no rule names it.' },
);

export const deciders = object(
  {
    roles: optional(
      list(
        text({
          description: 'A role.',
          min: 1,
          max: 63,
          pattern: /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
          patternMessage: 'must be lower-case letters, digits and dashes',
        }),
        {
          description:
            'Who may decide, by role: whoever has the RBAC verb `decide` on the resource `deciders` of `oz0.ai` with this resource name, in the namespace.',
          max: DECIDER_ROLES_MAX,
          merge: 'set',
        },
      ),
    ),
    groups: optional(
      list(text({ description: 'A group.', min: 1, max: 253, pattern: LINE, patternMessage: LINE_MESSAGE }), {
        description: 'Who may decide, by a group that the API server knows them to be in.',
        max: 32,
        merge: 'set',
      }),
    ),
    notStarter: withDefault(
      flag({
        description:
          'Whether whoever started the job may not decide its calls. Where nobody knows who that is, nobody can.',
      }),
      false,
    ),
  },
  {
    description:
      'Who may decide, beyond having the verb `decide` on ToolCalls: members of one of these roles or groups; anybody with the verb where both are left out.',
  },
);

const rule = object(
  {
    name: text({
      description: 'Name of the rule, in messages and records.',
      min: 1,
      max: 63,
      pattern: /^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/,
      patternMessage: 'must be lower-case letters, digits and dashes',
    }),
    functions: list(
      text({
        description: 'A pattern.',
        min: 1,
        max: 169,
        pattern: FUNCTIONS,
        patternMessage: 'must be <tool id>.<function>, <tool id>.* or *',
      }),
      {
        description: 'What it governs: `<tool id>.<function>`, `<tool id>.*` for all of a tool, or `*`.',
        min: 1,
        max: 64,
        merge: 'set',
      },
    ),
    openWorld: optional(
      flag({ description: 'Only functions that reach (true) or do not reach (false) outside your systems.' }),
    ),
    when: optional(
      text({
        description:
          'Only calls for which this CEL expression is true. It may use `args`, `call` (tool, function, id), `kind`, `openWorld`, `agent` (name, namespace, serviceAccount), `job` (id, startedBy, proved) and `labels`. A field of `args` that is not there reads as null.',
        min: 1,
        max: 2048,
      }),
    ),
    do: verdict('What becomes of the call: refuse beats wait beats run.'),
    because: optional(
      text({
        description: 'Why, for the model and for people.',
        min: 1,
        max: 512,
        pattern: LINE,
        patternMessage: LINE_MESSAGE,
      }),
    ),
    deciders: optional(deciders),
  },
  {
    description: 'A rule.',
    rules: [
      {
        cel: "!has(self.deciders) || self.do == 'wait'",
        test: (self) => self.deciders === undefined || self.do === 'wait',
        message: 'deciders are for rules that wait',
        field: '.deciders',
      },
    ],
  },
);

export const policyFields = {
  kinds: optional(kinds),
  rules: optional(
    list(rule, {
      description: 'Rules. Of all that match a call the strictest holds; where none does, `kinds`.',
      max: POLICY_RULES_MAX,
      merge: { by: ['name'] },
    }),
  ),
  deciders: optional(deciders),
};
