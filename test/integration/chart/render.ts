/** The chart, as Helm renders it. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { program } from '../../../hack/cluster/programs.ts';

export const chart = join(import.meta.dirname, '..', '..', '..', 'charts', 'oz0-operator');
export const NAMESPACE = 'oz0-system';

/** The cluster's own Helm where it was built, else the machine's; undefined where there is none. */
export const helm: string | undefined = [program('helm'), 'helm'].find((path) =>
  path.includes('/') ? existsSync(path) : spawnSync(path, ['version']).status === 0,
);

// biome-ignore lint/suspicious/noExplicitAny: objects of many kinds, looked into by tests only
export type Rendered = any;

export function runHelm(...args: string[]): { ok: boolean; output: string } {
  if (helm === undefined) throw new Error('no helm');
  const { status, stdout, stderr } = spawnSync(helm, args, { encoding: 'utf8', timeout: 30_000 });
  return { ok: status === 0, output: status === 0 ? stdout : `${stdout}${stderr}` };
}

/** Without a cluster, so without what Helm would look up there. @throws what Helm says against it */
export function render(...settings: string[]): Rendered[] {
  const { ok, output } = runHelm('template', 'oz0', chart, '--namespace', NAMESPACE, ...settings);
  if (!ok) throw new Error(output);
  return parseAllDocuments(output).flatMap((document): Rendered[] => {
    const object: unknown = document.toJS();
    return object === null || object === undefined ? [] : [object];
  });
}

export const ofKind = (objects: readonly Rendered[], kind: string): Rendered[] =>
  objects.filter((one) => one.kind === kind);

export function named(objects: readonly Rendered[], kind: string, name: string): Rendered {
  const found = objects.find((one) => one.kind === kind && one.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found;
}

/** A component's workload. */
export const workload = (objects: readonly Rendered[], component: string): Rendered =>
  named(objects, component === 'gateway' ? 'DaemonSet' : 'Deployment', `oz0-${component}`);
