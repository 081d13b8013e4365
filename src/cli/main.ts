#!/usr/bin/env node
/**
 * `oz0`, also `kubectl oz0`: what people do with waiting calls, unknown outcomes, changed listings and policies. Uses the caller's own
 * kubeconfig and rights; proves nothing itself, since the API server judges what it sends.
 */
import { Command, CommanderError, InvalidArgumentError } from 'commander';
import { answerCall, decideCall, listCalls } from './calls.ts';
import { type Cluster, openCluster } from './cluster.ts';
import { UsageFailure, wordsOf } from './failure.ts';
import { explain, readObjects } from './policies.ts';
import { approveSnapshot, showDifference } from './snapshots.ts';

interface ClusterOptions {
  readonly namespace?: string;
  readonly kubeconfig?: string;
}

const program = new Command('oz0')
  .description(
    'Decide waiting calls, answer unknown outcomes, approve changed listings, explain policies. Also runs as `kubectl oz0`.',
  )
  .option('-n, --namespace <name>', 'namespace; unset: of the kubeconfig’s context')
  .option('--kubeconfig <path>', 'unset: $KUBECONFIG, else ~/.kube/config')
  .showHelpAfterError('(--help shows how)')
  .exitOverride();

/** Runs one command over the cluster, and closes the connection whatever comes of it. */
async function withCluster(use: (cluster: Cluster) => Promise<string>): Promise<void> {
  const cluster = openCluster(program.opts<ClusterOptions>());
  try {
    process.stdout.write(`${await use(cluster)}\n`);
  } finally {
    await cluster.close();
  }
}

program
  .command('calls')
  .description('calls that wait for a person or run, and outcomes that nobody knows')
  .option('--all', 'those that ended, too', false)
  .action(({ all }: { all: boolean }) => withCluster((cluster) => listCalls(cluster, all)));

for (const verdict of ['approve', 'deny'] as const) {
  program
    .command(verdict)
    .description(verdict === 'approve' ? 'let a waiting call run, once, as it is' : 'refuse a waiting call')
    .argument('<call>', 'name of the ToolCall, as `oz0 calls` shows it')
    .option('--note <text>', 'kept with the decision')
    .action((call: string, { note }: { note?: string }) =>
      withCluster((cluster) => decideCall(cluster, call, verdict, note)),
    );
}

const ANSWERS = { happened: 'happened', 'run-again': 'runAgain', stop: 'stop' } as const;
const ANSWERS_HELP =
  'happened: it was done; run-again: it was not, make it again with the key of the first time; stop: leave it, and tell the agent so';

program
  .command('answer')
  .description('say what became of a call whose outcome is unknown, after looking at the system that it writes to')
  .argument('<call>', 'name of the ToolCall')
  .argument('<outcome>', ANSWERS_HELP, (text: string) => {
    if (text in ANSWERS) return ANSWERS[text as keyof typeof ANSWERS];
    throw new InvalidArgumentError(`one of ${Object.keys(ANSWERS).join(', ')}`);
  })
  .action((call: string, outcome: (typeof ANSWERS)[keyof typeof ANSWERS]) =>
    withCluster((cluster) => answerCall(cluster, call, outcome)),
  );

const snapshot = program.command('snapshot').description('what a tool’s server says of itself, and what was approved');
snapshot
  .command('diff')
  .description('what changed in a tool’s listing since it was approved')
  .argument('<tool>', 'name of the Tool')
  .action((tool: string) => withCluster((cluster) => showDifference(cluster, tool)));
snapshot
  .command('approve')
  .description('approve the listing that waits, by its hash')
  .argument('<tool>', 'name of the Tool')
  .argument(
    '[hash]',
    'sha256:…, as `oz0 snapshot diff` shows it: what you have read, not what may be there by now. Without it nothing is approved, and the one that waits is named',
  )
  .option('--note <text>', 'kept with the approval')
  .action((tool: string, hash: string | undefined, { note }: { note?: string }) =>
    withCluster((cluster) => approveSnapshot(cluster, tool, hash, note)),
  );

program
  .command('policy')
  .description('what policies say of calls')
  .command('explain')
  .description(
    'why a call would run, wait for a person or be refused, as the first ServiceAccount of the Agent. Reads ClusterToolPolicies too, which takes a right of the whole cluster',
  )
  .argument('<agent>', 'name of the Agent')
  .argument('<function>', '<tool id>.<function>')
  .option('--args <json>', 'arguments of the call', '{}')
  .option('--label <label...>', 'labels that the job carries, such as outside')
  .option('--started-by <user>', 'who started the job, taken as proved')
  .option(
    '-f, --filename <path...>',
    'files with Agents, Tools and policies, instead of the cluster’s; namespace `default` unless -n says another',
  )
  .action(
    async (
      agent: string,
      name: string,
      options: { args: string; label?: string[]; startedBy?: string; filename?: string[] },
    ) => {
      const call = { agent, name, ...options };
      if (options.filename === undefined) return await withCluster((cluster) => explain(cluster, call));
      const { namespace = 'default' } = program.opts<ClusterOptions>();
      process.stdout.write(`${await explain(await readObjects(options.filename, namespace), call)}\n`);
    },
  );

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // It has said what was wrong already; help is no failure.
    process.exitCode = error.exitCode === 0 ? 0 : 64;
  } else {
    process.stderr.write(`oz0: ${wordsOf(error)}\n`);
    process.exitCode = error instanceof UsageFailure ? 64 : 1;
  }
}
