/** Says what this machine lacks for the embedded cluster and how to get it; installs Debian's packages if asked. */
import { existsSync, mkdirSync, readFileSync, statfsSync } from 'node:fs';
import { freemem, totalmem } from 'node:os';
import { cacheFolder } from '../shell/cache.ts';
import { run, succeeds } from '../shell/command.ts';
import { step } from '../shell/steps.ts';
import { isVersion2 } from './cgroups.ts';
import { logOf } from './layout.ts';
import { missingPrograms } from './programs.ts';

export type Finding = {
  what: string;
  found: boolean;
  /** What was seen, or how to get it. */
  detail: string;
  /** The Debian package that brings it. */
  debian?: string;
};

type Check = () => Promise<Finding> | Finding;

export async function examine(): Promise<Finding[]> {
  return await Promise.all(checks.map((check) => check()));
}

/** Installs what Debian has; says whether it could try. */
export async function install(findings: readonly Finding[]): Promise<boolean> {
  const packages = [
    ...new Set(findings.flatMap(({ found, debian }) => (found || debian === undefined ? [] : [debian]))),
  ];
  if (packages.length === 0 || process.getuid?.() !== 0 || !(await succeeds('apt-get', ['--version']))) return false;
  const options = {
    log: logOf('install'),
    timeoutSeconds: 900,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  };
  await step(`install ${packages.join(', ')}`, async () => {
    await run('apt-get', ['update'], options);
    await run('apt-get', ['install', '--yes', '--no-install-recommends', ...packages], options);
  });
  return true;
}

function command(name: string, debian: string, why: string): Check {
  return async () => {
    const path = (await run('sh', ['-c', 'command -v "$1" || true', 'sh', name])).trim();
    return { what: name, found: path !== '', detail: path !== '' ? path : `${why}; package ${debian}`, debian };
  };
}

const wantedGo = [1, 26] as const;

async function go(): Promise<Finding> {
  const what = `Go ${wantedGo.join('.')} or newer`;
  const get = 'it builds Kubernetes; see https://go.dev/doc/install';
  if (!(await succeeds('go', ['version']))) return { what, found: false, detail: get };
  const version = (await run('go', ['env', 'GOVERSION', 'GOTOOLCHAIN'])).trim().split('\n');
  const [major = 0, minor = 0] = (version[0] ?? '').replace('go', '').split('.').map(Number);
  // From 1.21 on Go fetches the version that a go.mod asks for, unless it is told to stay what it is.
  const fetches = minor >= 21 && version[1] !== 'local';
  const found = major > wantedGo[0] || (major === wantedGo[0] && (minor >= wantedGo[1] || fetches));
  return { what, found, detail: found ? version.join(', ') : `${version[0]} is too old; ${get}` };
}

async function seccompHeaders(): Promise<Finding> {
  const found = await succeeds('pkg-config', ['--exists', 'libseccomp']);
  const detail = found ? 'found by pkg-config' : 'runc filters system calls with it; package libseccomp-dev';
  return { what: 'libseccomp headers', found, detail, debian: 'libseccomp-dev' };
}

function superuser(): Finding {
  const found = process.getuid?.() === 0;
  return {
    what: 'root',
    found,
    detail: found ? 'yes' : 'namespaces, mounts and cgroups need it: run as root, or use Docker and kind',
  };
}

function cgroups(): Finding {
  const what = 'cgroup controllers';
  const wanted = isVersion2()
    ? ['cpu', 'cpuset', 'memory', 'pids']
    : ['cpu', 'cpuacct', 'cpuset', 'memory', 'pids', 'freezer'];
  const has = isVersion2()
    ? readFileSync('/sys/fs/cgroup/cgroup.controllers', 'utf8').trim().split(' ')
    : wanted.filter((name) => existsSync(`/sys/fs/cgroup/${name}/cgroup.procs`));
  const missing = wanted.filter((name) => !has.includes(name));
  const version = isVersion2() ? 'version 2' : 'version 1';
  const detail =
    missing.length === 0 ? version : `${version} lacks ${missing.join(', ')}; mount them, or boot a kernel with them`;
  return { what, found: missing.length === 0, detail };
}

function userNamespaces(): Finding {
  const limit = Number(readOr('/proc/sys/user/max_user_namespaces', '0'));
  const found = limit > 0;
  return {
    what: 'user namespaces',
    found,
    detail: found ? `up to ${limit}` : 'pods with hostUsers: false need them; sysctl user.max_user_namespaces=10000',
  };
}

