/**
 * The shell around each process: log, metrics, health and signals. A process is a function that gets the shell and
 * answers how to stop it; it ends in good order on SIGTERM and SIGINT, and at once on the second one.
 */
import { PORT_HEALTH, PORT_METRICS } from '../domain/naming.ts';
import { ConfigurationError, type Environment } from './configuration.ts';
import { createHealth, type Health } from './health.ts';
import { createLog, type Log } from './log.ts';
import { createMetrics, type Metrics } from './metrics.ts';

export interface Shell {
  readonly environment: Environment;
  readonly log: Log;
  readonly health: Health;
  readonly metrics: Metrics;
  /** Ends the process in good order with this exit code, as a signal would; for what a process cannot mend itself. */
  readonly exit: (code: number, why: string) => void;
}

export interface Running {
  /** Stops everything that was started: no timer, socket or watch is left. */
  close(): Promise<void>;
}

const EXIT_CONFIGURATION = 64;

/** Longest time that closing may take; drains have bounds of their own below it (the gateway's is the longest call). */
const LONGEST_CLOSE_MS = 11 * 60_000;

export async function runProcess(component: string, start: (shell: Shell) => Promise<Running>): Promise<void> {
  const { env } = process;
  const metrics = createMetrics(component);
  const dropped = metrics.counter('log_dropped_lines_total', 'Lines of the log that stdout did not take in time.', []);
  const log = createLog(component, { level: env['OZ0_LOG_LEVEL'] || 'info', onDrop: () => dropped.inc() });
  const health = createHealth(log);
  let running: Running | undefined;
  let exitCode: number | undefined;

  const exit = (code: number, why: string): void => {
    if (exitCode !== undefined) {
      log.warn({ why }, 'leaving at once');
      process.exit(code === 0 ? 1 : code);
    }
    exitCode = code;
    log.info({ why }, 'stopping');
    health.startDraining();
    setTimeout(() => process.exit(code === 0 ? 1 : code), LONGEST_CLOSE_MS).unref();
    void (async () => {
      try {
        await running?.close();
        await health.close();
        await metrics.close();
      } catch (error) {
        log.error({ error }, 'could not stop in good order');
      }
      process.exit(code);
    })();
  };

  process.on('SIGTERM', () => exit(0, 'SIGTERM'));
  process.on('SIGINT', () => exit(0, 'SIGINT'));
  // What nobody handles is a bug: say it, and let the kubelet start afresh rather than go on in an unknown state.
  process.on('uncaughtException', (error) => {
    log.error({ error }, 'bug: nobody handled this error');
    process.exit(70);
  });

  try {
    await health.listen(PORT_HEALTH);
    await metrics.listen(PORT_METRICS);
    running = await start({ environment: env, log, health, metrics, exit });
    log.info({ node: process.version }, 'started');
  } catch (error) {
    if (error instanceof ConfigurationError) {
      log.error({}, error.message);
      process.exit(EXIT_CONFIGURATION);
    }
    log.error({ error }, 'could not start');
    process.exit(1);
  }
}
