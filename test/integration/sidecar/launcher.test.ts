/** The launcher's own tests, which are Go's: framing, exits, signals, orphans, what a tool can see. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';

test('[S02] [S08] [case 78] the launcher', { timeout: 180_000 }, async () => {
  const cwd = join(import.meta.dirname, '../../../src/launcher');
  const { stdout } = await promisify(execFile)('go', ['test', './...'], { cwd }).catch((error) => error);
  expect(stdout).toMatch(/^ok/);
});
