/** Every kind of ours, for what goes over all of them. */
import { agent } from './agent.ts';
import { connection } from './connection.ts';
import { plugin } from './plugin.ts';
import { tool } from './tool.ts';

export const KINDS = [plugin, tool, connection, agent] as const;
