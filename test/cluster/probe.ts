/** A tool that looks around (hack/images/probe), as a Tool of a story, with an Agent that may call all of it. */
import { image, type Manifest } from './cluster.ts';

export function probeTool(namespace: string, name: string, spec: Record<string, unknown> = {}): Manifest {
  return {
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'Tool',
    metadata: { name, namespace },
    spec: { image: { reference: image('probe'), command: ['node', '/app/probe.mjs'] }, ...spec },
  };
}

export function agentOf(namespace: string, name: string, serviceAccounts: string[], tools: string[]): Manifest {
  return {
    apiVersion: 'oz0.ai/v1alpha1',
    kind: 'Agent',
    metadata: { name, namespace },
    spec: { serviceAccounts, tools },
  };
}
