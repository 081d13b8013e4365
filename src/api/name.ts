/** Names of objects whose names the model or an agent's configuration sees. */
import type { Rule } from './schema.ts';

/** Longest name of a Tool or Plugin: a function's name, joined with it, should fit what model vendors take. */
export const NAME_MAX = 40;

/**
 * Lower-case words joined by single dashes, a letter first. The id is the name with `_` for `-`, so no `--` and no `-` at an end keep
 * `<id>__<function>` unambiguous, and the first letter is what every model vendor wants.
 */
const NAME_PATTERN = '^[a-z][a-z0-9]*(-[a-z0-9]+)*$';
export const NAME = new RegExp(NAME_PATTERN);

/** An id as configuration writes it: a name with `_` for `-`. */
export const ID = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;

interface Named {
  readonly metadata: { readonly name: string };
}

/** The rules of names of Tools and Plugins (the length apart, or its message would not say which it is). */
export const nameRules: readonly Rule<Named>[] = [
  {
    cel: `self.metadata.name.size() <= ${NAME_MAX}`,
    test: ({ metadata }) => metadata.name.length <= NAME_MAX,
    message: `metadata.name: at most ${NAME_MAX} characters`,
  },
  {
    cel: `self.metadata.name.matches('${NAME_PATTERN}')`,
    test: ({ metadata }) => NAME.test(metadata.name),
    message: 'metadata.name: lower-case letters and digits, words joined by single dashes, a letter first',
  },
];
