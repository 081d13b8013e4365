/** Builds images, each once for its content: what went into one is in the name of its archive. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder, contentKey } from '../shell/cache.ts';
import { run } from '../shell/command.ts';
import { Failure } from '../shell/failure.ts';
import { withLock } from '../shell/lock.ts';
import { step } from '../shell/steps.ts';
import { type Image, imageNames, imageOf } from './catalog.ts';
import { build, type Engine, engine, forget, has } from './engine.ts';
import { copyOwnFiles } from './staging.ts';

export type BuiltImage = { name: string; reference: string; archive: string };

const folder = join(cacheFolder, 'images');
/** Raised when archives are written in another way. */
const archiveFormat = '2';

/** Builds what is missing of the named images, the images they are made from first. */
export async function buildImages(names: readonly string[]): Promise<BuiltImage[]> {
  const by = await engine();
  return await withLock(join(cacheFolder, 'images.lock'), 1800, async () => {
    const built: BuiltImage[] = [];
    for (const name of names) {
      const image = find(name);
      if (image.script !== undefined) await run(process.execPath, [image.script], { timeoutSeconds: 600 });
      built.push(await ensure(image, by));
    }
    return built;
  });
}

/** A name of the image as it is now, that will never mean another: what asks for it gets this one or none. */
export async function pinnedReference(name: string): Promise<string> {
  return keyedName(find(name), await engine());
}

/** The archive an image has, or would have; undefined where its parts are not there yet. */
export async function archiveOf(name: string): Promise<string | undefined> {
  try {
    return archivePath(find(name), await engine());
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

async function ensure(image: Image, by: Engine): Promise<BuiltImage> {
  const archive = archivePath(image, by);
  if (!existsSync(archive)) await make(image, by, archive);
  return { name: image.name, reference: image.reference, archive };
}

async function make(image: Image, by: Engine, archive: string): Promise<void> {
  const base = await baseOf(image, by);
  await step(`build image ${image.name}`, async () => {
    const context = `${archive}.context`;
    const log = join(folder, 'log', `${image.name}.log`);
    rmSync(context, { recursive: true, force: true });
    rmSync(log, { force: true });
    mkdirSync(context, { recursive: true });
    try {
      copyOwnFiles(image.name, context);
      for (const part of image.staging?.(by) ?? []) await part.stage(context, log);
      const tags = [keyedName(image, by), image.reference];
      const dockerfile = join(context, 'Dockerfile');
      await build(by, { dockerfile, context, tags, archive, log, ...(base === undefined ? {} : { base }) });
    } finally {
      rmSync(context, { recursive: true, force: true });
    }
  });
  await removeOlder(image, archive, by);
}

/** The base by the name that holds its key: exactly this one, whatever `:dev` means by now. */
async function baseOf(image: Image, by: Engine): Promise<string | undefined> {
  if (typeof image.base === 'object') return by === 'docker' ? image.base.docker : undefined;
  if (image.base === undefined) return undefined;
  const base = find(image.base);
  const name = keyedName(base, by);
  if (!(await has(by, name))) await make(base, by, archivePath(base, by));
  return name;
}

const keyedName = (image: Image, by: Engine): string => `oz0.local/${image.name}:${keyOf(image, by)}`;
const archivePath = (image: Image, by: Engine): string => join(folder, `${image.name}-${keyOf(image, by)}.tar`);

function keyOf(image: Image, by: Engine): string {
  const own = join(import.meta.dirname, image.name);
  const files = readdirSync(own).filter((name) => name !== 'node_modules');
  const base = typeof image.base === 'string' ? keyOf(find(image.base), by) : JSON.stringify(image.base ?? '');
  return contentKey([
    ...[archiveFormat, image.reference, by, process.arch, base],
    ...files.flatMap((name) => [name, readFileSync(join(own, name))]),
    ...(image.staging?.(by) ?? []).map((part) => part.key()),
  ]);
}

/** Archives are big and an operator under work makes many: only the newest three of an image stay. */
async function removeOlder(image: Image, newest: string, by: Engine): Promise<void> {
  const keys = readdirSync(folder).flatMap((name) => {
    const [, owner, key] = /^(.+)-([0-9a-f]{12})\.tar$/.exec(name) ?? [];
    return owner === image.name && key !== undefined && join(folder, name) !== newest
      ? [{ key, path: join(folder, name) }]
      : [];
  });
  const age = ({ path }: { path: string }) => Date.now() - statSync(path).mtimeMs;
  for (const { key, path } of keys.sort((one, other) => age(one) - age(other)).slice(2)) {
    rmSync(path, { force: true });
    await forget(by, `oz0.local/${image.name}:${key}`);
  }
}

function find(name: string): Image {
  const image = imageOf(name);
  if (image === undefined) throw new Failure(`no image ${name}`, { hint: `one of: ${imageNames.join(', ')}` });
  return image;
}
