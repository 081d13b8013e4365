/**
 * The secrets that the kubelet mounted, as they stand now. A mount is swapped as a whole (`..data` is a link): a new one is
 * noticed within a second and read whole, so that no half of an old state is mixed with half of a new one.
 */
import { open, realpath } from 'node:fs/promises';
import { join, normalize } from 'node:path';
import type { SecretFile, SecretProblem } from '../../domain/config/sidecar.ts';
import {
  LONGEST_ENVIRONMENT_VALUE,
  readBoundValue,
  readEnvironmentValue,
  type SecretReading,
} from '../../domain/credential/readSecretValue.ts';
import type { Secret } from '../../domain/credential/secret.ts';

export interface SecretState {
  readonly values: ReadonlyMap<string, Secret>;
  readonly problems: readonly { readonly name: string; readonly problem: SecretProblem }[];
}

export interface SecretFiles {
  readonly current: () => SecretState;
  /** Reads now. True: something is different. */
  readonly look: () => Promise<boolean>;
  readonly close: () => void;
}

export interface SecretFilesOptions {
  readonly folder: string;
  readonly secrets: readonly SecretFile[];
  readonly isBound: (name: string) => boolean;
  /** After `current()` changed, with the names of what did. */
  readonly onChange: (changed: readonly string[]) => void;
  readonly pollMs?: number;
}

const POLL_MS = 1_000;
const MOST_TRIES = 5;

export async function openSecretFiles(options: SecretFilesOptions): Promise<SecretFiles> {
  let state: SecretState = { values: new Map(), problems: [] };
  let mount: string | undefined;
  let looking: Promise<boolean> | undefined;

  async function readAll(): Promise<boolean> {
    const before = await mountOf(options.folder);
    // Without such a link nothing says that nothing changed.
    if (before !== undefined && before === mount) return false;
    for (let tries = 1; ; tries++) {
      const at = await mountOf(options.folder);
      const next = await readState(options);
      if ((await mountOf(options.folder)) !== at && tries < MOST_TRIES) continue;
      const changed = options.secrets.map(({ name }) => name).filter((name) => differs(state, next, name));
      state = next;
      mount = at;
      if (changed.length > 0) options.onChange(changed);
      return changed.length > 0;
    }
  }
  const look = (): Promise<boolean> => {
    looking ??= readAll().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  await look();
  const timer = setInterval(() => void look().catch(() => {}), options.pollMs ?? POLL_MS);
  timer.unref();
  return { current: () => state, look, close: () => clearInterval(timer) };
}

async function mountOf(folder: string): Promise<string | undefined> {
  return realpath(join(folder, '..data')).catch(() => undefined);
}

async function readState({ folder, secrets, isBound }: SecretFilesOptions): Promise<SecretState> {
  const values = new Map<string, Secret>();
  const problems: { name: string; problem: SecretProblem }[] = [];
  for (const { name, file } of secrets) {
    const bytes = isPlain(file) ? await readLimited(join(folder, file)) : undefined;
    const reading: SecretReading = isBound(name) ? readBoundValue(bytes) : readEnvironmentValue(bytes);
    if (reading.kind === 'value') values.set(name, reading.secret);
    else problems.push({ name, problem: reading.problem });
  }
  return { values, problems };
}

/** A file below the folder, named without detours. */
function isPlain(file: string): boolean {
  return file !== '' && !file.startsWith('/') && !file.startsWith('..') && normalize(file) === file;
}

/** One byte above the limit is enough to see that it is too large. */
async function readLimited(path: string): Promise<Buffer | undefined> {
  try {
    await using handle = await open(path, 'r');
    const buffer = Buffer.alloc(LONGEST_ENVIRONMENT_VALUE + 1);
    let length = 0;
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return buffer.subarray(0, length);
  } catch {
    return undefined;
  }
}

function differs(before: SecretState, after: SecretState, name: string): boolean {
  const problemOf = (state: SecretState) => state.problems.find((each) => each.name === name)?.problem;
  return (
    before.values.get(name)?.reveal() !== after.values.get(name)?.reveal() || problemOf(before) !== problemOf(after)
  );
}
