/** Every reconciler of the controller. */
import type { AnyReconciler } from '../engine/rules.ts';
import { agentReconciler } from '../reconcilers/agent/reconcile.ts';
import { connectionReconciler } from '../reconcilers/connection/reconcile.ts';
import type { Operator } from '../reconcilers/operator.ts';
import { pluginReconciler } from '../reconcilers/plugin/reconcile.ts';
import { snapshotApprovalReconciler } from '../reconcilers/snapshotApproval/reconcile.ts';
import { stopReconciler } from '../reconcilers/stop/reconcile.ts';
import { toolReconciler } from '../reconcilers/tool/reconcile.ts';
import type { AskSidecar } from '../reconcilers/tool/sensors.ts';
import { clusterToolPolicyReconciler, toolPolicyReconciler } from '../reconcilers/toolPolicy/reconcile.ts';
import { trustReconciler } from '../reconcilers/trust/reconcile.ts';

export function allReconcilers(operator: Operator, ask: AskSidecar): readonly AnyReconciler[] {
  return [
    trustReconciler(operator),
    pluginReconciler,
    toolReconciler(operator, ask),
    connectionReconciler,
    snapshotApprovalReconciler,
    toolPolicyReconciler,
    clusterToolPolicyReconciler,
    stopReconciler(operator),
    agentReconciler,
  ];
}
