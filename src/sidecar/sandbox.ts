/**
 * Proves from inside the pod that its walls hold: what must not answer does not, several times in a row, while the one
 * open door does. A policy that is applied late, or by nobody, is seen here and nowhere else.
 */
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SandboxReport } from '../domain/config/sidecar.ts';
import type { Address, SandboxWalls } from './trustFolder.ts';

export interface SandboxOptions {
  readonly walls: () => Promise<SandboxWalls>;
  /** Said once for each change. */
  readonly onChange: (state: SandboxState) => void;
  readonly signal: AbortSignal;
  readonly timing?: Partial<SandboxTiming>;
}

export interface SandboxTiming {
  /** After which silence counts as a wall. */
  readonly connectMs: number;
  /** Rounds in a row that must show closed walls before the first start. */
  readonly rounds: number;
  readonly betweenMs: number;
  /** Between two proofs once it holds. */
  readonly everyMs: number;
}

export type SandboxState =
  /** Not proved yet, and why. */
  | { readonly kind: 'unproved'; readonly problem: string }
  | { readonly kind: 'holds' }
  /** These answered, and should not. */
  | { readonly kind: 'open'; readonly addresses: readonly string[] };

const TIMING: SandboxTiming = { connectMs: 1_000, rounds: 3, betweenMs: 250, everyMs: 30_000 };

/** Runs until the signal; never throws. */
export async function watchSandbox(options: SandboxOptions): Promise<void> {
  const timing = { ...TIMING, ...options.timing };
  const { signal } = options;
  let said = '';
  let good = 0;
  const say = (state: SandboxState): void => {
    const text = JSON.stringify(state);
    if (text !== said) options.onChange(state);
    said = text;
  };
  while (!signal.aborted) {
    const state = await look(options.walls, timing.connectMs, good >= timing.rounds);
    if (signal.aborted) return;
    if (state.kind === 'holds') good++;
    // A door that does not open delays a start; it is no proof against walls that were seen.
    else if (state.kind === 'open' || good < timing.rounds) good = 0;
    if (state.kind === 'open') say(state);
    else if (good >= timing.rounds) say({ kind: 'holds' });
    else say(state.kind === 'holds' ? { kind: 'unproved', problem: 'the sandbox is being proved' } : state);
    await sleep(good >= timing.rounds ? timing.everyMs : timing.betweenMs, undefined, { signal }).catch(() => {});
  }
}

/** @param proved true: only what answers matters */
async function look(walls: () => Promise<SandboxWalls>, connectMs: number, proved: boolean): Promise<SandboxState> {
  let read: SandboxWalls;
  try {
    read = await walls();
  } catch (error) {
    // The file is being replaced, or was never there; the walls that were seen still stand.
    return {
      kind: 'unproved',
      problem: `cannot read the sandbox's walls: ${error instanceof Error ? error.message : ''}`,
    };
  }
  const answers = await Promise.all(read.closed.map((address) => answersAt(address, connectMs)));
  const addresses = read.closed.filter((_, at) => answers[at]).map(formatAddress);
  if (addresses.length > 0) return { kind: 'open', addresses };
  if (proved || (await answersAt(read.open, connectMs))) return { kind: 'holds' };
  return { kind: 'unproved', problem: `${formatAddress(read.open)} does not answer` };
}

/** Whether a connection comes about in time. */
export function answersAt(address: Address, timeoutMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: address.host, port: address.port });
    const settle = (answered: boolean) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answered);
    };
    const timer = setTimeout(() => settle(false), timeoutMs);
    socket.once('connect', () => settle(true));
    socket.on('error', () => settle(false));
  });
}

/** What the process can see of its own walls in the kernel. */
export async function kernelWalls(): Promise<Pick<SandboxReport, 'userNamespace' | 'pidsLimit'>> {
  const read = (path: string) =>
    readFile(path, 'utf8')
      .then((text) => text.trim())
      .catch(() => undefined);
  const map = await read('/proc/self/uid_map');
  const pids = (await read('/sys/fs/cgroup/pids.max')) ?? (await read('/sys/fs/cgroup/pids/pids.max'));
  return {
    userNamespace: map === undefined ? 'unknown' : !/^0\s+0\s+4294967295$/.test(map),
    // "max" here says nothing of the pod's own limit, which lies above what a container sees.
    pidsLimit: pids !== undefined && /^\d+$/.test(pids) ? Number(pids) : 'unknown',
  };
}

function formatAddress(address: Address): string {
  return address.host.includes(':') ? `[${address.host}]:${address.port}` : `${address.host}:${address.port}`;
}
