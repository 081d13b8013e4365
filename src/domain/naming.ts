/**
 * The names, labels, ports and audiences that every part agrees on, and the rules for names that the model sees.
 * Pure: the one place to change a constant that more than one process reads.
 */
import { createHash } from 'node:crypto';

export const API_GROUP = 'oz0.ai';
export const API_VERSION = 'v1alpha1';
export const API_GROUP_VERSION = `${API_GROUP}/${API_VERSION}` as const;

/** Labels that the API server's admission lets only the controller set; NetworkPolicies and gateways select by them. */
export const LABEL_TOOL = 'oz0.ai/tool';
export const LABEL_PLUGIN = 'oz0.ai/plugin';
/** On the operator's own pods: controller, gateway, egress or edge. */
export const LABEL_COMPONENT = 'oz0.ai/component';

/** Prefix of tool pods, their workload, ServiceAccount, Service and NetworkPolicy. Reserved by admission. */
export const TOOL_RESOURCE_PREFIX = 'oz0t-';
/** ConfigMap that the controller keeps in every namespace with a Tool or an Agent: trust and addresses. */
export const TRUST_CONFIG_MAP = 'oz0';

export const PORT_TLS = 8443;
export const PORT_HEALTH = 8081;
export const PORT_METRICS = 9090;

/** Audience of the tokens by which agents prove who they are to a gateway. */
export const AUDIENCE_GATEWAY = 'oz0-gateway';
/** Audience of the tokens by which our own pods ask edge for a certificate. */
export const AUDIENCE_IDENTITY = 'oz0-ca';

/** CONNECT target of the one route of egress that is open to a client without a certificate: edge's signer. */
export const SIGNER_ROUTE = 'edge.oz0.internal:443';

/** CONNECT target of the cluster's model gateway: egress ends the tunnel itself, and puts the operator's key in. */
export const MODEL_ROUTE = 'model.oz0.internal:443';

/** What a tool has in the place of the model gateway's key. The same for all: it is worth nothing anywhere. */
export const MODEL_PLACEHOLDER = 'sk-oz0-the-key-is-put-in-on-the-way';

/** Longest name of a function that every model vendor takes. */
export const MODEL_NAME_LIMIT = 64;

/** `acme-github` → `acme_github`: a Tool's id, as configuration writes it. */
export function toolId(toolName: string): string {
  return toolName.replaceAll('-', '_');
}

/** `acme_github` → `acme-github`: the name of the Tool with that id. */
export function toolName(id: string): string {
  return id.replaceAll('_', '-');
}

/** Name of the workload, ServiceAccount, Service and NetworkPolicy of a Tool. */
export function toolResourceName(name: string): string {
  return `${TOOL_RESOURCE_PREFIX}${name}`;
}

/**
 * Value of `oz0.ai/tool` on the pod in which a new version of a Tool is tried: no name of a Tool holds a dot, so no Service, budget,
 * workload or gateway takes it for a pod that serves, and its label is still one of a tool's.
 */
export function probeLabel(name: string): string {
  return `${name}.probe`;
}

/** Name of the workload of that pod. No name of a Tool holds `--`. */
export function probeResourceName(name: string): string {
  return `${toolResourceName(name)}--probe`;
}

/**
 * The name under which the model sees a function: `<tool id>__<function>`.
 * Over 64 characters: the first 55, `_`, and 8 hex digits of the whole name's sha256, so that it is stable and no two
 * functions collide. Tool ids hold no `__`, so the split is unambiguous.
 */
export function modelName(id: string, functionName: string): string {
  const name = `${id}__${functionName}`;
  if (name.length <= MODEL_NAME_LIMIT) return name;
  return `${name.slice(0, 55)}_${createHash('sha256').update(name).digest('hex').slice(0, 8)}`;
}
