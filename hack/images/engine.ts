/** The two ways to build an image: Docker where it runs, else buildah, which needs neither a daemon nor a registry. */
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../shell/cache.ts';
import { run, succeeds } from '../shell/command.ts';

export type Engine = 'docker' | 'buildah';

export type Build = {
  dockerfile: string;
  context: string;
  /** Names for the result; all of them are in the archive. */
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
  rmSync(half, { recursive: true, force: true });
  const limits = { log, timeoutSeconds: 900 };
  if (by === 'docker') {
    await run('docker', ['build', ...options, context], limits);
    await run('docker', ['save', '--output', half, ...tags], limits);
    renameSync(half, archive);
    return;
  }
  // chroot: the build needs no namespaces of its own, so it runs inside a container too.
  await run('buildah', [...storage, 'build', '--isolation=chroot', '--pull-never', ...options, context], limits);
  // By way of a folder: there the one image gets its further names without being packed again.
  const layout = `${archive}.layout`;
  rmSync(layout, { recursive: true, force: true });
  const [first = '', ...others] = tags;
  await run('buildah', [...storage, 'push', '--compression-level=1', first, `oci:${layout}:${first}`], limits);
  addNames(join(layout, 'index.json'), others);
  await run('tar', ['-cf', half, '-C', layout, '.'], limits);
  rmSync(layout, { recursive: true });
  renameSync(half, archive);
}

function addNames(indexFile: string, names: readonly string[]): void {
  const index = JSON.parse(readFileSync(indexFile, 'utf8')) as { manifests: Record<string, unknown>[] };
  const named = names.map((name) => ({
    ...index.manifests[0],
    annotations: { 'org.opencontainers.image.ref.name': name },
  }));
  writeFileSync(indexFile, JSON.stringify({ ...index, manifests: [...index.manifests, ...named] }));
}

/** Whether the engine has the image, so that another can be made from it. */
export async function has(by: Engine, name: string): Promise<boolean> {
  if (by === 'docker') return await succeeds('docker', ['image', 'inspect', name]);
  if (!existsSync(storageFolder)) return false;
  return await succeeds('buildah', [...storage, 'inspect', '--type=image', name]);
}

/** Forgets a name, and what only it kept. */
export async function forget(by: Engine, name: string): Promise<void> {
  await (by === 'docker' ? succeeds('docker', ['rmi', name]) : succeeds('buildah', [...storage, 'rmi', name]));
}

const storageFolder = join(cacheFolder, 'images', 'storage');
const storage = [
  `--root=${storageFolder}`,
  `--runroot=${join(cacheFolder, 'images', 'run')}`,
  '--storage-driver=overlay',
];
