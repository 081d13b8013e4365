/**
 * Which process a pid meant. A pid alone may be given to another program later; with its start time and the machine's
 * boot it names one process for good, so nothing is ended that was not started here.
 */
import { readFileSync } from 'node:fs';

export type ProcessIdentity = { pid: number; startTime: string; bootId: string };

const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

export function identify(pid: number): ProcessIdentity | undefined {
  const stat = statOf(pid);
  return stat === undefined || stat.state === 'Z' ? undefined : { pid, startTime: stat.startTime, bootId: bootId() };
}

export function isAlive(identity: ProcessIdentity): boolean {
  const stat = statOf(identity.pid);
  return (
    stat !== undefined && stat.state !== 'Z' && stat.startTime === identity.startTime && identity.bootId === bootId()
  );
}

/** Kills that very process; false when it has gone already. */
export function kill(identity: ProcessIdentity, signal: NodeJS.Signals = 'SIGKILL'): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch {
    return false;
  }
}

function statOf(pid: number): { state: string; startTime: string } | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in parentheses, may hold anything: the fields are counted from behind it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0] ?? '', startTime: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}
