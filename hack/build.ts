/**
 * Builds what the operator's image holds, into dist/: `operator.mjs` (controller, gateway, egress, edge), `sidecar.mjs`
 * (a bundle of its own, without the Kubernetes client, schema and log libraries) and the static `launcher`.
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

for (const name of ['operator', 'sidecar']) {
  const entry = name === 'operator' ? `${root}src/main.ts` : `${root}src/sidecar/main.ts`;
  if (!existsSync(entry)) continue;
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
