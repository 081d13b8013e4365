import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';

const SRC = import.meta.dirname;

/** The table "What may import what" of README.md: folder → what it may import of ours and from outside. */
function readTable(): Map<string, { ours: string[]; outside: string[] }> {
  const section =
    readFileSync(join(SRC, 'README.md'), 'utf8').split('## What may import what')[1]?.split('\n## ')[0] ?? '';
  const table = new Map<string, { ours: string[]; outside: string[] }>();
  for (const line of section.split('\n')) {
    const cells = line.split('|').map((cell) => cell.trim());
    if (cells.length !== 5 || cells[1] === 'folder' || cells[1]?.startsWith('---')) continue;
    const list = (cell = '') => (cell === '–' ? [] : cell.split(',').map((name) => name.trim()));
    for (const folder of list(cells[1])) table.set(folder, { ours: list(cells[2]), outside: list(cells[3]) });
  }
  return table;
}

function sources(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return sources(path);
    return entry.name.endsWith('.ts') && !entry.name.endsWith('.test.ts') ? [path] : [];
  });
}

/** Each import of a source file, also re-exports and dynamic ones; `typeOnly` where it vanishes at run time. */
function importsOf(text: string): { target: string; typeOnly: boolean }[] {
  const found: { target: string; typeOnly: boolean }[] = [];
  for (const [, keyword = '', target = ''] of text.matchAll(
    /^(?:import|export)\s+(type\s)?[^'";]*?from\s+'([^']+)'/gm,
  )) {
    found.push({ target, typeOnly: keyword !== '' });
  }
  for (const [, target = ''] of text.matchAll(/^import\s+'([^']+)'/gm)) found.push({ target, typeOnly: false });
  for (const [, target = ''] of text.matchAll(/\bimport\('([^']+)'\)/g)) found.push({ target, typeOnly: false });
  return found;
}

const table = readTable();

function verdict(file: string, target: string, typeOnly: boolean): string | undefined {
  const folder = relative(SRC, file).split('/')[0] ?? '';
  const rule = table.get(folder);
  if (!rule) return `the folder ${folder} is not in the table`;
  if (target.startsWith('.')) {
    const to = relative(SRC, resolve(dirname(file), target)).split('/')[0] ?? '';
    return to === folder || rule.ours.includes(to) ? undefined : `${folder} may not import ${to}`;
  }
  if (typeOnly && target.startsWith('node:')) return undefined;
  const allowed = rule.outside.some((name) =>
    name === 'node:*' ? target.startsWith('node:') : target === name || target.startsWith(`${name}/`),
  );
  return allowed ? undefined : `${folder} may not import ${target}`;
}

describe('what may import what', () => {
  const files = sources(SRC).filter((file) => relative(SRC, file) !== 'main.ts');

  test('every import is in the table of README.md [I8]', () => {
    const offences = files.flatMap((file) =>
      importsOf(readFileSync(file, 'utf8')).flatMap(({ target, typeOnly }) => {
        const problem = verdict(file, target, typeOnly);
        return problem === undefined ? [] : [`${relative(SRC, file)}: ${problem}`];
      }),
    );
    expect(offences).toEqual([]);
  });

  test('the check sees what it should refuse', () => {
    expect(
      importsOf("import { a } from 'x';\nexport * from './y.ts';\nimport type { B } from 'z';\nawait import('w')"),
    ).toEqual([
      { target: 'x', typeOnly: false },
      { target: './y.ts', typeOnly: false },
      { target: 'z', typeOnly: true },
      { target: 'w', typeOnly: false },
    ]);
    expect(verdict(join(SRC, 'domain/a.ts'), '../kube/b.ts', true)).toBe('domain may not import kube');
    expect(verdict(join(SRC, 'sidecar/a.ts'), 'pino', false)).toBe('sidecar may not import pino');
    expect(verdict(join(SRC, 'gateway/a.ts'), '../controller/b.ts', false)).toBe('gateway may not import controller');
    expect(verdict(join(SRC, 'gateway/a.ts'), 'node:http', false)).toBeUndefined();
  });

  const PURE = ['domain', 'reconcilers'];
  const IMPURE = /\b(Date\.now|new Date\(\)|performance\.now|Math\.random|randomUUID|randomBytes|process\.|console\.)/;
  test('pure folders read no clock, randomness, environment or console [I8]', () => {
    const offences = files
      .filter((file) => PURE.includes(relative(SRC, file).split('/')[0] ?? ''))
      .flatMap((file) => {
        const code = readFileSync(file, 'utf8').replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '');
        const match = IMPURE.exec(code);
        return match ? [`${relative(SRC, file)}: ${match[0]}`] : [];
      });
    expect(offences).toEqual([]);
  });
});
