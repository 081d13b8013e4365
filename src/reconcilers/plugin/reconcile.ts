/** Plugin: makes its Tools and Connections, and says whether they work. */
import { type Reconciler, resourceKey } from '../../engine/contract.ts';
import { pending } from '../facts.ts';
import { CONNECTION, PLUGIN, TOOL } from '../resources.ts';
import { accepted } from './accepted.ts';
import { pluginChildren } from './children.ts';
import { installed, toolStates } from './installed.ts';
import { parsePlugin, type StoredPlugin } from './plugin.ts';
import { NOT_ACCEPTED } from './reasons.ts';

export const pluginReconciler: Reconciler<StoredPlugin> = {
  resource: PLUGIN,
  parse: parsePlugin,
  owns: [CONNECTION, TOOL],
  reads: {
    tools: { resource: TOOL, select: ({ metadata }) => ({ namespace: metadata.namespace ?? '' }) },
    connections: { resource: CONNECTION, select: ({ metadata }) => ({ namespace: metadata.namespace ?? '' }) },
    plugins: { resource: PLUGIN, select: ({ metadata }) => ({ namespace: metadata.namespace ?? '' }) },
  },
  sensors: [],
  conditions: ['Accepted', 'Installed'],
  reconcile: ({ parent, children, reads }) => {
    const fact = accepted(parent, reads['tools'] ?? [], reads['plugins'] ?? [], reads['connections'] ?? []);
    const states = toolStates(parent, children[resourceKey(TOOL)] ?? []);
    const tools = { ready: states.filter(({ ready }) => ready === 'True').length, desired: states.length };
    if (fact.status !== 'True') {
      // Nothing is made, and what an earlier version of it made goes on.
      const conditions = [fact, pending('Installed', NOT_ACCEPTED, 'Not judged, since the Plugin was not accepted.')];
      return { do: 'hold', facts: { conditions, status: { tools } } };
    }
    return {
      do: 'converge',
      children: pluginChildren(parent),
      facts: { conditions: [fact, installed(states)], status: { version: parent.spec.version, tools } },
    };
  },
};
