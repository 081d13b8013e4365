/** Entry of the operator's bundle: one subcommand for each process. The processes never import each other. */
import { type Running, runProcess, type Shell } from './runtime/process.ts';

const PROCESSES: Readonly<Record<string, () => Promise<{ start: (shell: Shell) => Promise<Running> }>>> = {
  controller: () => import('./controller/main.ts'),
  gateway: () => import('./gateway/main.ts'),
  egress: () => import('./egress/main.ts'),
  edge: () => import('./edge/main.ts'),
};

const USAGE = `usage: operator <process>

  controller   turns Plugins, Tools and Agents into sandboxed tool pods; one leader among its replicas
  gateway      takes agents' calls, decides them and sends them to tool pods; one on each node
  egress       the tool pods' one way out
  edge         signs the identities of tool pods and of the other processes

Settings are environment variables, set by the Helm chart.
`;

const [name = '--help', ...rest] = process.argv.slice(2);
const load = Object.hasOwn(PROCESSES, name) ? PROCESSES[name] : undefined;
if (name === '--help' || name === 'help') {
  process.stdout.write(USAGE);
} else if (!load || rest.length > 0) {
  process.stderr.write(`${load ? `${name} takes no arguments` : `no process named ${name}`}\n\n${USAGE}`);
  process.exit(64);
} else {
  const { start } = await load();
  await runProcess(name, start);
}
