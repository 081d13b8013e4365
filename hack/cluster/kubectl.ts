/** The cluster's own kubectl, with its kubeconfig. */
import { run } from '../shell/command.ts';
import { kubeconfig } from './layout.ts';
import { program } from './programs.ts';

export async function kubectl(args: readonly string[], input?: string): Promise<string> {
  return await run(program('kubectl'), [`--kubeconfig=${kubeconfig}`, '--request-timeout=5s', ...args], {
    timeoutSeconds: 20,
    ...(input === undefined ? {} : { input }),
  });
}

export async function kubectlJson<T>(args: readonly string[]): Promise<T> {
  return JSON.parse(await kubectl([...args, '--output=json'])) as T;
}
