/** Which of the two clusters a command means: the one that was brought up, else what this machine can run. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { engine } from '../images/engine.ts';
import { clusterFolder } from './layout.ts';

export type Flavor = 'embedded' | 'kind';

const file = join(clusterFolder, 'flavor');

export async function possibleFlavor(): Promise<Flavor> {
  return (await engine()) === 'docker' ? 'kind' : 'embedded';
}

export function recordedFlavor(): Flavor | undefined {
  try {
    const text = readFileSync(file, 'utf8');
    return text === 'kind' || text === 'embedded' ? text : undefined;
  } catch {
    return undefined;
  }
}

export function recordFlavor(flavor: Flavor | undefined): void {
  if (flavor === undefined) {
    rmSync(file, { force: true });
    return;
  }
  mkdirSync(clusterFolder, { recursive: true });
  writeFileSync(file, flavor);
}
