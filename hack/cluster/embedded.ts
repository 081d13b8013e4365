/** The embedded cluster's life: up from nothing, from kept data or from what a crash left; down to nothing. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildImages } from '../images/build.ts';
import { Failure } from '../shell/failure.ts';
import { uninterrupted } from '../shell/interrupt.ts';
import { note, step } from '../shell/steps.ts';
import { waitFor } from '../shell/wait.ts';
import { applyBaseObjects, dnsAnswers } from './base-objects.ts';
import { createCertificates } from './certificates.ts';
import { cgroupsLeft, createCgroups, removeCgroups } from './cgroups.ts';
import { startControlPlane } from './control-plane.ts';
import { health } from './health.ts';
import {
  bridge,
  clusterFolder,
  dataOf,
  kubeconfig,
  logFolder,
  type MachineName,
  machineNames,
  type NodeName,
  nodeNames,
  pkiFolder,
} from './layout.ts';
import { loadArchives } from './load.ts';
import { machineRuns, startMachine, stopMachine } from './machines.ts';
import { connectMachine, createBridge, cutMachine, hasLink, removeBridge } from './network.ts';
import { nodeReady, startContainerd, startKubelet, startPolicies } from './node.ts';
import { buildPrograms, programsKey } from './programs.ts';

const versionFile = join(clusterFolder, 'programs-key');

export async function up(): Promise<void> {
  await buildPrograms();
  const images = await buildImages(['pause', 'coredns']);
  await step('clean up what an earlier run left', stopAll);
  if (!dataFits()) removeData();
  mkdirSync(clusterFolder, { recursive: true });
  writeFileSync(versionFile, programsKey());
  removeLogs();
  try {
    await start(images.map(({ archive }) => archive));
  } catch (error) {
    await uninterrupted(stopAll);
    throw error;
  }
}

/**
 * Data without a kubeconfig is of a start that was interrupted; data of other versions may be of another format. A test
 * cluster is sooner made than mended.
 */
function dataFits(): boolean {
  return existsSync(kubeconfig) && existsSync(versionFile) && readFileSync(versionFile, 'utf8') === programsKey();
}

/** Brings nodes back to a control plane that runs; false when it takes more than that. */
export async function repair(): Promise<boolean> {
  if (!dataFits()) return false;
  const first = await health();
  if (first.ok) return true;
  if (first.broken.includes('control-plane')) return false;
  try {
    for (const machine of first.broken) await step(`bring ${machine} back`, () => startOne(machine));
    const patience = { timeoutSeconds: 30, everyMs: 500 };
    await step('wait for health', () => waitFor('health', async () => (await health()).ok || undefined, patience));
    return true;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    note(`${error.message}: starting all of it again`);
    return false;
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
  await Promise.all(nodeNames.map((node) => step(`${node} ready`, () => bootNode(node, since))));
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

async function bootNode(node: NodeName, since: Date): Promise<void> {
  startKubelet(node);
  await nodeReady(node, since);
  await startPolicies(node);
}

/** Ends the cluster and removes its data; its logs stay until the next one. */
export async function down(keepData: boolean): Promise<void> {
  await step('stop', stopAll);
  if (!keepData) await step('remove data', async () => removeData());
}

/** A power cut of one machine. Its data stays, as on a disk. */
export async function stopOne(machine: MachineName): Promise<void> {
  await cutMachine(machine);
  await stopMachine(machine);
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
  await bootNode(machine, since);
}

async function stopAll(): Promise<void> {
  await Promise.all(machineNames.map(cutMachine));
  await Promise.all(machineNames.map(stopMachine));
  await removeCgroups();
  await removeBridge();
}

function removeData(): void {
  for (const machine of machineNames) rmSync(dataOf(machine), { recursive: true, force: true });
  rmSync(pkiFolder, { recursive: true, force: true });
  rmSync(kubeconfig, { force: true });
  rmSync(versionFile, { force: true });
}

/** A log begins with the cluster's start; a machine that is stopped and started goes on in its own. */
function removeLogs(): void {
  if (!existsSync(logFolder)) return;
  for (const name of readdirSync(logFolder)) {
    if (machineNames.some((machine) => name.startsWith(machine))) rmSync(join(logFolder, name));
  }
}

/** Whether anything of a cluster runs or is left. */
export function remains(): string[] {
  return [
    ...machineNames.filter(machineRuns).map((machine) => `machine ${machine}`),
    ...(hasLink(bridge) ? [`bridge ${bridge}`] : []),
    ...cgroupsLeft().map((folder) => `cgroup ${folder}`),
  ];
}
