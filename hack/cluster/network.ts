/** The bridge, a machine's card on it, and the routes by which machines and this machine reach pods. */
import { existsSync } from 'node:fs';
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
  if (existsSync(`/sys/class/net/${bridge}`)) return;
  await batch(
    [],
    [`link add ${bridge} type bridge`, `addr add ${bridgeAddress}/24 dev ${bridge}`, `link set ${bridge} up`],
  );
}

export async function removeBridge(): Promise<void> {
  if (existsSync(`/sys/class/net/${bridge}`)) await batch([], [`link del ${bridge}`]); // its routes go with it
}

/** Gives the machine its card, its address and its routes. A card of an earlier life has gone with its namespace. */
export async function connectMachine(machine: MachineName): Promise<void> {
  const pid = initPid(machine);
  const link = linkOf(machine);
  if (existsSync(`/sys/class/net/${link}`)) await batch([], [`link del ${link}`]); // the kernel may still be at it
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

async function batch(prefix: readonly string[], lines: readonly string[]): Promise<void> {
  const [program = 'ip', ...args] = [...prefix, 'ip', '-batch', '-'];
  await run(program, args, { input: `${lines.join('\n')}\n` });
}
