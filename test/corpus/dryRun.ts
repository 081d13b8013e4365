/** Asks a real API server what it thinks of an object, and keeps nothing. */
import { request } from 'node:https';
import { KINDS } from '../../src/api/kinds.ts';
import { loadConnection } from '../../src/kube/connection.ts';

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

/**
 * Answers of `POST …?dryRun=All&fieldValidation=Strict` for objects of our kinds, those of a namespace in the given one.
 * `as`: the user who asks, for kinds that not everybody writes.
 */
export function createDryRun(
  kubeconfig: string,
  namespace: string,
): (object: { kind: string }, as?: string) => Promise<Answer> {
  const source = loadConnection({ kubeconfig });
  return async (object, as) => {
    const kind = KINDS.find((one) => one.kind === object.kind);
    if (!kind) throw new Error(`no kind ${object.kind}`);
    const { server, authorization, tls } = await source.current();
    const where = 'cluster' in kind ? '' : `namespaces/${namespace}/`;
    const url = `${server}/apis/oz0.ai/v1alpha1/${where}${kind.plural}?dryRun=All&fieldValidation=Strict`;
    return await new Promise<Answer>((resolve, reject) => {
      const call = request(
        url,
        {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            ...(authorization ? { authorization } : {}),
            ...(as === undefined ? {} : { 'impersonate-user': as }),
          },
          ...(tls.ca ? { ca: tls.ca } : {}),
          ...(tls.cert ? { cert: tls.cert } : {}),
          ...(tls.key ? { key: tls.key } : {}),
          ...(tls.serverName ? { servername: tls.serverName } : {}),
          rejectUnauthorized: tls.verify,
          timeout: 30_000,
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('error', reject);
          response.on('end', () =>
            resolve({ status: response.statusCode ?? 0, body: JSON.parse(Buffer.concat(chunks).toString('utf8')) }),
          );
        },
      );
      call.on('timeout', () => call.destroy(new Error('no answer in 30 s')));
      call.on('error', reject);
      call.end(JSON.stringify(object));
    });
  };
}