function kernel(): Finding {
  const release = readOr('/proc/sys/kernel/osrelease', '').trim();
  const [major = 0, minor = 0] = release.split('.').map(Number);
  const found = major > 6 || (major === 6 && minor >= 3);
  return {
    what: 'Linux 6.3 or newer',
    found,
    detail: found ? release : `${release} cannot map the owners of a tmpfs (user namespaces)`,
  };
}

async function overlay(): Promise<Finding> {
  if (!readOr('/proc/filesystems', '').includes('overlay')) await succeeds('modprobe', ['overlay']);
  const found = readOr('/proc/filesystems', '').includes('overlay');
  return {
    what: 'overlay file system',
    found,
    detail: found ? 'yes' : 'containers and image builds need it: modprobe overlay',
  };
}

/** In a namespace of its own: this machine's tables are not looked at, let alone changed. */
async function packetFilter(): Promise<Finding> {
  const script =
    'nft add table ip t && iptables -N t && ip link add oz0a type veth peer name oz0b && ip link add oz0c type bridge';
  const found = await succeeds('unshare', ['--net', 'sh', '-c', script]);
  const detail = found ? 'yes' : `the kernel refuses one of: ${script}`;
  return { what: 'nftables, iptables, veth and bridge in the kernel', found, detail };
}

/** Where a module makes bridges pass this machine's own rules, those must not drop what nodes say to each other. */
async function bridgeFilter(): Promise<Finding> {
  const what = 'rules for bridged packets';
  const filters = readOr('/proc/sys/net/bridge/bridge-nf-call-iptables', '0').trim() === '1';
  if (!filters) return { what, found: true, detail: 'none apply' };
  const accepts = await succeeds('sh', ['-c', "iptables -S FORWARD | grep -qx -- '-P FORWARD ACCEPT'"]);
  const detail = accepts ? 'apply, and accept' : 'may drop them: sysctl net.bridge.bridge-nf-call-iptables=0';
  return { what, found: accepts, detail };
}

function disk(): Finding {
  mkdirSync(cacheFolder, { recursive: true });
  const { bavail, bsize } = statfsSync(cacheFolder);
  const free = (bavail * bsize) / 2 ** 30;
  const wanted = missingPrograms().includes('kubernetes') ? 14 : 3;
  const detail = `${free.toFixed(0)} GiB free in ${cacheFolder}, ${wanted} needed`;
  return {
    what: 'free disk',
    found: free >= wanted,
    detail: free >= wanted ? detail : `${detail}; OZ0_CACHE names another folder`,
  };
}

function cachePath(): Finding {
  // A Unix socket's path has at most 107 bytes, and containerd's lies four levels below.
  const found = cacheFolder.length <= 70 && !cacheFolder.startsWith('/run/');
  return {
    what: 'place of the cache',
    found,
    detail: found ? cacheFolder : `${cacheFolder} is too long, or in /run; set OZ0_CACHE`,
  };
}

function memory(): Finding {
  const gib = (bytes: number) => (bytes / 2 ** 30).toFixed(1);
  const found = totalmem() >= 4 * 2 ** 30;
  return { what: 'memory', found, detail: `${gib(totalmem())} GiB, ${gib(freemem())} free, 4 needed` };
}

function readOr(file: string, otherwise: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return otherwise;
  }
}

const checks: readonly Check[] = [
  superuser,
  go,
  command('gcc', 'gcc', 'containerd and runc are built with it'),
  command('ld', 'libc6-dev', 'containerd and runc are linked with it'),
  command('pkg-config', 'pkg-config', 'it finds libseccomp'),
  seccompHeaders,
  command('ip', 'iproute2', 'it makes bridge and cards'),
  command('nsenter', 'util-linux', 'it enters machines'),
  command('mount', 'mount', 'machines mount their own /proc and /run'),
  command('iptables', 'iptables', 'NetworkPolicy is enforced with it'),
  command('ipset', 'ipset', 'NetworkPolicy is enforced with it'),
  command('nft', 'nftables', 'Services are made with it'),
  command('conntrack', 'conntrack', 'connections to gone pods are ended with it'),
  command('buildah', 'buildah', 'it builds images'),
  command('mmdebstrap', 'mmdebstrap', "it makes the Python images' base"),
  cgroups,
  kernel,
  userNamespaces,
  overlay,
  packetFilter,
  bridgeFilter,
  memory,
  disk,
  cachePath,
];
