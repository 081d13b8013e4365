/** The embedded cluster's life: up from nothing, from kept data or from what a crash left; down to nothing. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildImages } from '../images/build.ts';
import { uninterrupted } from '../shell/interrupt.ts';
import { step } from '../shell/steps.ts';
import { waitFor } from '../shell/wait.ts';
import { applyBaseObjects, dnsAnswers } from './base-objects.ts';
import { createCertificates } from './certificates.ts';
import { cgroupsLeft, createCgroups, removeCgroups } from './cgroups.ts';
import { startControlPlane } from './control-plane.ts';
import {
  bridge,
  clusterFolder,
  dataOf,
  kubeconfig,
  linkOf,
  type MachineName,
  machineNames,
  type NodeName,
  nodeNames,
  pkiFolder,
} from './layout.ts';
import { loadArchives } from './load.ts';
import { machineRuns, startMachine, stopMachine } from './machines.ts';
import { connectMachine, createBridge, removeBridge } from './network.ts';
import { nodeReady, startContainerd, startNode } from './node.ts';
import { buildPrograms, programsKey } from './programs.ts';

const versionFile = join(clusterFolder, 'programs-key');

export async function up(): Promise<void> {
  await buildPrograms();
  const images = await buildImages(['pause', 'coredns']);
  await step('clean up what an earlier run left', stopAll);
  // Data of other versions may be of another format; a test cluster is sooner made than migrated.
  if (existsSync(versionFile) && readFileSync(versionFile, 'utf8') !== programsKey()) removeData();
  mkdirSync(clusterFolder, { recursive: true });
  writeFileSync(versionFile, programsKey());
  try {
    await start(images.map(({ archive }) => archive));
  } catch (error) {
    await uninterrupted(stopAll);
    throw error;
  }
}

async function start(archives: readonly string[]): Promise<void> {
  const since = new Date();
  await step('machines and certificates', async () => {
    await createBridge();
    await Promise.all([createCertificates(), ...machineNames.map(bootMachine)]);
  });
  await Promise.all([
    step('control plane', async () => {
      await startControlPlane();
      await applyBaseObjects();
    }),
    ...nodeNames.map((node) => step(`containerd on ${node}`, () => bootContainerd(node, archives))),
  ]);
  for (const node of nodeNames) startNode(node);
  await Promise.all(nodeNames.map((node) => step(`${node} ready`, () => nodeReady(node, since))));
  await step('cluster DNS answers', dnsAnswers);
}

async function bootMachine(machine: MachineName): Promise<void> {
  mkdirSync(dataOf(machine), { recursive: true });
  if (machine !== 'control-plane') createCgroups(machine);
  await startMachine(machine);
  await connectMachine(machine);
}

async function bootContainerd(node: NodeName, archives: readonly string[]): Promise<void> {
  await startContainerd(node);
  await loadArchives(archives, [node]);
}

/** Ends the cluster and removes its data; its logs stay until the next one. */
export async function down(keepData: boolean): Promise<void> {
  await step('stop', stopAll);
  if (!keepData) await step('remove data', async () => removeData());
}

/** A power cut of one machine. Its data stays, as on a disk. */
export async function stopOne(machine: MachineName): Promise<void> {
  await stopMachine(machine);
  await linkGone(machine);
  if (machine !== 'control-plane') await removeCgroups(machine);
}

export async function startOne(machine: MachineName): Promise<void> {
  const since = new Date();
  await stopOne(machine);
  await bootMachine(machine);
  if (machine === 'control-plane') {
    await startControlPlane();
    return;
  }
  const images = await buildImages(['pause', 'coredns']);
  await bootContainerd(
    machine,
    images.map(({ archive }) => archive),
  );
  startNode(machine);
  await nodeReady(machine, since);
}

async function stopAll(): Promise<void> {
  await Promise.all(machineNames.map(stopMachine));
  await Promise.all([...machineNames.map(linkGone), removeCgroups()]);
  await removeBridge();
}

/** The card goes with the namespace, which the kernel takes apart a moment after its last process. */
async function linkGone(machine: MachineName): Promise<void> {
  await waitFor(
    `the end of ${linkOf(machine)}`,
    () => (existsSync(`/sys/class/net/${linkOf(machine)}`) ? undefined : true),
    {
      timeoutSeconds: 20,
      everyMs: 20,
      hint: `\`ip link del ${linkOf(machine)}\` removes it by hand`,
    },
  );
}

function removeData(): void {
  for (const machine of machineNames) rmSync(dataOf(machine), { recursive: true, force: true });
  rmSync(pkiFolder, { recursive: true, force: true });
  rmSync(kubeconfig, { force: true });
  rmSync(versionFile, { force: true });
}

/** Whether anything of a cluster runs or is left. */
export function remains(): string[] {
  return [
    ...machineNames.filter(machineRuns).map((machine) => `machine ${machine}`),
    ...(existsSync(`/sys/class/net/${bridge}`) ? [`bridge ${bridge}`] : []),
    ...cgroupsLeft().map((folder) => `cgroup ${folder}`),
  ];
}
