/** Puts images from archives onto the embedded cluster's nodes, where they are not there yet. */
import { run } from '../shell/command.ts';
import { Failure } from '../shell/failure.ts';
import { type NodeName, nodeNames } from './layout.ts';
import { machineRuns } from './machines.ts';
import { ctr } from './node.ts';

type Archive = { path: string; images: { name: string; digest: string }[] };

export type Loaded = { node: NodeName; archive: string; images: string[] };

/** Imports into all running nodes at once; says what was missing and is there now. */
export async function loadArchives(
  paths: readonly string[],
  nodes: readonly NodeName[] = nodeNames,
): Promise<Loaded[]> {
  const archives = await Promise.all(paths.map(readArchive));
  const loaded = await Promise.all(nodes.filter(machineRuns).map((node) => loadInto(node, archives)));
  return loaded.flat();
}

async function loadInto(node: NodeName, archives: readonly Archive[]): Promise<Loaded[]> {
  const there = await imagesOn(node);
  const loaded: Loaded[] = [];
  for (const { path, images } of archives) {
    const missing = images.filter(({ name, digest }) => there.get(name) !== digest);
    if (images.length > 0 && missing.length === 0) continue;
    await ctr(node, ['images', 'import', path]);
    loaded.push({ node, archive: path, images: images.map(({ name }) => name) });
  }
  return loaded;
}

/** Name and digest of what a node has. */
async function imagesOn(node: NodeName): Promise<Map<string, string>> {
  const [, ...lines] = (await ctr(node, ['images', 'ls'])).trim().split('\n');
  return new Map(
    lines.map((line): [string, string] => {
      const [name = '', , digest = ''] = line.split(/\s+/);
      return [name, digest];
    }),
  );
}

type Index = { manifests?: { digest: string; annotations?: Record<string, string> }[] };

/** What an archive holds; one of `docker save` without an OCI index says nothing, and is always imported. */
async function readArchive(path: string): Promise<Archive> {
  let index: Index = {};
  try {
    index = JSON.parse(await run('tar', ['-xOf', path, '--no-anchored', 'index.json'])) as Index;
  } catch (cause) {
    if (!(await run('tar', ['-tf', path])).split('\n').includes('manifest.json')) {
      throw new Failure(`${path} is no archive of an image`, { cause });
    }
  }
  const images = (index.manifests ?? []).flatMap(({ digest, annotations = {} }) => {
    const name = annotations['io.containerd.image.name'] ?? annotations['org.opencontainers.image.ref.name'];
    return name === undefined ? [] : [{ name, digest }];
  });
  return { path, images };
}
