/** Why a call would run, wait or be refused: judged by the very code that the gateway runs. */
import { readFile } from 'node:fs/promises';
import { parseAllDocuments } from 'yaml';
import { agent as agentKind } from '../api/agent.ts';
import { readStored } from '../api/judge.ts';
import { tool as toolKind } from '../api/tool.ts';
import { compilePolicy } from '../domain/policy/compilePolicy.ts';
import { explainPolicy } from '../domain/policy/explainPolicy.ts';
import { functionPolicy } from '../domain/policy/functionPolicy.ts';
import { effectiveHints } from '../domain/policy/hints.ts';
import type { KubeObject } from '../engine/contract.ts';
import { at, isRecord, recordsAt } from '../reconcilers/live.ts';
import type { Cluster, Kind } from './cluster.ts';
import { UsageFailure } from './failure.ts';

export type Objects = Pick<Cluster, 'namespace' | 'list'>;

export interface ExplainedCall {
  readonly agent: string;
  /** `<tool id>.<function>`. */
  readonly name: string;
  /** JSON. */
  readonly args: string;
  readonly label?: readonly string[];
  readonly startedBy?: string;
}

const FILE_MAX_BYTES = 4 * 1024 * 1024;

/** The objects of YAML or JSON files, as if they were all there is. */
export async function readObjects(files: readonly string[], namespace: string): Promise<Objects> {
  const objects: KubeObject[] = [];
  for (const file of files) {
    const text = await readFile(file, 'utf8');
    if (text.length > FILE_MAX_BYTES) throw new UsageFailure(`${file} is larger than ${FILE_MAX_BYTES} bytes.`);
    for (const document of parseAllDocuments(text)) {
      const [problem] = document.errors;
      if (problem !== undefined) throw new UsageFailure(`${file}: ${problem.message}`);
      const object: unknown = document.toJS();
      if (object === null) continue;
      if (!isRecord(object) || typeof object['kind'] !== 'string')
        throw new UsageFailure(`${file} holds what is no object.`);
      objects.push(object as unknown as KubeObject);
    }
  }
  return {
    namespace,
    list: async (kind: Kind) =>
      objects.filter(
        (object) =>
          object.kind === kind &&
          (kind === 'ClusterToolPolicy' || (object.metadata.namespace ?? namespace) === namespace),
      ),
  };
}

export async function explain(objects: Objects, call: ExplainedCall): Promise<string> {
  const [toolId, ...rest] = call.name.split('.');
  const functionName = rest.join('.');
  if (toolId === undefined || functionName === '')
    throw new UsageFailure('Write the function as <tool id>.<function>.');
  const args = argumentsOf(call.args);
  const agent = await agentOf(objects, call.agent);
  if (!isGranted(agent.spec.tools ?? [], toolId, functionName)) {
    return `It does not exist for ${call.agent}: its grants are ${(agent.spec.tools ?? []).join(', ') || 'none'}.`;
  }
  const hints = await hintsOf(objects, toolId, functionName);
  const [ours, theirs] = await Promise.all([objects.list('ToolPolicy'), objects.list('ClusterToolPolicy')]);
  const policy = functionPolicy({
    tool: toolId,
    function: functionName,
    kind: hints.kind,
    openWorld: hints.openWorld,
    namespacePolicies: ours.map((object) => compilePolicy('ToolPolicy', object)),
    clusterPolicies: theirs.map((object) => compilePolicy('ClusterToolPolicy', object)),
  });
  const lines = explainPolicy(policy, {
    args,
    agent: { name: call.agent, namespace: objects.namespace, serviceAccount: agent.spec.serviceAccounts[0] ?? '' },
    shadow: agent.spec.shadow,
    job: call.startedBy === undefined ? { proved: false } : { startedBy: call.startedBy, proved: true },
    labels: call.label ?? [],
  });
  return [...hints.notes, ...lines].join('\n');
}

function argumentsOf(text: string): Record<string, unknown> {
  try {
    const args: unknown = JSON.parse(text);
    if (isRecord(args)) return args;
  } catch {
    // Said below.
  }
  throw new UsageFailure('--args must be a JSON object, such as \'{"force": true}\'.');
}

async function agentOf(objects: Objects, name: string) {
  const raw = (await objects.list('Agent')).find(({ metadata }) => metadata.name === name);
  if (raw === undefined) throw new UsageFailure(`There is no Agent ${name} in ${objects.namespace}.`);
  const read = readStored(agentKind.schema, raw);
  if (!read.ok)
    throw new UsageFailure(`Agent ${name} cannot be read: ${read.problems[0]?.field} ${read.problems[0]?.message}`);
  return read.value;
}

function isGranted(grants: readonly string[], toolId: string, functionName: string): boolean {
  return grants.includes(`${toolId}.*`) || grants.includes(`${toolId}.${functionName}`);
}

/** By what the tool was last seen to list, and what its object says beyond that. */
async function hintsOf(objects: Objects, toolId: string, functionName: string) {
  const raw = (await objects.list('Tool')).find(({ metadata }) => metadata.name.replaceAll('-', '_') === toolId);
  const read = raw === undefined ? undefined : readStored(toolKind.schema, raw);
  const override = read?.ok ? read.value.spec.functions?.[functionName]?.annotations : undefined;
  const listed = recordsAt(raw, 'status', 'listing', 'functions').find(({ name }) => name === functionName);
  const notes = [
    ...(raw === undefined ? [`There is no Tool of the id ${toolId}: it is taken for undeclared.`] : []),
    ...(raw !== undefined && listed === undefined
      ? [`The Tool was not seen to list ${functionName}: by its overrides alone.`]
      : []),
  ];
  return {
    ...effectiveHints({ annotations: ANNOTATIONS[String(at(listed, 'kind'))], override, annotationsCount: true }),
    notes,
  };
}

/** Of the kinds that status shows; whether a function reaches outside it does not, so that is taken for granted. */
const ANNOTATIONS: Readonly<Record<string, object>> = {
  ReadOnly: { readOnlyHint: true },
  Additive: { destructiveHint: false },
  Destructive: { destructiveHint: true },
};
