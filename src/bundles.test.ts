import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';
import { describe, expect, test } from 'vitest';

async function packagesIn(entry: string): Promise<Set<string>> {
  const { metafile } = await build({
    entryPoints: [entry],
    bundle: true,
    write: false,
    metafile: true,
    platform: 'node',
    format: 'esm',
    outdir: 'out',
    logLevel: 'silent',
  });
  return new Set(
    Object.keys(metafile.inputs).flatMap((path) => {
      const name = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
      return name === undefined ? [] : [name];
    }),
  );
}

const SIDECAR = join(import.meta.dirname, 'sidecar/main.ts');

describe('bundles', () => {
  test.skipIf(!existsSync(SIDECAR))(
    "[D04] the sidecar's holds neither Kubernetes client nor schema nor log library",
    async () => {
      const packages = await packagesIn(SIDECAR);
      for (const refused of [
        '@kubernetes/client-node',
        'zod',
        'pino',
        'prom-client',
        'yaml',
        '@modelcontextprotocol/core',
      ]) {
        expect(packages).not.toContain(refused);
      }
    },
  );

  test('the check sees what it should refuse', async () => {
    expect(await packagesIn(join(import.meta.dirname, 'runtime/log.ts'))).toContain('pino');
  });
});
