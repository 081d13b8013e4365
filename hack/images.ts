#!/usr/bin/env node
/** Builds container images, with Docker or without, and puts them onto the cluster. See hack/README.md. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { recordedFlavor } from './cluster/flavor.ts';
import { kindLoad } from './cluster/kind.ts';
import { loadArchives } from './cluster/load.ts';
import { archiveOf, type BuiltImage, buildImages } from './images/build.ts';
import { imageNames, imageOf } from './images/catalog.ts';
import { engine } from './images/engine.ts';
import { cacheFolder } from './shell/cache.ts';
import { Failure, report } from './shell/failure.ts';
import { withLock } from './shell/lock.ts';
import { note, step } from './shell/steps.ts';

const cli = new Command('images').description('Container images: of the operator, of tools, of tests.');
const names = `of: ${imageNames.join(', ')}; all of them unless named`;

cli
  .command('build')
  .description('build what is missing or has changed; prints reference and archive of each')
  .argument('[name...]', names)
  .action(async (asked: string[]) => {
    for (const { reference, archive } of await build(asked)) console.log(`${reference}\t${archive}`);
  });

cli
  .command('load')
  .description("build, then put onto the cluster's nodes what they lack")
  .argument('[name...]', names)
  .action(async (asked: string[]) => {
    const built = await build(asked);
    if (recordedFlavor() === undefined) throw new Failure('no cluster', { hint: 'run `hack/cluster.ts up`' });
    await withLock(join(cacheFolder, 'cluster.lock'), 1800, () => load(built));
  });

cli
  .command('list')
  .description('the images, and which are built')
  .action(async () => {
    const by = await engine();
    console.log(`built with ${by}, archives in ${join(cacheFolder, 'images')}`);
    for (const name of imageNames) {
      const archive = await archiveOf(name);
      const built = archive !== undefined && existsSync(archive);
      console.log(`${built ? 'built  ' : 'missing'}  ${name.padEnd(16)} ${imageOf(name)?.reference}`);
    }
  });

async function build(asked: readonly string[]): Promise<BuiltImage[]> {
  return await buildImages(asked.length === 0 ? imageNames : asked);
}

async function load(built: readonly BuiltImage[]): Promise<void> {
  const archives = built.map(({ archive }) => archive);
  if (recordedFlavor() === 'kind') return await kindLoad(archives);
  const loaded = await step('load onto the nodes', () => loadArchives(archives));
  for (const { node, images } of loaded) note(`${node}: ${images.join(', ')}`);
}

try {
  await cli.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}
