/** What the operator's own configuration tells the reconcilers. */

export interface Operator {
  /** Where it runs. */
  readonly namespace: string;
  readonly trustDomain: string;
  /** Image of the sidecar and the launcher: the operator's own. */
  readonly image: string;
  /** Whether tool pods get a user namespace of their own. */
  readonly userNamespaces: boolean;
  /** Whether the cluster has a model gateway, for tools that say `usesModel`. */
  readonly modelGateway: boolean;
  /** What a tool's container gets where its Tool says nothing. */
  readonly resources: Resources;
}

export interface Resources {
  readonly requests: Amounts;
  readonly limits: Amounts;
}

export interface Amounts {
  readonly cpu: string;
  readonly memory: string;
  readonly 'ephemeral-storage': string;
}

export const DEFAULT_RESOURCES: Resources = {
  requests: { cpu: '50m', memory: '64Mi', 'ephemeral-storage': '16Mi' },
  limits: { cpu: '1', memory: '256Mi', 'ephemeral-storage': '512Mi' },
};

/** Labels of the pods of one part of the operator: what its Service sends to, and what NetworkPolicies allow, by the same constant. */
export const componentLabels = (component: 'controller' | 'gateway' | 'egress' | 'edge') => ({
  'app.kubernetes.io/name': 'oz0-operator',
  'oz0.ai/component': component,
});

/** On everything that the controller makes; never `app.kubernetes.io/instance`, by which GitOps tools would take it for theirs. */
export const MANAGED_BY = { 'app.kubernetes.io/managed-by': 'oz0-operator' } as const;
