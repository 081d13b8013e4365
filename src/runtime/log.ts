/**
 * The one logger of a process: JSON lines on stdout (pino). What is logged is chosen field by field at the call; nothing
 * logs a request's body, a token or an argument. Strings from outside are cut, so that no peer fills the log.
 */
import pino from 'pino';

export interface Log {
  debug(fields: Readonly<Record<string, unknown>>, message: string): void;
  info(fields: Readonly<Record<string, unknown>>, message: string): void;
  warn(fields: Readonly<Record<string, unknown>>, message: string): void;
  error(fields: Readonly<Record<string, unknown>>, message: string): void;
  child(fields: Readonly<Record<string, unknown>>): Log;
}

const LONGEST_STRING = 2048;

/** Field names whose values are never printed, wherever they stand at the top or one level below. */
const REDACTED = ['authorization', 'token', 'secret', 'password', 'cookie', 'key', 'privateKey', 'arguments'];

export interface LogOptions {
  readonly level?: string;
  readonly destination?: { write(line: string): void };
}

export function createLog(component: string, options: LogOptions = {}): Log {
  const settings: pino.LoggerOptions = {
    level: options.level ?? 'info',
    base: { component },
    messageKey: 'message',
    timestamp: pino.stdTimeFunctions.isoTime,
    redact: { paths: REDACTED.flatMap((name) => [name, `*.${name}`]), censor: '[redacted]' },
    formatters: {
      level: (label) => ({ level: label }),
      log: cutStrings,
    },
    serializers: { error: describeError },
  };
  return options.destination ? pino(settings, options.destination) : pino(settings);
}

function cutStrings(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      typeof value === 'string' && value.length > LONGEST_STRING ? `${value.slice(0, LONGEST_STRING)}…` : value,
    ]),
  );
}

/** Name, code, message and the causes of an error; the stack only of what is a bug (an error without a code). */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error).slice(0, LONGEST_STRING) };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return {
    name: error.name,
    message: error.message.slice(0, LONGEST_STRING),
    ...(code === undefined ? { stack: error.stack?.slice(0, 2 * LONGEST_STRING) } : { code }),
    ...(error.cause === undefined ? {} : { cause: describeError(error.cause) }),
  };
}
