/** The sidecar as it runs in a pod, but for its paths and ports, which it is told; says where it listens. */
import { createLog } from '../../src/sidecar/log.ts';
import { type SidecarOptions, startSidecar } from '../../src/sidecar/sidecar.ts';

const options: Omit<SidecarOptions, 'log'> = JSON.parse(process.env['BENCH_SIDECAR'] ?? '');
const sidecar = await startSidecar({ ...options, log: createLog((line) => void process.stderr.write(line)) });
const tlsPort = await sidecar.tlsPort;
process.stdout.write(`${JSON.stringify({ healthPort: sidecar.healthPort, tlsPort })}\n`);
