/** Connection: makes nothing; Tools read it, and mount and bind what it says. It tells whether they could, and whether their pods have it. */
import { toolName } from '../../domain/naming.ts';
import type { Fact, KubeObject, Reconciler } from '../../engine/contract.ts';
import { fails, holds, nameSome, pending, stalls } from '../facts.ts';
import { at, recordsAt, textAt } from '../live.ts';
import { CONNECTION, TOOL } from '../resources.ts';
import { reasonOf } from '../tool/connected.ts';
import { connectionVariable, credentialsOf, describeTroubles, unreachable } from '../tool/credentials.ts';
import { parseTool } from '../tool/tool.ts';
import { parseConnection, type StoredConnection } from './connection.ts';
import { ACCEPTED, BINDING_TAKEN, CONNECTED, CONNECTING, NOT_ACCEPTED, UNKNOWN_TOOL } from './reasons.ts';

export const connectionReconciler: Reconciler<StoredConnection> = {
  resource: CONNECTION,
  parse: parseConnection,
  owns: [],
  reads: {
    tools: { resource: TOOL, select: ({ metadata }) => ({ namespace: metadata.namespace ?? '' }) },
    connections: { resource: CONNECTION, select: ({ metadata }) => ({ namespace: metadata.namespace ?? '' }) },
  },
  sensors: [],
  conditions: ['Accepted', 'Connected'],
  reconcile: ({ parent, reads }) => {
    const uses = parent.spec.tools.map((id) => useOf(parent, id, reads['tools'] ?? [], reads['connections'] ?? []));
    return { do: 'converge', children: [], facts: { conditions: [accepted(uses), connected(parent, uses)] } };
  },
};

/** What one tool makes of it. */
interface Use {
  readonly id: string;
  readonly tool: KubeObject | undefined;
  readonly refused: string | undefined;
  readonly outOfReach: readonly string[];
}

function useOf(
  { metadata }: StoredConnection,
  id: string,
  tools: readonly KubeObject[],
  connections: readonly KubeObject[],
): Use {
  const tool = tools.find((candidate) => candidate.metadata.name === toolName(id));
  const parsed = tool && parseTool(tool);
  if (!parsed?.ok) return { id, tool, refused: undefined, outOfReach: [] };
  const { bindings, refused } = credentialsOf(parsed.value, connections);
  const own = bindings.filter(({ secret }) => secret === connectionVariable(metadata.name));
  return { id, tool, refused: refused.get(metadata.name), outOfReach: unreachable(parsed.value, own) };
}

function accepted(uses: readonly Use[]): Fact {
  const refused = uses.filter((use) => use.refused !== undefined).map((use) => `for ${use.id}, ${use.refused}`);
  if (refused.length > 0) return stalls('Accepted', BINDING_TAKEN, `Not used: ${nameSome(refused)}.`);
  const missing = uses.filter(({ tool }) => tool === undefined).map(({ id }) => id);
  if (missing.length > 0) {
    return fails('Accepted', UNKNOWN_TOOL, `There is no tool ${nameSome(missing)} in this namespace.`);
  }
  const far = uses.flatMap(({ id, outOfReach }) => outOfReach.map((host) => `${host} (${id})`));
  return holds(
    'Accepted',
    ACCEPTED,
    far.length > 0 ? `Hosts that the tools' own hosts do not name: ${nameSome(far)}.` : '',
  );
}

function connected({ metadata, spec }: StoredConnection, uses: readonly Use[]): Fact {
  const own = { secret: spec.secret.secretRef.name, key: spec.secret.key };
  const using = uses.filter(({ tool, refused }) => tool !== undefined && refused === undefined);
  if (using.length === 0) return pending('Connected', NOT_ACCEPTED, 'No tool has it.');
  const problems = using.flatMap(({ tool }) => {
    const mine = recordsAt(tool, 'status', 'secrets').find(
      (item) => textAt(item, 'secret') === own.secret && textAt(item, 'key') === own.key,
    );
    const problem = (['missing', 'empty', 'malformed'] as const).find((known) => known === textAt(mine, 'problem'));
    return problem === undefined ? [] : [{ ...own, problem }];
  });
  const [first] = problems;
  if (first) return fails('Connected', reasonOf(problems), describeTroubles([first]));
  const waiting = using.filter(({ tool }) => !has(tool, metadata.name)).map(({ id }) => id);
  if (waiting.length > 0) return pending('Connected', CONNECTING, `Pods do not have it yet: ${nameSome(waiting)}.`);
  return holds('Connected', CONNECTED, `${using.length} of ${uses.length} tools have it.`);
}

function has(tool: KubeObject | undefined, name: string): boolean {
  const names = at(tool, 'status', 'connections');
  return Array.isArray(names) && names.includes(name);
}
