/** The two ways to build an image: Docker where it runs, else buildah, which needs neither a daemon nor a registry. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../shell/cache.ts';
import { run, succeeds } from '../shell/command.ts';

export type Engine = 'docker' | 'buildah';

export type Build = {
  dockerfile: string;
  context: string;
  /** Names for the result; the last one goes into the archive. */
  tags: readonly string[];
  base?: string;
  archive: string;
  log: string;
};

let chosen: Promise<Engine> | undefined;

export function engine(): Promise<Engine> {
  chosen ??= succeeds('docker', ['info'], { timeoutSeconds: 10 }).then((runs) => (runs ? 'docker' : 'buildah'));
  return chosen;
}

export async function build(by: Engine, { dockerfile, context, tags, base, archive, log }: Build): Promise<void> {
  const options = ['--file', dockerfile, ...tags.flatMap((tag) => ['--tag', tag])];
  if (base !== undefined) options.push('--build-arg', `BASE=${base}`);
  const half = `${archive}.half`;
  rmSync(half, { force: true });
  const name = tags.at(-1) ?? '';
  const limits = { log, timeoutSeconds: 900 };
  if (by === 'docker') {
    await run('docker', ['build', ...options, context], limits);
    await run('docker', ['save', '--output', half, name], limits);
  } else {
    // chroot: the build needs no namespaces of its own, so it runs inside a container too.
    await run('buildah', [...storage, 'build', '--isolation=chroot', '--pull-never', ...options, context], limits);
    // Not compressed: nothing is sent anywhere, and both writing and loading are several times faster.
    await run('buildah', [...storage, 'push', '--disable-compression', name, `oci-archive:${half}:${name}`], limits);
  }
  await run('mv', [half, archive]);
}

/** Whether the engine has the image, so that another can be made from it. */
export async function has(by: Engine, name: string): Promise<boolean> {
  if (by === 'docker') return await succeeds('docker', ['image', 'inspect', name]);
  if (!existsSync(storageFolder)) return false;
  return await succeeds('buildah', [...storage, 'inspect', '--type=image', name]);
}

const storageFolder = join(cacheFolder, 'images', 'storage');
const storage = [
  `--root=${storageFolder}`,
  `--runroot=${join(cacheFolder, 'images', 'run')}`,
  '--storage-driver=overlay',
];
