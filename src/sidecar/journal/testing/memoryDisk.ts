/** A disk in memory that loses what was not synced, and can break off at any of its operations. */
import type { Disk, DiskFile } from '../disk.ts';

interface Content {
  bytes: Buffer;
  /** So much of it outlives the node. */
  synced: number;
}

export interface MemoryDisk extends Disk {
  /** Counts operations that change something; after so many, all fail. An append that is cut off leaves a part behind. */
  failAfter: number;
  readonly operations: () => number;
  /** Operations wait for it, where it is set. */
  hold: Promise<void> | undefined;
  readonly syncs: () => number;
  readonly file: (name: string) => Buffer | undefined;
  readonly put: (name: string, bytes: Buffer) => void;
  /** The same disk after this process died, or its node did: then `torn` bytes of what was not synced are left. */
  readonly after: (crash: 'process' | 'node', torn?: number) => MemoryDisk;
}

export function memoryDisk(files = new Map<string, Content>()): MemoryDisk {
  let operations = 0;
  let syncs = 0;
  /** Whether this operation may happen. */
  const step = async (): Promise<boolean> => {
    await disk.hold;
    operations++;
    return operations <= disk.failAfter;
  };
  const fail = (): never => {
    throw new Error('ENOSPC: no space left on device');
  };
  const open = (content: Content): DiskFile => ({
    size: async () => content.bytes.length,
    read: async (at, length) => Buffer.from(content.bytes.subarray(at, at + length)),
    async append(bytes) {
      const whole = await step();
      const part = whole ? bytes : bytes.subarray(0, Math.floor(bytes.length / 2));
      content.bytes = Buffer.concat([content.bytes, part]);
      if (!whole) fail();
    },
    async sync() {
      if (!(await step())) fail();
      syncs++;
      content.synced = content.bytes.length;
    },
    close: async () => {},
  });
  const disk: MemoryDisk = {
    failAfter: Number.POSITIVE_INFINITY,
    hold: undefined,
    operations: () => operations,
    syncs: () => syncs,
    async open(name) {
      const content = files.get(name);
      return content === undefined ? undefined : open(content);
    },
    async create(name) {
      if (!(await step())) fail();
      const content = { bytes: Buffer.alloc(0), synced: 0 };
      files.set(name, content);
      return open(content);
    },
    async rename(from, to) {
      if (!(await step())) fail();
      const content = files.get(from);
      if (content === undefined) return fail();
      files.delete(from);
      files.set(to, content);
    },
    file: (name) => files.get(name)?.bytes,
    put: (name, bytes) => void files.set(name, { bytes, synced: bytes.length }),
    after(crash, torn = 0) {
      const left = [...files].map(([name, { bytes, synced }]): [string, Content] => {
        const kept = crash === 'process' ? bytes : bytes.subarray(0, Math.min(bytes.length, synced + torn));
        return [name, { bytes: Buffer.from(kept), synced: kept.length }];
      });
      return memoryDisk(new Map(left));
    },
  };
  return disk;
}
