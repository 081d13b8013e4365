#!/usr/bin/env node
/** A real Kubernetes of two nodes to work and test on. See hack/README.md. */
import { join } from 'node:path';
import { Command, Option } from 'commander';
import { examine, type Finding, install } from './cluster/doctor.ts';
import { down, remains, repair, startOne, stopOne, up } from './cluster/embedded.ts';
import { type Flavor, possibleFlavor, recordedFlavor, recordFlavor } from './cluster/flavor.ts';
import { health } from './cluster/health.ts';
import { kindDown, kindLoad, kindNode, kindRuns, kindUp } from './cluster/kind.ts';
import { isMachine, kubeconfig, logFolder, type MachineName, machineNames } from './cluster/layout.ts';
import { loadArchives } from './cluster/load.ts';
import { programPath } from './cluster/programs.ts';
import { cacheFolder } from './shell/cache.ts';
import { Failure, report } from './shell/failure.ts';
import { withLock } from './shell/lock.ts';
import { elapsed, note } from './shell/steps.ts';

const cli = new Command('cluster').description('A real Kubernetes of two nodes: embedded, or kind where Docker runs.');

cli
  .command('up')
  .description('start the cluster; does nothing when it is up and healthy, repairs it when it is not')
  .addOption(new Option('--kind', 'use kind, whatever is found').conflicts('embedded'))
  .option('--embedded', 'use the embedded cluster, even where Docker runs')
  .action(async (options: { kind?: boolean; embedded?: boolean }) => {
    const asked: Flavor | undefined = options.kind ? 'kind' : options.embedded ? 'embedded' : undefined;
    const flavor = asked ?? recordedFlavor() ?? (await possibleFlavor());
    await oneAtATime(() => (flavor === 'kind' ? bringUpKind() : bringUpEmbedded()));
    console.log(kubeconfig);
  });

cli
  .command('down')
  .description('end the cluster and remove all of it')
  .option('--keep', 'keep its data: objects, images and volumes are there again after the next `up`')
  .action(async ({ keep = false }: { keep?: boolean }) => {
    await oneAtATime(async () => {
      if (recordedFlavor() === 'kind') await kindDown();
      else await down(keep);
      if (!keep) recordFlavor(undefined);
    });
  });

cli
  .command('status')
  .description('say what runs; ends with 1 unless all is well')
  .action(async () => {
    const flavor = recordedFlavor();
    if (flavor === undefined) {
      console.log(['no cluster', ...remains().map((what) => `left over: ${what}`)].join('\n'));
      process.exitCode = 1;
      return;
    }
    if (flavor === 'kind') {
      const runs = await kindRuns();
      console.log(runs ? 'kind cluster oz0: exists' : 'kind cluster oz0: gone');
      process.exitCode = runs ? 0 : 1;
      return;
    }
    const { ok, lines } = await health();
    console.log([...lines, `kubeconfig: ${kubeconfig}`, `logs: ${logFolder}`].join('\n'));
    process.exitCode = ok ? 0 : 1;
  });

cli
  .command('doctor')
  .description('say what this machine lacks for the embedded cluster, and how to get it')
  .option('--install', "install Debian's packages; needs root")
  .action(async (options: { install?: boolean }) => {
    let findings = await examine();
    if (options.install === true && (await install(findings))) findings = await examine();
    console.log(findings.map(line).join('\n'));
    if (findings.some(({ found }) => !found)) process.exitCode = 1;
  });

cli
  .command('load')
  .description('put images from archives (OCI or docker save) onto all nodes')
  .argument('<archive...>')
  .action(async (archives: string[]) => {
    await oneAtATime(async () => {
      if (recordedFlavor() === 'kind') return await kindLoad(archives);
      for (const { node, images, archive } of await loadArchives(archives)) {
        note(`${node}: ${images.length === 0 ? archive : images.join(', ')}`);
      }
    });
  });

const node = cli.command('node').description('lose a machine as by a power cut, and get it back');
for (const action of ['stop', 'start'] as const) {
  node
    .command(action)
    .description(
      action === 'stop' ? 'cut its power: all of its processes and its network are gone at once' : 'bring it back',
    )
    .argument('<name>', machineNames.join(', '))
    .action(async (name: string) => {
      const machine = machineNamed(name);
      await oneAtATime(async () => {
        if (recordedFlavor() === 'kind') await kindNode(action, machine);
        else await (action === 'stop' ? stopOne(machine) : startOne(machine));
      });
    });
}

cli
  .command('kubeconfig')
  .description('print the path of the kubeconfig')
  .action(() => console.log(kubeconfig));

cli
  .command('env')
  .description("print shell lines that set KUBECONFIG and put the cluster's kubectl and helm in PATH")
  .action(() => {
    console.log(`export KUBECONFIG=${kubeconfig}`);
    if (recordedFlavor() !== 'kind') console.log(`export PATH=${programPath()}:$PATH`);
  });

async function bringUpKind(): Promise<void> {
  await kindUp();
  recordFlavor('kind');
}

async function bringUpEmbedded(): Promise<void> {
  if (recordedFlavor() === 'embedded' && (await repair())) return;
  let findings = await examine();
  if (await install(findings)) findings = await examine();
  const missing = findings.filter(({ found }) => !found);
  if (missing.length > 0) {
    throw new Failure(`this machine lacks something:\n${missing.map(line).join('\n')}`, {
      hint: '`hack/cluster.ts doctor` shows all that is needed',
    });
  }
  recordFlavor('embedded');
  await up();
  note(`up in ${elapsed()}`);
}

function line({ what, found, detail }: Finding): string {
  return `${found ? 'ok     ' : 'MISSING'} ${what}: ${detail}`;
}

function machineNamed(name: string): MachineName {
  if (!isMachine(name)) throw new Failure(`no machine ${name}`, { hint: `one of: ${machineNames.join(', ')}` });
  return name;
}

async function oneAtATime(work: () => Promise<void>): Promise<void> {
  // A cold build takes a quarter of an hour, and whoever comes second waits for it.
  await withLock(join(cacheFolder, 'cluster.lock'), 1800, work);
}

try {
  await cli.parseAsync();
} catch (error) {
  process.exitCode = report(error);
}
