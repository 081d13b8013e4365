/** Waiting calls and unknown outcomes: shown, decided and answered by a person. */

import type { KubeObject } from '../engine/contract.ts';
import { at, textAt } from '../reconcilers/live.ts';
import type { Cluster } from './cluster.ts';
import { UsageFailure } from './failure.ts';
import { plain, table } from './output.ts';

const OPEN: ReadonlySet<string> = new Set(['Waiting', 'Sending', 'Unknown']);
const ARGUMENTS_SHOWN = 4_000;

/** A call that nobody has said anything of yet waits, or is just being sent. */
function phaseOf(call: KubeObject): string {
  return textAt(call, 'status', 'phase') ?? (at(call, 'spec', 'sender') === undefined ? 'Waiting' : 'Sending');
}

function functionOf(call: KubeObject): string {
  return `${textAt(call, 'spec', 'tool') ?? '?'}.${textAt(call, 'spec', 'function') ?? '?'}`;
}

export async function listCalls(cluster: Cluster, all: boolean): Promise<string> {
  const calls = (await cluster.list('ToolCall'))
    .filter((call) => all || OPEN.has(phaseOf(call)))
    .sort((a, b) => (a.metadata.creationTimestamp ?? '').localeCompare(b.metadata.creationTimestamp ?? ''));
  if (calls.length === 0) {
    return `No call in ${cluster.namespace} waits for a person${all ? ', and none is on record' : ''}.`;
  }
  const rows = calls.map((call) => [
    call.metadata.name,
    phaseOf(call),
    functionOf(call),
    textAt(call, 'spec', 'agent') ?? '',
    argumentsOf(call, 60),
  ]);
  return table(['NAME', 'PHASE', 'FUNCTION', 'AGENT', 'ARGUMENTS'], rows);
}

function argumentsOf(call: KubeObject, most: number): string {
  const given = at(call, 'spec', 'arguments');
  if (given === undefined) return '';
  const text = plain(JSON.stringify(given));
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

/** Shows what is decided, decides it, and says what that means. */
export async function decideCall(
  cluster: Cluster,
  name: string,
  verdict: 'approve' | 'deny',
  note: string | undefined,
): Promise<string> {
  const call = await cluster.get('ToolCall', name);
  const phase = phaseOf(call);
  if (phase !== 'Waiting') throw new UsageFailure(`${name} does not wait for a decision: it is ${phase}.`);
  const by = await cluster.whoAmI();
  const decision = { verdict, by, uid: call.metadata.uid, ...(note === undefined ? {} : { note }) };
  await cluster.replace('ToolCall', withSpec(call, { decision }));
  const what = `${functionOf(call)} ${argumentsOf(call, ARGUMENTS_SHOWN)}`;
  return verdict === 'approve'
    ? `Approved, as ${by}: ${what}\nIt runs once, exactly so. \`kubectl get toolcall ${name} -n ${cluster.namespace} -w\` shows how it ends.`
    : `Denied, as ${by}: ${what}\nIt never runs.`;
}

const SAID = {
  happened: 'The agent is told that it was done.',
  runAgain: 'It runs again with the key of the first time, so that a server which keeps its keys does not do it twice.',
  stop: 'It is left as it is, and the agent is told so.',
} as const;

export async function answerCall(cluster: Cluster, name: string, outcome: keyof typeof SAID): Promise<string> {
  const call = await cluster.get('ToolCall', name);
  const phase = phaseOf(call);
  if (phase !== 'Unknown') throw new UsageFailure(`The outcome of ${name} is not unknown: it is ${phase}.`);
  const by = await cluster.whoAmI();
  await cluster.replace('ToolCall', withSpec(call, { answer: { outcome, by, uid: call.metadata.uid } }));
  return `Answered, as ${by}: ${functionOf(call)}. ${SAID[outcome]}`;
}

function withSpec(call: KubeObject, more: Readonly<Record<string, unknown>>): KubeObject {
  const spec = at(call, 'spec');
  return { ...call, spec: { ...(typeof spec === 'object' ? spec : {}), ...more } };
}
