/**
 * Builds into dist/ what the operator's image holds: `operator.mjs` (controller, gateway, egress, edge), `sidecar.mjs`
 * (a bundle of its own, without the Kubernetes client, schema and log libraries) and the static `launcher`; and the
 * command line for people, `oz0.mjs`.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { build } from 'esbuild';

const root = new URL('..', import.meta.url).pathname;
const dist = `${root}dist`;
mkdirSync(dist, { recursive: true });

// CommonJS dependencies bundled into ESM still call require() for Node's own modules.
const banner = {
  js: "import { createRequire as oz0CreateRequire } from 'node:module'; const require = oz0CreateRequire(import.meta.url);",
};

const ENTRIES = { operator: 'main.ts', sidecar: 'sidecar/main.ts', oz0: 'cli/main.ts' };

for (const [name, file] of Object.entries(ENTRIES)) {
  const entry = `${root}src/${file}`;
  const result = await build({
    entryPoints: [entry],
    outfile: `${dist}/${name}.mjs`,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    minify: false,
    sourcemap: false,
    legalComments: 'none',
    metafile: true,
    banner,
    logLevel: 'warning',
  });
  writeFileSync(`${dist}/${name}.meta.json`, JSON.stringify(result.metafile));
}

if (existsSync(`${root}src/launcher/go.mod`)) {
  execFileSync('go', ['build', '-trimpath', '-buildvcs=false', '-ldflags=-s -w', '-o', `${dist}/launcher`, '.'], {
    cwd: `${root}src/launcher`,
    env: { ...process.env, CGO_ENABLED: '0' },
    stdio: 'inherit',
  });
}
