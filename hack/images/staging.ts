/** What is put into a build's context beside the image's own folder: each part says what it is made of, then makes it. */
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileKey } from '../shell/cache.ts';
import { run } from '../shell/command.ts';
import { Failure } from '../shell/failure.ts';
import type { Engine } from './engine.ts';

export type Staging = {
  /** Changes when what would be staged changes. Cheap: it is asked at every build. */
  key: () => string;
  stage: (context: string, log: string) => Promise<void>;
};

const imageFolder = (name: string): string => join(import.meta.dirname, name);

/** A single file, as it is. */
export function file(source: string, target: string): Staging {
  return {
    key: () => {
      if (!existsSync(source)) throw new Failure(`${source} does not exist`);
      return `${target} ${fileKey(source)}`;
    },
    stage: async (context) => {
      mkdirSync(dirname(join(context, target)), { recursive: true });
      copyFileSync(source, join(context, target));
    },
  };
}

// The user of every image: tools and the operator itself run as it unless a pod says otherwise.
const accounts = {
  'etc/passwd': 'root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n',
  'etc/group': 'root:x:0:\nnonroot:x:65532:\n',
};

function writeAccounts(root: string): void {
  for (const [path, content] of Object.entries(accounts)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
  }
}

/** The Node.js that runs this very command, the libraries it is linked to, and the certificates of public CAs. */
export function nodeRuntime(engine: Engine): Staging {
  const certificates = '/etc/ssl/certs/ca-certificates.crt';
  const node = realpathSync(process.execPath);
  const alone = engine === 'docker'; // the base has Node.js
  return {
    key: () => (alone ? '' : [node, certificates].filter(existsSync).map(fileKey).join(' ')) + JSON.stringify(accounts),
    stage: async (context) => {
      const root = join(context, 'rootfs');
      writeAccounts(root);
      if (alone) return;
      const put = (source: string, target: string) => {
        mkdirSync(dirname(join(root, target)), { recursive: true });
        copyFileSync(source, join(root, target));
      };
      put(node, 'usr/local/bin/node');
      for (const library of await linkedLibraries(node)) put(library, library);
      if (existsSync(certificates)) put(certificates, certificates);
      mkdirSync(join(root, 'tmp'), { mode: 0o777 });
      await run('chmod', ['1777', join(root, 'tmp')]);
    },
  };
}

async function linkedLibraries(binary: string): Promise<string[]> {
  const listed = await run('ldd', [binary]);
  return [...listed.matchAll(/(\/\S+) \(0x/g)].map((match) => match[1] ?? '');
}

/** What package-lock.json pins, as node_modules. */
export function npmPackages(name: string): Staging {
  return {
    key: () => fileKey(join(imageFolder(name), 'package-lock.json')),
    stage: async (context, log) => {
      await run('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund'], {
        cwd: context,
        log,
        timeoutSeconds: 600,
        hint: 'the packages come from the registry that `npm config get registry` names',
      });
    },
  };
}

const pythonVersion = '3.11';

/** A Debian with Python and little else; it has no package of a service. */
export function pythonRuntime(engine: Engine): Staging {
  return {
    key: () => `${engine} bookworm ${pythonVersion} ${JSON.stringify(accounts)}`,
    stage: async (context, log) => {
      const root = join(context, 'rootfs');
      if (engine === 'docker') {
        mkdirSync(root);
        return;
      }
      await run(
        'mmdebstrap',
        ['--variant=essential', '--include=python3,ca-certificates', '--mode=root', 'bookworm', root],
        { log, timeoutSeconds: 900, hint: 'the packages come from the mirror that mmdebstrap knows for this release' },
      );
      for (const path of ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'var/cache/apt', 'var/lib/apt/lists']) {
        rmSync(join(root, path), { recursive: true, force: true });
      }
      rmSync(join(root, 'dev'), { recursive: true, force: true });
      mkdirSync(join(root, 'dev'));
      writeFileSync(join(root, 'etc/passwd'), accounts['etc/passwd']);
      writeFileSync(join(root, 'etc/group'), `${readFileSync(join(root, 'etc/group'), 'utf8')}nonroot:x:65532:\n`);
    },
  };
}

/** What requirements.txt pins, as wheels for the image's own Python, whichever Python this machine has. */
export function pythonPackages(name: string): Staging {
  return {
    key: () => fileKey(join(imageFolder(name), 'requirements.txt')),
    stage: async (context, log) => {
      const platform = `manylinux2014_${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`;
      const target = join(context, 'app');
      await run(
        'python3',
        ['-m', 'pip', 'install', '--no-deps', '--only-binary=:all:', '--implementation=cp'].concat(
          [`--python-version=${pythonVersion}`, `--platform=${platform}`, `--target=${target}`],
          ['-r', join(imageFolder(name), 'requirements.txt')],
        ),
        { log, timeoutSeconds: 600, hint: 'the packages come from the index that `pip config list` names' },
      );
      rmSync(join(target, 'bin'), { recursive: true, force: true }); // scripts that name this machine's Python
    },
  };
}

/** The version of an image's main package, which is its tag too. */
export function packageVersion(name: string, dependency: string): string {
  const folder = imageFolder(name);
  const npm = join(folder, 'package.json');
  if (existsSync(npm)) {
    const { dependencies } = JSON.parse(readFileSync(npm, 'utf8')) as { dependencies: Record<string, string> };
    const version = dependencies[dependency];
    if (version !== undefined) return version;
  } else {
    const pinned = readFileSync(join(folder, 'requirements.txt'), 'utf8').match(
      new RegExp(`^${dependency}==(.*)$`, 'm'),
    );
    if (pinned?.[1] !== undefined) return pinned[1];
  }
  throw new Error(`hack/images/${name} does not pin ${dependency}`);
}

/** The image's own folder, without what npm may have put there. */
export function copyOwnFiles(name: string, context: string): void {
  cpSync(imageFolder(name), context, { recursive: true, filter: (path) => !path.includes('/node_modules') });
}
