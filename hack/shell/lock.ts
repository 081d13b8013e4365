/** One at a time: two commands must not build the same thing, or start and stop one cluster, at once. */
import { linkSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { identify, isAlive, type ProcessIdentity } from './process-identity.ts';
import { note } from './steps.ts';
import { waitFor } from './wait.ts';

const held = new Set<string>();

export async function withLock<T>(file: string, timeoutSeconds: number, work: () => Promise<T>): Promise<T> {
  if (held.has(file)) return await work();
  mkdirSync(dirname(file), { recursive: true });
  let told = false;
  await waitFor(
    `the lock ${file}`,
    () => {
      if (take(file)) return true;
      const owner = ownerOf(file);
      if (!told && owner !== undefined) note(`waiting for process ${owner.pid}, which is at the same work`);
      told = true;
      return undefined;
    },
    { timeoutSeconds, hint: `see whether another command still runs; if none does, remove ${file}` },
  );
  held.add(file);
  try {
    return await work();
  } finally {
    held.delete(file);
    rmSync(file, { force: true });
  }
}

function take(file: string): boolean {
  const owner = ownerOf(file);
  if (owner !== undefined && !isAlive(owner)) removeDead(file);
  // Written aside and linked into place: whoever finds the lock finds its owner in it.
  const aside = `${file}.${process.pid}`;
  writeFileSync(aside, JSON.stringify(identify(process.pid)));
  try {
    linkSync(aside, file);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(aside, { force: true });
  }
}

/** Takes away the lock of a process that died, but puts back one that somebody else took in the meantime. */
function removeDead(file: string): void {
  const aside = `${file}.${process.pid}.dead`;
  try {
    renameSync(file, aside);
    const owner = ownerOf(aside);
    if (owner !== undefined && isAlive(owner)) linkSync(aside, file);
  } catch {
    // another one removed it first
  } finally {
    rmSync(aside, { force: true });
  }
}

function ownerOf(file: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as ProcessIdentity;
  } catch {
    return undefined;
  }
}
