/** Asks one pod's sidecar for its status or its listing, over mutual TLS, and only if it proves to be that very pod. */
import { PORT_TLS } from '../domain/naming.ts';
import { type CredentialSource, untilCredentials } from '../net/credentials.ts';
import { openPeer } from '../net/peer.ts';
import type { AskSidecar } from '../reconcilers/tool/sensors.ts';

/** More than the longest listing that a sidecar keeps. */
const ANSWER_MAX_BYTES = 8 * 1024 * 1024;

export function createAskSidecar(credentials: CredentialSource, trustDomain: string): AskSidecar {
  return async ({ namespace, tool, podUid, address }, path, signal) => {
    await untilCredentials(credentials, signal);
    const peer = openPeer({
      address: { host: address, port: PORT_TLS },
      expected: { kind: 'tool', namespace, tool, podUid },
      trustDomain,
      credentials,
      connections: 1,
    });
    try {
      const { statusCode, body } = await peer.dispatcher().request({ method: 'GET', path, signal });
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of body as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > ANSWER_MAX_BYTES) throw new Error('The sidecar answered with more than can be read.');
        chunks.push(chunk);
      }
      if (statusCode !== 200) throw new Error(`The sidecar answered with status ${statusCode}.`);
      return JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown;
    } finally {
      await peer.close();
    }
  };
}
