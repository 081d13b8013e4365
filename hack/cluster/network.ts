/** The bridge, a machine's card on it, and the routes by which machines and this machine reach pods. */
import { readFileSync } from 'node:fs';
import { run } from '../shell/command.ts';
import {
  addressOf,
  bridge,
  bridgeAddress,
  hardwareAddressOf,
  linkOf,
  type MachineName,
  nodeNames,
  podRangeOf,
} from './layout.ts';
import { initPid } from './machines.ts';

/** Nothing of this machine's own tables is changed but for the bridge's address and one route a node. */
export async function createBridge(): Promise<void> {
  if (hasLink(bridge)) return;
  await batch(
    [],
    [`link add ${bridge} type bridge`, `addr add ${bridgeAddress}/24 dev ${bridge}`, `link set ${bridge} up`],
  );
}

export async function removeBridge(): Promise<void> {
  if (hasLink(bridge)) await batch([], [`link del ${bridge}`]); // its routes go with it
}

/**
 * Takes the machine's card away. It would go with the machine's namespace; but the kernel keeps that for minutes while
 * connections of dead processes wait for peers that are dead as well.
 */
export async function cutMachine(machine: MachineName): Promise<void> {
  const link = linkOf(machine);
  try {
    if (hasLink(link)) await batch([], [`link del ${link}`]);
  } catch (error) {
    if (hasLink(link)) throw error; // else it went by itself in the meantime
  }
}

/** Gives the machine its card, its address and its routes. A card of an earlier life has gone with its namespace. */
export async function connectMachine(machine: MachineName): Promise<void> {
  const pid = initPid(machine);
  const link = linkOf(machine);
  await cutMachine(machine);
  await batch(
    [],
    [
      `link add ${link} type veth peer name eth0 address ${hardwareAddressOf(machine)} netns ${pid}`,
      `link set ${link} master ${bridge} up`,
    ],
  );
  const inside = ['nsenter', '--target', String(pid), '--net', '--'];
  await batch(inside, [
    'link set lo up',
    `addr add ${addressOf(machine)}/24 dev eth0`,
    'link set eth0 up',
    `route add default via ${bridgeAddress}`,
    ...nodeNames
      .filter((node) => node !== machine)
      .map((node) => `route add ${podRangeOf(node)} via ${addressOf(node)}`),
  ]);
  const forward = 'echo 1 > /proc/sys/net/ipv4/ip_forward';
  await run('nsenter', ['--target', String(pid), '--net', '--', 'sh', '-c', forward]);
  for (const node of nodeNames) {
    if (node === machine) await batch([], [`route replace ${podRangeOf(node)} via ${addressOf(node)} dev ${bridge}`]);
  }
}

/** Asked of /proc, which answers for the network we are in; /sys answers for the one it was mounted in. */
export function hasLink(name: string): boolean {
  return new RegExp(`^ *${name}:`, 'm').test(readFileSync('/proc/net/dev', 'utf8'));
}

async function batch(prefix: readonly string[], lines: readonly string[]): Promise<void> {
  const [program = 'ip', ...args] = [...prefix, 'ip', '-batch', '-'];
  await run(program, args, { input: `${lines.join('\n')}\n` });
}
