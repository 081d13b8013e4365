/** Reads a process's settings from its environment, all at once, so that one start names every mistake. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A setting that cannot be used; the process ends with its message and exit code 64. */
export class ConfigurationError extends Error {
  readonly code = 'configuration';
  override readonly name = 'ConfigurationError';
}

/** Variables one by one, each mistake added to `problems`. */
export interface Variables {
  /** One that is needed, unless it has a value for when it is unset. */
  readonly text: (name: string, unset?: string) => string;
  readonly port: (name: string, unset: number) => number;
  /** A line each, indented. */
  readonly problems: string[];
  /** @throws ConfigurationError that names each mistake, where there is one */
  readonly check: () => void;
}

export function readVariables(environment: Environment): Variables {
  const problems: string[] = [];
  return {
    problems,
    text(name, unset) {
      // An empty variable is what a chart writes for an unset value.
      const value = environment[name] || unset;
      if (value === undefined) problems.push(`  ${name}: is missing`);
      return value ?? '';
    },
    port(name, unset) {
      const value = Number(environment[name] || unset);
      if (Number.isInteger(value) && value >= 1 && value <= 65_535) return value;
      problems.push(`  ${name}: must be a port`);
      return unset;
    },
    check() {
      if (problems.length === 0) return;
      throw new ConfigurationError(`These environment variables are missing or wrong:\n${problems.join('\n')}`);
    },
  };
}
