/** The identity of one of the operator's own processes: asked of edge directly, by the token and the bundle that its pod mounts. */
import { readFile } from 'node:fs/promises';
import { type IdentityHolder, startIdentity } from './identity.ts';
import { identityRequest } from './identityRequest.ts';
import type { NetLog } from './log.ts';

export interface ProcessIdentityOptions {
  readonly trustDomain: string;
  readonly edge: { readonly host: string; readonly port: number };
  /** PEM; read anew for each request, as is the token. */
  readonly trustFile: string;
  readonly tokenFile: string;
}

export function startProcessIdentity(
  options: ProcessIdentityOptions,
  log: NetLog,
  signal: AbortSignal,
): IdentityHolder {
  const { trustDomain, edge, trustFile, tokenFile } = options;
  const request = identityRequest({
    route: { kind: 'direct', ...edge },
    trustDomain,
    trustBundlePem: () => readFile(trustFile, 'utf8'),
    token: () => readFile(tokenFile, 'utf8'),
  });
  return startIdentity({ request, trustDomain, log, signal });
}
