/** A sidecar as a process of its own, with the options of its only argument; tells its parent where it listens. */
import { createLog } from '../../../src/sidecar/log.ts';
import { type SidecarOptions, startSidecar } from '../../../src/sidecar/sidecar.ts';

const options = JSON.parse(process.argv[2] ?? '') as Omit<SidecarOptions, 'log'>;
const sidecar = await startSidecar({ ...options, log: createLog() });
process.send?.({ health: sidecar.healthPort });
sidecar.tlsPort.then(
  (tls) => process.send?.({ tls }),
  () => {},
);
process.on('SIGTERM', () => void sidecar.close().then(() => process.exit(0)));
// No orphan is left where the test ends early.
process.on('disconnect', () => process.exit(1));
