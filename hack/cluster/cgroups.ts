/** The cgroups of the embedded cluster, in either version: below /oz0, a folder a node. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waitFor } from '../shell/wait.ts';
import { cgroup, type NodeName } from './layout.ts';

const root = '/sys/fs/cgroup';
/** With version 1 every controller has a tree of its own, maybe beside a version 2 tree without controllers. */
export const isVersion2 = (): boolean => existsSync(join(root, 'cgroup.controllers'));

export const cgroupOf = (node: NodeName): string => `/${cgroup}/${node}`;

export function createCgroups(node: NodeName): void {
  if (isVersion2()) {
    // A child has only the controllers that each of its parents hands on.
    const controllers = readFileSync(join(root, 'cgroup.controllers'), 'utf8').trim().split(' ');
    let folder = root;
    for (const part of [cgroup, node]) {
      writeFileSync(join(folder, 'cgroup.subtree_control'), controllers.map((name) => `+${name}`).join(' '));
      folder = join(folder, part);
      mkdirSync(folder, { recursive: true });
    }
    return;
  }
  for (const tree of trees()) mkdirSync(join(tree, cgroup, node), { recursive: true });
  // A new cpuset is empty and takes no process until it is filled, the parent before the child.
  for (const part of [cgroup, join(cgroup, node)]) {
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      writeFileSync(join(root, 'cpuset', part, file), readFileSync(join(root, 'cpuset', file)));
    }
  }
}

/** Removes what a node, or the whole cluster, had. Its processes are gone; the kernel may need a moment to see that. */
export async function removeCgroups(node?: NodeName): Promise<void> {
  const part = node === undefined ? cgroup : join(cgroup, node);
  const folders = trees().map((tree) => join(tree, part));
  await waitFor(`the end of the cgroups ${part}`, () => (folders.map(removeTree).every(Boolean) ? true : undefined), {
    timeoutSeconds: 20,
    everyMs: 50,
    hint: `a process is left in one of: find ${root} -path '*/${part}/*' -name cgroup.procs | xargs cat`,
  });
}

export function cgroupsLeft(): string[] {
  return trees()
    .map((tree) => join(tree, cgroup))
    .filter((folder) => existsSync(folder));
}

function trees(): string[] {
  if (isVersion2()) return [root];
  if (!existsSync(root)) return [];
  return readdirSync(root)
    .map((name) => join(root, name))
    .filter((tree) => existsSync(join(tree, 'cgroup.procs')));
}

function removeTree(folder: string): boolean {
  if (!existsSync(folder)) return true;
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (entry.isDirectory()) removeTree(join(folder, entry.name));
  }
  try {
    rmdirSync(folder);
    return true;
  } catch {
    return false;
  }
}
