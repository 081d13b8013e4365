import type { WatchDoor } from '../engine/door.ts';
import type { Log } from '../engine/log.ts';
import type { KubeClient } from './client.ts';
import { startReflector } from './reflector.ts';

/** The engine's way to watch, over reflectors of this client. */
export function createWatchDoor(client: Pick<KubeClient, 'listPage' | 'watch'>, log: Log): WatchDoor {
  return (request) => startReflector({ ...request, client, log }).store;
}
