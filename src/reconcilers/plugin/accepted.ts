/** The condition Accepted: what only other objects can show to be wrong with a Plugin. */
import { toolName } from '../../domain/naming.ts';
import type { Fact, KubeObject } from '../../engine/contract.ts';
import { holds, nameSome, stalls } from '../facts.ts';
import { conditionOf, recordsAt, textAt } from '../live.ts';
import type { StoredPlugin } from './plugin.ts';
import { ACCEPTED, CONNECTION_TAKEN, FOREIGN_TOOL, RESERVED_NAME, TOOL_ID_TAKEN } from './reasons.ts';

const TYPE = 'Accepted';

/**
 * @param tools all of the namespace
 * @param plugins all of the namespace
 * @param connections all of the namespace
 */
export function accepted(
  plugin: StoredPlugin,
  tools: readonly KubeObject[],
  plugins: readonly KubeObject[],
  connections: readonly KubeObject[],
): Fact {
  if (plugin.metadata.name.startsWith('oz0-')) {
    return stalls(TYPE, RESERVED_NAME, 'No plugin of this name is on the list of reviewed plugins.');
  }
  const taken = (plugin.spec.tools ?? []).flatMap(({ id }) => {
    const owner = otherOwner(plugin, id, tools, plugins);
    return owner === undefined ? [] : [`${id} (${owner})`];
  });
  if (taken.length > 0) {
    return stalls(TYPE, TOOL_ID_TAKEN, `These tool ids are another's in this namespace: ${nameSome(taken)}.`);
  }
  return connectionProblem(plugin, connections) ?? holds(TYPE, ACCEPTED, '');
}

function connectionProblem({ metadata, spec }: StoredPlugin, connections: readonly KubeObject[]): Fact | undefined {
  const own = spec.connections ?? [];
  const ids = (spec.tools ?? []).map(({ id }) => id);
  const foreign = own.flatMap(({ name, tools }) =>
    tools.filter((id) => !ids.includes(id)).map((id) => `${id} (${name})`),
  );
  if (foreign.length > 0) {
    return stalls(TYPE, FOREIGN_TOOL, `Its Connections are for tools that it does not bring: ${nameSome(foreign)}.`);
  }
  const taken = own.flatMap(({ name }) => {
    const there = connections.find((connection) => connection.metadata.name === name);
    if (there === undefined) return [];
    const owner = there.metadata.ownerReferences?.find(({ controller }) => controller === true);
    // Of a former Plugin of this name: about to go.
    if (owner?.kind === 'Plugin' && owner.name === metadata.name) return [];
    return [owner === undefined ? `${name} by itself` : `${name} (${owner.kind} ${owner.name})`];
  });
  if (taken.length === 0) return undefined;
  return stalls(TYPE, CONNECTION_TAKEN, `These Connections are another's in this namespace: ${nameSome(taken)}.`);
}

/** Who has the id: whose Tool is there, else the oldest Plugin that declares it. Undefined: this one. */
function otherOwner(
  plugin: StoredPlugin,
  id: string,
  tools: readonly KubeObject[],
  plugins: readonly KubeObject[],
): string | undefined {
  const tool = tools.find(({ metadata }) => metadata.name === toolName(id));
  if (tool) {
    const owner = tool.metadata.ownerReferences?.find(({ controller }) => controller === true);
    if (owner === undefined) return `Tool ${tool.metadata.name} by itself`;
    // A former Plugin of this name: its Tools are about to go.
    const former = owner.kind === 'Plugin' && owner.name === plugin.metadata.name;
    return owner.uid === plugin.metadata.uid || former ? undefined : `${owner.kind} ${owner.name}`;
  }
  const earlier = plugins.find(
    (other) => other.metadata.uid !== plugin.metadata.uid && declares(other, id) && isEarlier(other, plugin),
  );
  return earlier && `Plugin ${earlier.metadata.name}`;
}

function declares(other: KubeObject, id: string): boolean {
  if (other.metadata.deletionTimestamp !== undefined || conditionOf(other, TYPE)?.['status'] === 'False') return false;
  return recordsAt(other, 'spec', 'tools').some((entry) => textAt(entry, 'id') === id);
}

/** Two of the same second are told apart by name, or neither would give way. */
function isEarlier(other: KubeObject, plugin: StoredPlugin): boolean {
  const key = ({ metadata }: Pick<KubeObject, 'metadata'>) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  return key(other) < key(plugin);
}
