/**
 * All tests, in order of cost; each tier runs only when the ones before it passed. Ends with the line `N passed, N failed`.
 *
 *   hack/test            everything: checks, tests without a cluster, stories on a real two-node cluster
 *   hack/test --quick    without the cluster
 *   hack/test --keep     leaves the cluster running afterwards
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

const root = new URL('..', import.meta.url).pathname;
const { values: options } = parseArgs({
  options: { quick: { type: 'boolean', default: false }, keep: { type: 'boolean', default: false } },
});

interface Counts {
  passed: number;
  failed: number;
  skipped: number;
}

const total: Counts = { passed: 0, failed: 0, skipped: 0 };
const reports = mkdtempSync(join(tmpdir(), 'oz0-test-'));

function run(program: string, args: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { cwd: root, stdio: 'inherit' });
    child.on('error', (error) => {
      console.error(`${program}: ${error.message}`);
      resolve(false);
    });
    child.on('exit', (code) => resolve(code === 0));
  });
}

/** A step that is one test: it passed or it failed. */
async function step(name: string, program: string, ...args: string[]): Promise<void> {
  console.log(`\n── ${name}`);
  if (await run(program, args)) total.passed += 1;
  else {
    total.failed += 1;
    console.error(`FAIL ${name}`);
    await finish();
  }
}

/** A tier of the runner: its own counts are added up. */
async function tier(name: string, ...projects: string[]): Promise<void> {
  console.log(`\n── ${name}`);
  const report = join(reports, `${projects.join('-')}.json`);
  const ok = await run('vitest', [
    'run',
    ...projects.flatMap((project) => ['--project', project]),
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
  ]);
  const counts = readCounts(report);
  total.passed += counts.passed;
  // A run that fails outside any test (a hook, an unhandled error) still failed.
  total.failed += ok ? counts.failed : Math.max(1, counts.failed);
  total.skipped += counts.skipped;
  if (!ok) await finish();
}

function readCounts(report: string): Counts {
  try {
    const { numPassedTests, numFailedTests, numPendingTests } = JSON.parse(readFileSync(report, 'utf8'));
    return { passed: numPassedTests, failed: numFailedTests, skipped: numPendingTests };
  } catch {
    return { passed: 0, failed: 0, skipped: 0 };
  }
}

async function finish(): Promise<never> {
  rmSync(reports, { recursive: true, force: true });
  if (!options.quick && !options.keep) {
    console.log('\n── cluster down');
    if (!(await run('node', ['hack/cluster.ts', 'down']))) total.failed += 1;
  }
  console.log(`\n${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  process.exit(total.failed === 0 ? 0 : 1);
}

await step('formatting, lint, types, generated files', 'node', 'hack/check.ts');
await step('build', 'node', 'hack/build.ts');
await step('launcher', 'go', '-C', 'src/launcher', 'test', './...');
await tier('tests without a cluster', 'unit', 'simulation', 'integration');
if (!options.quick) {
  await step('cluster up', 'node', 'hack/cluster.ts', 'up');
  await tier('stories on the cluster', 'cluster');
}
await finish();
