/** Every kind of ours, for what goes over all of them. */
import { agent } from './agent.ts';
import { connection } from './connection.ts';
import { plugin } from './plugin.ts';
import { snapshotApproval } from './snapshotApproval.ts';
import { stop } from './stop.ts';
import { tool } from './tool.ts';
import { toolCall } from './toolCall.ts';
import { toolListing } from './toolListing.ts';
import { clusterToolPolicy, toolPolicy } from './toolPolicy.ts';

export const KINDS = [
  plugin,
  tool,
  connection,
  agent,
  toolPolicy,
  clusterToolPolicy,
  snapshotApproval,
  stop,
  toolCall,
  toolListing,
] as const;
