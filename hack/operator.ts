/** Puts the operator, as it is in this checkout, onto the running cluster: built, loaded, installed or upgraded with Helm. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { kubeconfig } from './cluster/layout.ts';
import { program } from './cluster/programs.ts';
import { pinnedReference } from './images/build.ts';
import { run } from './shell/command.ts';
import { Failure } from './shell/failure.ts';
import { step } from './shell/steps.ts';

export const operatorNamespace = 'oz0-system';
export const release = 'oz0';

const root = join(import.meta.dirname, '..');
const chart = join(root, 'charts/oz0-operator');
const localValues = join(root, 'config/overlays/local/values.yaml');

/** Runs one of the project's own scripts to its end; its progress is shown as it comes. */
export function script(name: string, ...args: string[]): Promise<void> {
  return new Promise((resolve, reject) => {
    // It shares our terminal, and so gets Ctrl-C itself and cleans up by itself.
    const child = spawn('node', [join(root, 'hack', name), ...args], {
      cwd: root,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Failure(`hack/${name} ${args.join(' ')} ended with ${code ?? signal}`));
    });
  });
}

/** Installs or upgrades; returns when every part is ready. A changed build is a changed tag, so that pods are rolled. */
export async function installOperator(...settings: string[]): Promise<void> {
  await script('images.ts', 'load', 'operator');
  const [repository = '', tag = ''] = (await pinnedReference('operator')).split(':');
  await step('install the operator with Helm', () =>
    run(
      program('helm'),
      [
        ...['upgrade', '--install', release, chart, '--namespace', operatorNamespace, '--create-namespace'],
        ...['--kubeconfig', kubeconfig, '--wait', '--timeout', '4m', '--values', localValues],
        ...['--set', `image.repository=${repository},image.tag=${tag}`, ...settings],
      ],
      { timeoutSeconds: 300, hint: `kubectl get pods -n ${operatorNamespace}, and their logs, say why` },
    ),
  );
}
