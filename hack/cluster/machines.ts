/**
 * A machine of the embedded cluster: a set of namespaces (processes, mounts, network, host name) held by one process,
 * its init. When init is killed the kernel ends every process in it and takes away its mounts and its network, as a
 * power cut would: nothing can be left behind, and nothing has to be looked for.
 */
import { spawn } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { run } from '../shell/command.ts';
import { identify, isAlive, kill, type ProcessIdentity } from '../shell/process-identity.ts';
import { waitFor } from '../shell/wait.ts';
import { bridgeAddress, logFolder, logOf, type MachineName } from './layout.ts';
import { program, programPath } from './programs.ts';

/** `holder` is the process that made the namespaces; init is its only child and dies with it. */
type MachineRecord = { holder: ProcessIdentity; init: ProcessIdentity; programs: Record<string, ProcessIdentity> };

// Of this machine, not of a cache: its addresses can be used once, so whoever starts a cluster must find a running one.
const recordFolder = '/run/oz0-operator';
const recordFile = (machine: MachineName): string => join(recordFolder, `${machine}.json`);

// Runs as the machine's first process, which then becomes its init. /run is the machine's own: network namespaces of
// pods, sockets of containers and the lock of iptables live there, and are gone after a power cut, as on a real one.
// Names are asked at the bridge, where only a test may answer: a machine has no way out, and is told so at once.
const setup = `set -e
mount --make-rshared /
mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns /run/lock /run/containerd
echo "nameserver $3" > /run/resolv.conf
mount --bind /run/resolv.conf /etc/resolv.conf
hostname "$1"
exec "$2" "$1"`;

export async function startMachine(machine: MachineName): Promise<void> {
  mkdirSync(recordFolder, { recursive: true });
  const namespaces = ['--mount', '--net', '--uts', '--ipc', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const log = logOf(machine);
  const holder = spawnLogged(log, 'unshare', [
    ...namespaces,
    ...['--propagation', 'private', 'sh', '-c', setup, 'sh', `oz0-${machine}`, program('pause'), bridgeAddress],
  ]);
  // Recorded before anything can fail, so that a clean-up finds it.
  writeRecord(machine, { holder, init: holder, programs: {} });
  const init = await waitFor(
    `machine ${machine}`,
    () => {
      const child = childOf(holder.pid);
      return child !== undefined && commandOf(child) === 'pause' ? identify(child) : undefined;
    },
    { timeoutSeconds: 20, everyMs: 20, log, hopeless: () => (isAlive(holder) ? undefined : 'it ended at once') },
  );
  writeRecord(machine, { holder, init, programs: {} });
}

/** A power cut. Returns when nothing of the machine runs any more. */
export async function stopMachine(machine: MachineName): Promise<void> {
  const record = readRecord(machine);
  if (record === undefined) return;
  kill(record.init);
  kill(record.holder);
  const processes = [record.init, record.holder, ...Object.values(record.programs)];
  // Init ends last: the kernel waits with it until all others in its namespace have gone.
  await waitFor(`the end of ${machine}`, () => (processes.some(isAlive) ? undefined : true), {
    timeoutSeconds: 30,
    everyMs: 20,
    hint: 'a process that does not die waits for a device or a file system: look at `ps -eo pid,stat,wchan,cmd`',
  });
  rmSync(recordFile(machine), { force: true });
  if (existsSync(recordFolder) && readdirSync(recordFolder).length === 0) rmdirSync(recordFolder);
}

export function machineRuns(machine: MachineName): boolean {
  const record = readRecord(machine);
  return record !== undefined && isAlive(record.holder) && isAlive(record.init);
}

/** Which of the machine's programs were started, and whether they still run. */
export function programsOf(machine: MachineName): { name: string; runs: boolean }[] {
  const programs = Object.entries(readRecord(machine)?.programs ?? {});
  return programs.map(([name, identity]) => ({ name, runs: isAlive(identity) }));
}

export function initPid(machine: MachineName): number {
  const record = readRecord(machine);
  if (record === undefined || !isAlive(record.init)) throw new Error(`machine ${machine} does not run`);
  return record.init.pid;
}

/** Starts a program that stays, in the machine. Its log is named after both. */
export function startProgram(machine: MachineName, name: string, args: readonly string[]): void {
  const identity = spawnLogged(programLog(machine, name), 'nsenter', [...entry(machine), program(name), ...args]);
  const record = readRecord(machine);
  if (record === undefined) throw new Error(`machine ${machine} has no record`);
  writeRecord(machine, { ...record, programs: { ...record.programs, [name]: identity } });
}

export const programLog = (machine: MachineName, name: string): string => logOf(`${machine}-${name}`);

/** For `hopeless` of a wait: says so when the program has ended. */
export function endedProgram(machine: MachineName, name: string): string | undefined {
  return programsOf(machine).some((one) => one.name === name && one.runs) ? undefined : `${name} has ended`;
}

/** Runs a command in the machine to its end. */
export async function runIn(machine: MachineName, command: readonly string[], timeoutSeconds = 60): Promise<string> {
  return await run('nsenter', [...entry(machine), ...command], { env: environment(), timeoutSeconds });
}

function entry(machine: MachineName): string[] {
  return ['--target', String(initPid(machine)), '--mount', '--net', '--uts', '--ipc', '--pid', '--'];
}

/** containerd finds its shim, and kube-router finds iptables, by PATH. */
function environment(): NodeJS.ProcessEnv {
  return { PATH: `${programPath()}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin`, HOME: '/root' };
}

function spawnLogged(log: string, command: string, args: readonly string[]): ProcessIdentity {
  mkdirSync(logFolder, { recursive: true });
  const descriptor = openSync(log, 'a');
  const child = spawn(command, args, {
    cwd: '/',
    env: environment(),
    detached: true, // outlives this command, and Ctrl-C in the terminal does not reach it
    stdio: ['ignore', descriptor, descriptor],
  });
  child.on('error', () => {}); // told by the missing pid
  child.unref();
  closeSync(descriptor);
  const identity = child.pid === undefined ? undefined : identify(child.pid);
  if (identity === undefined) throw new Error(`${command} did not start; see ${log}`);
  return identity;
}

function readRecord(machine: MachineName): MachineRecord | undefined {
  try {
    return JSON.parse(readFileSync(recordFile(machine), 'utf8')) as MachineRecord;
  } catch {
    return undefined;
  }
}

function writeRecord(machine: MachineName, record: MachineRecord): void {
  // Renamed into place: half a record would be a machine that nobody can find.
  const half = `${recordFile(machine)}.half`;
  writeFileSync(half, JSON.stringify(record));
  renameSync(half, recordFile(machine));
}

function childOf(pid: number): number | undefined {
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const stat = readFileSync(`/proc/${entry}/stat`, 'utf8');
      if (stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1] === String(pid)) return Number(entry);
    } catch {
      // ended while we looked
    }
  }
  return undefined;
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
  } catch {
    return '';
  }
}
