/** What stands behind a Tool in the cluster, in the order in which it must exist. */
import { affinityOf } from '../../api/tool.ts';
import { LABEL_TOOL, PORT_TLS, probeLabel, toolResourceName } from '../../domain/naming.ts';
import type { KubeObject } from '../../engine/contract.ts';
import { componentLabels, type Operator } from '../operator.ts';
import {
  DAEMON_SET,
  DEPLOYMENT,
  DISRUPTION_BUDGET,
  NETWORK_POLICY,
  SERVICE,
  SERVICE_ACCOUNT,
  TOOL_LISTING,
} from '../resources.ts';
import type { Credentials } from './credentials.ts';
import { type PodTemplate, podTemplate, toolLabels, toolSelector } from './pod.ts';
import type { Source } from './source.ts';
import type { WrittenTool } from './tool.ts';

/** Account and policy come before the workload: no pod without its walls. Deleted in reverse, so they also outlive it. */
export const TOOL_OWNS = [
  SERVICE_ACCOUNT,
  NETWORK_POLICY,
  SERVICE,
  DISRUPTION_BUDGET,
  DAEMON_SET,
  DEPLOYMENT,
  TOOL_LISTING,
];

export function toolChildren(
  tool: WrittenTool,
  source: Source,
  credentials: Credentials,
  operator: Operator,
): readonly KubeObject[] {
  const template = podTemplate(tool, source, credentials, operator);
  const walls = toolWalls(tool, operator);
  if (affinityOf(tool.spec) === 'node') return [...walls, daemonSet(tool, template)];
  return [...walls, service(tool), disruptionBudget(tool), deployment(tool, template)];
}

/** What stands before any pod of the Tool, whatever its version. */
export function toolWalls(tool: WrittenTool, operator: Operator): readonly KubeObject[] {
  return [serviceAccount(tool), networkPolicy(tool, operator)];
}

function metadata(tool: WrittenTool) {
  return {
    name: toolResourceName(tool.metadata.name),
    namespace: tool.metadata.namespace ?? '',
    labels: toolLabels(tool),
  };
}

function serviceAccount(tool: WrittenTool): KubeObject {
  return { apiVersion: 'v1', kind: 'ServiceAccount', metadata: metadata(tool), automountServiceAccountToken: false };
}

/**
 * In: gateways and the controller. Out: egress. Nothing else, no DNS either. The kubelet's probes come from the pod's own node, which
 * Kubernetes always lets in.
 */
function networkPolicy(tool: WrittenTool, operator: Operator): KubeObject {
  const port = { protocol: 'TCP', port: PORT_TLS };
  const part = (component: 'controller' | 'gateway' | 'egress') => ({
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': operator.namespace } },
    podSelector: { matchLabels: componentLabels(component) },
  });
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: metadata(tool),
    spec: {
      // Those that serve, and the one in which a new version is tried.
      podSelector: {
        matchExpressions: [
          { key: LABEL_TOOL, operator: 'In', values: [tool.metadata.name, probeLabel(tool.metadata.name)] },
        ],
      },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [{ from: [part('gateway'), part('controller')], ports: [port] }],
      egress: [{ to: [part('egress')], ports: [port] }],
    },
  };
}

/**
 * Headless: nobody calls it; its EndpointSlices tell gateways which pods there are, and which are ready. (A field that is false by
 * default is not stored, so it is not written either: it would look like drift.)
 */
function service(tool: WrittenTool): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: metadata(tool),
    spec: {
      clusterIP: 'None',
      selector: toolSelector(tool.metadata.name),
      ports: [{ name: 'tls', port: PORT_TLS, protocol: 'TCP', targetPort: PORT_TLS }],
    },
  };
}

/** One at a time, with one pod too: it bounds a drain without ever stopping it. */
function disruptionBudget(tool: WrittenTool): KubeObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: metadata(tool),
    spec: {
      maxUnavailable: 1,
      selector: { matchLabels: toolSelector(tool.metadata.name) },
      unhealthyPodEvictionPolicy: 'AlwaysAllow',
    },
  };
}

function daemonSet(tool: WrittenTool, template: PodTemplate): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: metadata(tool),
    spec: {
      revisionHistoryLimit: 2,
      selector: { matchLabels: toolSelector(tool.metadata.name) },
      template,
      updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
    },
  };
}

function deployment(tool: WrittenTool, template: PodTemplate): KubeObject {
  const { replicas } = tool.spec;
  const spread = {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: { [LABEL_TOOL]: tool.metadata.name } },
    matchLabelKeys: ['pod-template-hash'],
  };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: metadata(tool),
    spec: {
      // Where the Tool says nothing the field is not ours, and whoever scales is left alone.
      ...(replicas === undefined ? {} : { replicas }),
      revisionHistoryLimit: 2,
      selector: { matchLabels: toolSelector(tool.metadata.name) },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 } },
      template: { ...template, spec: { ...template.spec, topologySpreadConstraints: [spread] } },
    },
  };
}
