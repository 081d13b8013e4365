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
  /**
   * At level info, for what is said of every call: flat, its field names a closed set that holds nothing secret, so nothing is
   * searched for. Without the fields of a child.
   */
  record(fields: LogRecord, message: string): void;
}

export type LogRecord = Readonly<Record<string, string | number | boolean | undefined>>;

const LONGEST_STRING = 2048;

/** Field names whose values are never printed, wherever they stand at the top or one level below. */
const REDACTED = ['authorization', 'token', 'secret', 'password', 'cookie', 'key', 'privateKey', 'arguments'];

export interface LogOptions {
  readonly level?: string;
  /** Unset: stdout. */
  readonly destination?: LogDestination;
  /** A line did not fit into what may wait for stdout. */
  readonly onDrop?: () => void;
}

export interface LogDestination {
  write(line: string): unknown;
}

/** Lines wait for at most so long, or until there are so many of them; a crash that runs no code loses these. */
const FLUSH_MS = 100;
const FLUSH_CHARS = 8 * 1024;
/** Who reads stdout too slowly must not stop calls, nor take all memory. */
const MAX_WAITING_CHARS = 4 * 1024 * 1024;

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
  const destination = options.destination ?? bufferedStdout(options.onDrop);
  const logger = pino(settings, destination);
  return Object.assign(logger, { record: createRecord(component, logger.isLevelEnabled('info'), destination) });
}

/** Written in blocks, and what is left when the process exits. */
function bufferedStdout(onDrop: (() => void) | undefined): LogDestination {
  const stdout = pino.destination({
    dest: 1,
    sync: false,
    minLength: FLUSH_CHARS,
    maxLength: MAX_WAITING_CHARS,
    periodicFlush: FLUSH_MS,
  });
  if (onDrop !== undefined) stdout.on('drop', onDrop);
  return stdout;
}

/** The line that `info` would write, made in one go: looking for what to redact takes a tenth of a call's time. */
function createRecord(component: string, enabled: boolean, destination: LogDestination): Log['record'] {
  if (!enabled) return () => {};
  const about = JSON.stringify({ component }).slice(1, -1);
  return (fields, message) => {
    const written = JSON.stringify(cutLong(fields)).slice(1, -1);
    const comma = written === '' ? '' : ',';
    const time = new Date().toISOString();
    destination.write(
      `{"level":"info","time":"${time}",${about}${comma}${written},"message":${JSON.stringify(message)}}\n`,
    );
  };
}

function cutLong(fields: LogRecord): object {
  for (const name in fields) {
    const value = fields[name];
    if (typeof value === 'string' && value.length > LONGEST_STRING) return cutStrings(fields);
  }
  return fields;
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

/** The same log, for parts that hand over any object. */
export function takingAny(
  log: Log,
): Record<'debug' | 'info' | 'warn' | 'error', (fields: object, message: string) => void> {
  return {
    debug: (fields, message) => log.debug({ ...fields }, message),
    info: (fields, message) => log.info({ ...fields }, message),
    warn: (fields, message) => log.warn({ ...fields }, message),
    error: (fields, message) => log.error({ ...fields }, message),
  };
}
