/**
 * The tool's way to the cluster's model gateway: a port on loopback, each connection of which is a tunnel to egress, where requests are
 * read and the key is put in. Nothing here knows the key, and nothing is read here. [S09]
 */
import { MODEL_PLACEHOLDER, MODEL_ROUTE } from '../../domain/naming.ts';
import type { OpenTunnel } from '../../net/egressTunnel.ts';
import type { Log } from '../log.ts';
import { joinStreams } from './joinStreams.ts';
import { DEFAULT_LIMITS } from './limits.ts';
import { listenOnLoopback } from './loopbackServer.ts';
import { answerRefusal } from './refusal.ts';
import { openWay, UpstreamError } from './upstream.ts';

export const PORT_MODEL = 15_002;

export interface ModelDoorOptions {
  readonly openTunnel: OpenTunnel;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly port?: number;
}

export interface ModelDoor {
  readonly port: number;
  /** For the tool's process: where the usual SDKs find the gateway, and what stands in the key's place. */
  readonly environment: () => Readonly<Record<string, string>>;
  readonly close: () => Promise<void>;
}

/** @throws Error for a port that is taken */
export async function openModelDoor({ openTunnel, log, ...options }: ModelDoorOptions): Promise<ModelDoor> {
  const [host = '', port = ''] = MODEL_ROUTE.split(':');
  const { connectMs, maxConnections, tunnelIdleMs } = DEFAULT_LIMITS;
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const server = await listenOnLoopback({
    port: options.port ?? PORT_MODEL,
    maxConnections,
    onTooMany: (client) => answerRefusal(client, 'too-many-connections'),
    onConnection(client) {
      openWay({ host, port: Number(port) }, { openTunnel, connectMs, signal })
        .then((way) => joinStreams(client, way, tunnelIdleMs))
        .catch((error) => {
          const problem = error instanceof UpstreamError ? error.problem : 'upstream-unreachable';
          const reason = error instanceof UpstreamError ? error.reason() : undefined;
          log('warn', 'the model gateway is not reached', { reason: reason ?? problem });
          answerRefusal(client, problem, reason);
        });
    },
  });
  const origin = `http://127.0.0.1:${server.port}`;
  return {
    port: server.port,
    environment: () => ({
      OPENAI_BASE_URL: `${origin}/v1`,
      OPENAI_API_KEY: MODEL_PLACEHOLDER,
      ANTHROPIC_BASE_URL: origin,
      ANTHROPIC_API_KEY: MODEL_PLACEHOLDER,
    }),
    close() {
      stop.abort(new Error('the sidecar closes'));
      return server.close();
    },
  };
}
