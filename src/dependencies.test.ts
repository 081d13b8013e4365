import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const manifest: { dependencies: Record<string, string>; devDependencies: Record<string, string> } = JSON.parse(
  readFileSync(join(ROOT, 'package.json'), 'utf8'),
);

const code = ['src', 'hack']
  .flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map((name) => join(ROOT, folder, name)),
  )
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.includes('node_modules'))
  .map((path) => readFileSync(path, 'utf8'))
  .join('\n');

describe('dependencies', () => {
  test.each(Object.keys(manifest.dependencies))(
    '[D01] %s is imported by the code itself, not by tests alone',
    (name) => {
      expect(code).toMatch(new RegExp(`from '${name}(/[^']*)?'`));
    },
  );

  test('[D01] what the project is said to stand on is there', () => {
    expect(Object.keys({ ...manifest.dependencies, ...manifest.devDependencies })).toEqual(
      expect.arrayContaining([
        '@kubernetes/client-node',
        '@modelcontextprotocol/core',
        'zod',
        'yaml',
        'pino',
        'undici',
        'vitest',
      ]),
    );
  });

  test('every version is pinned', () => {
    for (const version of Object.values({ ...manifest.dependencies, ...manifest.devDependencies })) {
      expect(version).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
    }
  });
});
