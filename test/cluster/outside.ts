/**
 * A host outside the cluster, for tools to reach through egress: this machine, at the bridge's address, by names below
 * `.test`, which the cluster's DNS asks us for. It answers over TLS with all that it received.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { createServer, type Server } from 'node:https';
import { join } from 'node:path';
import { bridgeAddress, clusterFolder } from '../../hack/cluster/layout.ts';
import { type Authority, authorityCertificate, leafCertificate } from '../../src/net/certificate.ts';
import { type LyingDns, startLyingDns, type Zone } from '../integration/egress/lyingDns.ts';

const NAME = 'outside';
const folder = join(clusterFolder, NAME);
/** The private authority that the outside host's certificate is of, for the chart value `egress.upstreamCA`. */
export const outsideCaFile = join(folder, 'ca.crt');

/** The model gateway that the operator is installed with, and the Secret of its key: there while a story needs them. */
export const MODEL_HOST = 'model.test';
export const MODEL_SECRET = 'story-model';

/** Kept beside the cluster, since the operator is installed before any story and by another process. */
export function outsideAuthority(): Authority {
  const keyFile = join(folder, 'ca.key');
  if (!existsSync(keyFile)) {
    mkdirSync(folder, { recursive: true });
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    const validity = { notBefore: new Date(Date.now() - 60_000), notAfter: new Date(Date.now() + 30 * 86_400_000) };
    writeFileSync(outsideCaFile, authorityCertificate({ name: NAME, privateKey, ...validity }));
    writeFileSync(keyFile, privateKey.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 });
  }
  return {
    name: NAME,
    certificatePem: readFileSync(outsideCaFile, 'utf8'),
    privateKey: createPrivateKey(readFileSync(keyFile)),
  };
}

/** Serves TLS by these names on 10.99.0.1:443. */
export async function listenOutside(names: readonly string[], listener: RequestListener): Promise<() => Promise<void>> {
  const { key, certificate } = leaf(outsideAuthority(), names);
  const server: Server = createServer({ key, cert: certificate }, listener);
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(443, bridgeAddress, resolve);
  });
  return async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
}

/** Every name that the cluster asks us for leads to this machine. */
export async function startOutsideDns(): Promise<LyingDns> {
  const here: Zone = ({ type }) => (type === 'A' ? { records: [{ type: 'A', value: bridgeAddress, ttl: 0 }] } : {});
  return await startLyingDns(here, { host: bridgeAddress, port: 53 });
}

export interface Received {
  host: string;
  method: string;
  path: string;
  headers: Record<string, string | string[] | undefined>;
  body: string;
}

export interface OutsideHost {
  /** Requests, in the order they came; the judge of what left the cluster. */
  received: Received[];
  close(): Promise<void>;
}

/** Serves these names on 10.99.0.1:443. Each answer repeats the request: `/plain` as it is, `/base64` encoded, `/split` in pieces. */
export async function startOutsideHost(names: readonly string[]): Promise<OutsideHost> {
  const received: Received[] = [];
  const close = await listenOutside(names, (request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const { headers, method = '', url = '' } = request;
      received.push({ host: headers.host ?? '', method, path: url, headers, body });
      const echo = JSON.stringify({ headers, body, url });
      if (url.startsWith('/redirect')) {
        response.writeHead(302, { location: 'https://elsewhere.test/' }).end(echo);
        return;
      }
      if (url.startsWith('/base64')) {
        response.end(Buffer.from(echo).toString('base64'));
        return;
      }
      if (!url.startsWith('/split')) {
        response.writeHead(200, { 'x-echo': String(headers['authorization']) }).end(echo);
        return;
      }
      const write = (at: number): void => {
        if (at >= echo.length) response.end();
        else response.write(echo.slice(at, at + 3), () => setImmediate(write, at + 3));
      };
      write(0);
    });
  });
  return { received, close };
}

function leaf(authority: Authority, dnsNames: readonly string[]): { key: string; certificate: string } {
  const keys = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
  const certificate = leafCertificate(authority, {
    subject: NAME,
    publicKey: keys.publicKey,
    uri: `spiffe://${NAME}.test/host`,
    dnsNames,
    notBefore: new Date(Date.now() - 60_000),
    notAfter: new Date(Date.now() + 86_400_000),
  });
  return { key: pem(keys.privateKey), certificate };
}

function pem(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}
