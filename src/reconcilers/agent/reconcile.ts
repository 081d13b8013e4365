/** Agent: makes nothing; says what its grants come to. Gateways read the Agent itself. */
import { type Agent, agent } from '../../api/agent.ts';
import type { Reconciler } from '../../engine/contract.ts';
import { holds } from '../facts.ts';
import { parseWith, type Stored } from '../parse.ts';
import { AGENT, TOOL } from '../resources.ts';
import { resolveGrants } from './grants.ts';
import { ACCEPTED } from './reasons.ts';
import { resolved } from './resolved.ts';

export type StoredAgent = Stored<Agent>;

export const agentReconciler: Reconciler<StoredAgent> = {
  resource: AGENT,
  parse: parseWith(agent.schema),
  owns: [],
  reads: { tools: { resource: TOOL, select: ({ metadata }) => ({ namespace: metadata.namespace ?? '' }) } },
  sensors: [],
  conditions: ['Accepted', 'Resolved'],
  reconcile: ({ parent, reads }) => {
    const granted = resolveGrants(parent.spec.tools ?? [], reads['tools'] ?? []);
    const working = granted.filter(({ ready }) => ready === 'True');
    const grants = {
      tools: granted.length,
      ready: working.length,
      functions: working.reduce((sum, { count }) => sum + count, 0),
    };
    const conditions = [holds('Accepted', ACCEPTED, ''), resolved(granted)];
    return { do: 'converge', children: [], facts: { conditions, status: { grants } } };
  },
};
