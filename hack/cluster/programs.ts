/**
 * Builds the cluster's programs from public Go modules, once: each set is pinned by a committed go.mod and go.sum, its
 * `tool` lines say which programs it makes, and what was built lies in the cache under a key of all that went into it.
 */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder, contentKey } from '../shell/cache.ts';
import { run } from '../shell/command.ts';
import { withLock } from '../shell/lock.ts';
import { step } from '../shell/steps.ts';
import { kubernetesVersion, logOf } from './layout.ts';

type Recipe = {
  makes: readonly string[];
  /** What `go build` is asked for; `tool` means all that go.mod names as tools. */
  packages?: string;
  tags?: string;
  /** Values the linker sets, `package.Name=value`: programs say their version by them. */
  set?: readonly string[];
  /** Without the C compiler, so that the program is static. */
  static?: boolean;
  /** The name Go gives a program, where it is not the one it is known by. */
  rename?: Record<string, string>;
  /** For a person who waits, on a machine of two cores. */
  coldMinutes?: number;
};

const [major, minor] = kubernetesVersion.split('.');
const version = 'k8s.io/component-base/version';
const recipes: Record<string, Recipe> = {
  kubernetes: {
    makes: [
      'kube-apiserver',
      'kube-controller-manager',
      'kube-scheduler',
      'kubelet',
      'kube-proxy',
      'kubectl',
      'kubeadm',
    ],
    static: true,
    set: [
      `${version}.gitVersion=v${kubernetesVersion}`,
      `${version}.gitMajor=${major}`,
      `${version}.gitMinor=${minor}`,
      `k8s.io/client-go/pkg/version.gitVersion=v${kubernetesVersion}`,
    ],
    coldMinutes: 7,
  },
  etcd: { makes: ['etcd'], rename: { server: 'etcd' }, coldMinutes: 1 },
  containerd: {
    makes: ['containerd', 'containerd-shim-runc-v2', 'ctr'],
    tags: 'no_btrfs no_devmapper no_zfs',
    set: ['github.com/containerd/containerd/v2/version.Version=2.4.2'],
    coldMinutes: 1,
  },
  runc: { makes: ['runc'], tags: 'seccomp' },
  cni: { makes: ['ptp', 'loopback', 'host-local', 'portmap'] },
  'kube-router': { makes: ['kube-router'], coldMinutes: 1 },
  // Static, since their images hold nothing else.
  coredns: { makes: ['coredns'], static: true, coldMinutes: 2 },
  helm: { makes: ['helm'], coldMinutes: 1 },
  pause: { makes: ['pause'], packages: '.', static: true },
};

const sourceOf = (set: string): string => join(import.meta.dirname, 'programs', set);

/** Builds what is missing. Go keeps its own cache of packages, so that after a change of one set the rest is quick. */
export async function buildPrograms(): Promise<void> {
  const missing = Object.keys(recipes).filter((set) => !existsSync(folderOf(set)));
  if (missing.length === 0) return;
  await withLock(join(cacheFolder, 'programs.lock'), 3600, async () => {
    for (const set of missing) if (!existsSync(folderOf(set))) await build(set);
  });
}

export function missingPrograms(): string[] {
  return Object.keys(recipes).filter((set) => !existsSync(folderOf(set)));
}

/** The path of a built program; with kind nothing is built, and kubectl and helm are those in PATH. */
export function program(name: string): string {
  const set = Object.keys(recipes).find((one) => recipes[one]?.makes.includes(name));
  if (set === undefined) throw new Error(`no recipe makes ${name}`);
  return existsSync(folderOf(set)) ? join(folderOf(set), name) : name;
}

export const cniFolder = (): string => folderOf('cni');

/** For PATH: the folders of all programs. */
export const programPath = (): string => Object.keys(recipes).map(folderOf).join(':');

/** Changes when any program changes. */
export const programsKey = (): string => contentKey(Object.keys(recipes).map(folderOf));

async function build(set: string): Promise<void> {
  const recipe = recipeOf(set);
  const folder = folderOf(set);
  const half = `${folder}.half`;
  rmSync(half, { recursive: true, force: true });
  mkdirSync(half, { recursive: true });
  const log = logOf(`build-${set}`);
  const minutes = recipe.coldMinutes === undefined ? '' : `, first time about ${recipe.coldMinutes} min`;
  await step(`build ${set} (${recipe.makes.join(', ')}${minutes})`, async () => {
    const link = ['-s', '-w', ...(recipe.set ?? []).map((value) => `-X ${value}`)].join(' ');
    await run(
      'go',
      [
        'build',
        '-trimpath',
        '-buildvcs=false',
        '-tags',
        recipe.tags ?? '',
        `-ldflags=${link}`,
        '-o',
        `${half}/`,
      ].concat(recipe.packages ?? 'tool'),
      {
        cwd: sourceOf(set),
        env: { ...process.env, GOFLAGS: '-mod=readonly', ...(recipe.static === true ? { CGO_ENABLED: '0' } : {}) },
        log,
        timeoutSeconds: 3600,
        hint: 'if a module could not be fetched, look at `go env GOPROXY`; what was compiled is kept, so try again',
      },
    );
    for (const [from, to] of Object.entries(recipe.rename ?? {})) renameSync(join(half, from), join(half, to));
    renameSync(half, folder);
  });
}

const folders = new Map<string, string>();

function folderOf(set: string): string {
  const known = folders.get(set);
  if (known !== undefined) return known;
  const recipe = recipeOf(set);
  const files = ['go.mod', 'go.sum', 'main.go']
    .map((name) => join(sourceOf(set), name))
    .filter((file) => existsSync(file));
  const key = contentKey([
    ...files.map((file) => readFileSync(file)),
    JSON.stringify({ ...recipe, coldMinutes: 0 }),
    process.arch,
  ]);
  const folder = join(cacheFolder, 'programs', `${set}-${key}`);
  folders.set(set, folder);
  return folder;
}

function recipeOf(set: string): Recipe {
  const recipe = recipes[set];
  if (recipe === undefined) throw new Error(`no recipe ${set}`);
  return recipe;
}
