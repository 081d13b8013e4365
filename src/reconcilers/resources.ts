/** Every kind that the reconcilers own or read, as the API server serves it. */
import { API_GROUP_VERSION } from '../domain/naming.ts';
import type { Resource } from '../engine/contract.ts';

const namespaced = (apiVersion: string, kind: string, plural: string): Resource => ({
  apiVersion,
  kind,
  plural,
  namespaced: true,
});

export const PLUGIN = namespaced(API_GROUP_VERSION, 'Plugin', 'plugins');
export const TOOL = namespaced(API_GROUP_VERSION, 'Tool', 'tools');
export const CONNECTION = namespaced(API_GROUP_VERSION, 'Connection', 'connections');
export const AGENT = namespaced(API_GROUP_VERSION, 'Agent', 'agents');

export const SNAPSHOT_APPROVAL = namespaced(API_GROUP_VERSION, 'SnapshotApproval', 'snapshotapprovals');
export const TOOL_POLICY = namespaced(API_GROUP_VERSION, 'ToolPolicy', 'toolpolicies');
export const CLUSTER_TOOL_POLICY: Resource = {
  ...namespaced(API_GROUP_VERSION, 'ClusterToolPolicy', 'clustertoolpolicies'),
  namespaced: false,
};
export const TOOL_LISTING = namespaced(API_GROUP_VERSION, 'ToolListing', 'toollistings');
export const STOP = namespaced(API_GROUP_VERSION, 'Stop', 'stops');

export const NAMESPACE: Resource = { apiVersion: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false };
export const CONFIG_MAP = namespaced('v1', 'ConfigMap', 'configmaps');
export const POD = namespaced('v1', 'Pod', 'pods');
export const SERVICE = namespaced('v1', 'Service', 'services');
export const SERVICE_ACCOUNT = namespaced('v1', 'ServiceAccount', 'serviceaccounts');
export const DAEMON_SET = namespaced('apps/v1', 'DaemonSet', 'daemonsets');
export const DEPLOYMENT = namespaced('apps/v1', 'Deployment', 'deployments');
export const NETWORK_POLICY = namespaced('networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies');
export const DISRUPTION_BUDGET = namespaced('policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets');
