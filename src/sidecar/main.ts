/** Entry of the sidecar's bundle: the pod's paths, ports and signals around `sidecar.ts`. */
import { PORT_HEALTH, PORT_TLS } from '../domain/naming.ts';
import { createLog } from './log.ts';
import { readSettings, SettingsError } from './settings.ts';
import { startSidecar } from './sidecar.ts';

const EXIT_CONFIGURATION = 64;
const EXIT_BUG = 70;
/** Beside a remote tool's longest call, which is let finish. */
const LONGEST_CLOSE_MS = 15_000;

const log = createLog();

try {
  const config = readSettings(process.env['OZ0_SIDECAR']);
  const longestCloseMs = LONGEST_CLOSE_MS + (config.remote === undefined ? 0 : config.timeoutMs);
  const node = process.env['OZ0_NODE'];
  const sidecar = await startSidecar({
    config,
    ...(node === undefined || node === '' ? {} : { node }),
    log,
    trustFolder: '/oz0/trust',
    tokenFile: '/oz0/identity/token',
    journalFolder: '/oz0/journal',
    socketPath: '/oz0/run/launcher.sock',
    tlsPort: PORT_TLS,
    healthPort: PORT_HEALTH,
  });
  let stopping = false;
  const stop = (why: string) => {
    if (stopping) return;
    stopping = true;
    log('info', 'stopping', { why });
    setTimeout(() => process.exit(1), longestCloseMs).unref();
    sidecar.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  };
  process.on('SIGTERM', () => stop('SIGTERM'));
  process.on('SIGINT', () => stop('SIGINT'));
  process.on('uncaughtException', (error) => {
    log('error', 'bug: nobody handled this error', { reason: error.stack ?? String(error) });
    process.exit(EXIT_BUG);
  });
} catch (error) {
  log('error', 'could not start', { reason: error instanceof Error ? error.message : String(error) });
  process.exit(error instanceof SettingsError ? EXIT_CONFIGURATION : 1);
}
