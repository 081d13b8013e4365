/**
 * One pod of a new version, outside of the workload that serves: it is asked what it lists before anything is rolled out. It runs behind
 * the same walls as the others, since its label is among those that the Tool's NetworkPolicy selects, and under the same account.
 */
import { LABEL_TOOL, probeLabel, probeResourceName } from '../../domain/naming.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { type PodTemplate, toolLabels } from './pod.ts';
import type { WrittenTool } from './tool.ts';

/** A Deployment and no bare pod: what makes pods in the cluster are then workloads alone, which admission knows and quotas name. */
export function probeDeployment(tool: WrittenTool, template: PodTemplate): KubeObject {
  const { name, namespace = '' } = tool.metadata;
  const labels = { ...toolLabels(tool), [LABEL_TOOL]: probeLabel(name) };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: probeResourceName(name), namespace, labels },
    spec: {
      replicas: 1,
      revisionHistoryLimit: 0,
      selector: { matchLabels: { [LABEL_TOOL]: probeLabel(name) } },
      // Never two: the second could be of another version.
      strategy: { type: 'Recreate' },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
  };
}
