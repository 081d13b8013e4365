/** Reads a process's settings from its environment, all at once, so that one start names every mistake. */
import { z } from 'zod';

export type Environment = Readonly<Record<string, string | undefined>>;

/** A setting that cannot be used; the process ends with its message and exit code 64. */
export class ConfigurationError extends Error {
  readonly code = 'configuration';
  override readonly name = 'ConfigurationError';
}

/**
 * @param schema an object of environment variables' names; values are strings, coerced by the schema.
 * @throws ConfigurationError that names each variable that is missing or wrong, and what is expected.
 */
export function readConfiguration<T extends z.ZodObject>(schema: T, environment: Environment): z.output<T> {
  const wanted = Object.fromEntries(
    Object.keys(schema.shape).flatMap((name) => {
      const value = environment[name];
      // An empty variable is what a chart writes for an unset value.
      return value === undefined || value === '' ? [] : [[name, value]];
    }),
  );
  const parsed = schema.safeParse(wanted);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `  ${issue.path.join('.')}: ${issue.message}`);
  throw new ConfigurationError(`These environment variables are missing or wrong:\n${problems.join('\n')}`);
}

/** A whole number of milliseconds, bytes or the like, within bounds. */
export function wholeNumber(min: number, max: number): z.ZodCoercedNumber {
  return z.coerce.number().int().min(min).max(max);
}
