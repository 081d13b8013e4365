/** The folder of the journal, as the few operations that it is written with: what a test can break off after any of them. */
import { type FileHandle, open, rename } from 'node:fs/promises';
import { join } from 'node:path';

export interface DiskFile {
  readonly size: () => Promise<number>;
  /** Fewer bytes where the file ends. */
  readonly read: (at: number, length: number) => Promise<Buffer>;
  /** Resolves when all of it is with the kernel: it outlives this process, and not yet the node. */
  readonly append: (bytes: Uint8Array) => Promise<void>;
  /** Resolves when all that was appended outlives the node, too. */
  readonly sync: () => Promise<void>;
  readonly close: () => Promise<void>;
}

export interface Disk {
  readonly open: (name: string) => Promise<DiskFile | undefined>;
  /** A new, empty file, in place of one that is there. */
  readonly create: (name: string) => Promise<DiskFile>;
  /** Resolves when it outlives the node. */
  readonly rename: (from: string, to: string) => Promise<void>;
}

export function folderDisk(folder: string): Disk {
  return {
    async open(name) {
      try {
        return await diskFile(await open(join(folder, name), 'r+'));
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
        throw error;
      }
    },
    create: async (name) => diskFile(await open(join(folder, name), 'w+', 0o600)),
    async rename(from, to) {
      await rename(join(folder, from), join(folder, to));
      const handle = await open(folder, 'r');
      try {
        await handle.sync();
      } finally {
        await handle.close();
      }
    },
  };
}

async function diskFile(handle: FileHandle): Promise<DiskFile> {
  let end = (await handle.stat()).size;
  return {
    size: async () => (await handle.stat()).size,
    async read(at, length) {
      const bytes = Buffer.alloc(length);
      let filled = 0;
      while (filled < length) {
        const { bytesRead } = await handle.read(bytes, filled, length - filled, at + filled);
        if (bytesRead === 0) break;
        filled += bytesRead;
      }
      return bytes.subarray(0, filled);
    },
    async append(bytes) {
      let written = 0;
      while (written < bytes.length) {
        const { bytesWritten } = await handle.write(bytes, written, bytes.length - written, end);
        written += bytesWritten;
        end += bytesWritten;
      }
    },
    sync: () => handle.datasync(),
    close: () => handle.close(),
  };
}
