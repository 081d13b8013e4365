/**
 * The folder in which the controller tells a pod whom to trust and where the walls are. Read at each use: the kubelet
 * replaces its files while the pod runs.
 */
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';

export interface Address {
  readonly host: string;
  readonly port: number;
}

export interface SandboxWalls {
  /** Addresses that must not answer from inside the pod, and surely would outside. */
  readonly closed: readonly Address[];
  /** An address that answers where the network works at all. */
  readonly open: Address;
}

export interface TrustFolder {
  readonly bundle: () => Promise<string>;
  readonly trustDomain: () => Promise<string>;
  readonly egress: () => Promise<Address & { readonly name: string }>;
  readonly walls: () => Promise<SandboxWalls>;
}

/** Every function rejects with a sentence for a file that is missing or wrong. */
export function openTrustFolder(folder: string): TrustFolder {
  const read = async (name: string) => (await readFile(join(folder, name), 'utf8')).trim();
  return {
    bundle: () => read('ca.crt'),
    trustDomain: () => read('trust-domain'),
    async egress() {
      return { ...parseAddress(await read('egress')), name: await read('egress-name') };
    },
    async walls() {
      const value: unknown = JSON.parse(await read('sandbox.json'));
      const { closed, open } = (value ?? {}) as { closed?: unknown; open?: unknown };
      // Without an address that must not answer, nothing is proved by silence.
      if (!Array.isArray(closed) || closed.length === 0) throw new Error('sandbox.json names no closed address');
      return { closed: closed.map(parseAddress), open: parseAddress(open) };
    },
  };
}

/** `10.0.0.1:443` or `[fd00::1]:443`; a name is refused, since a tool pod resolves none. */
export function parseAddress(text: unknown): Address {
  const match = typeof text === 'string' ? /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):([1-9][0-9]{0,4})$/.exec(text) : null;
  const host = match?.[1] ?? match?.[2] ?? '';
  const port = Number(match?.[3]);
  if (isIP(host) === 0 || port > 65_535) throw new Error(`not an address with a port: ${String(text).slice(0, 100)}`);
  return { host, port };
}
