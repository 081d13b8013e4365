/** Tier 0, in seconds: formatting and lint, types, and that what is generated is fresh. Runs all, then fails if any failed. */
import { spawnSync } from 'node:child_process';

const checks: { name: string; command: string[] }[] = [
  { name: 'format and lint', command: ['biome', 'check', '--error-on-warnings', '.'] },
  { name: 'types', command: ['tsc', '--noEmit'] },
  { name: 'generated files are fresh', command: ['node', 'src/api/generate.ts', '--check'] },
];

const failed = checks.filter(({ name, command: [program = '', ...args] }) => {
  const started = Date.now();
  const { status } = spawnSync(program, args, { stdio: 'inherit' });
  console.log(`${status === 0 ? 'ok  ' : 'FAIL'} ${name} (${((Date.now() - started) / 1000).toFixed(1)} s)`);
  return status !== 0;
});
process.exit(failed.length === 0 ? 0 : 1);
