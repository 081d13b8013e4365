/** Runs other programs to their end, with a bound on time, their output kept or logged, and ended when we are. */
import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { Failure } from './failure.ts';
import { interrupted } from './interrupt.ts';

export type CommandOptions = {
  cwd?: string;
  env?: NodeJS.ProcessEnv;
  input?: string;
  /** A file that gets everything the program says; without it a failure shows what it said. */
  log?: string;
  timeoutSeconds?: number;
  hint?: string;
};

/** Runs a program; its standard output, or a Failure that says why not. */
export async function run(program: string, args: readonly string[], options: CommandOptions = {}): Promise<string> {
  interrupted().throwIfAborted();
  const log = options.log === undefined ? undefined : openLog(options.log, [program, ...args]);
  // A process group of its own, so that ending it ends its children, and Ctrl-C reaches us first.
  const child = spawn(program, args, { cwd: options.cwd, env: options.env ?? process.env, detached: true });
  const end = () => endGroup(child);
  interrupted().addEventListener('abort', end);
  let timedOut = false;
  const seconds = options.timeoutSeconds ?? 120;
  const timer = setTimeout(() => {
    timedOut = true;
    end();
  }, seconds * 1000);
  try {
    const output = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream].setEncoding('utf8').on('data', (text: string) => {
        output[stream] += text;
        if (log !== undefined) writeSync(log, text);
      });
    }
    child.stdin.on('error', () => {}); // a program that stops reading says why by its exit code
    child.stdin.end(options.input ?? '');
    const code = await new Promise<number | string>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', (code, signal) => resolve(code ?? signal ?? 1));
    });
    interrupted().throwIfAborted();
    if (code === 0) return output.stdout;
    const said = options.log === undefined ? `: ${(output.stderr || output.stdout).trim().slice(-2000)}` : '';
    throw new Failure(
      `${program} ${args.slice(0, 3).join(' ')} ${timedOut ? `took over ${seconds} s` : `ended with ${code}`}${said}`,
      {
        hint: options.hint,
        log: options.log,
      },
    );
  } catch (cause) {
    if (!(cause instanceof Error) || !('code' in cause) || cause.code !== 'ENOENT') throw cause;
    throw new Failure(`${program} is not installed`, { hint: options.hint ?? 'run `hack/cluster.ts doctor`' });
  } finally {
    clearTimeout(timer);
    interrupted().removeEventListener('abort', end);
    if (log !== undefined) closeSync(log);
  }
}

/** Whether the program ends well; for probes. */
export async function succeeds(
  program: string,
  args: readonly string[],
  options: CommandOptions = {},
): Promise<boolean> {
  try {
    await run(program, args, options);
    return true;
  } catch (error) {
    if (error instanceof Failure) return false;
    throw error;
  }
}

function openLog(file: string, command: readonly string[]): number {
  mkdirSync(dirname(file), { recursive: true });
  const descriptor = openSync(file, 'a');
  writeSync(descriptor, `$ ${command.join(' ')}\n`);
  return descriptor;
}

function endGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  } catch {
    // it has gone by itself
  }
}
