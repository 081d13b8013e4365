/**
 * Asks edge's signer for a certificate, directly or through egress' one open route. Names are of no use here (a tool pod
 * has no DNS): addresses are dialled, and peers proved by their identity.
 */
import { type RequestOptions, request } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { SIGNER_ROUTE } from '../domain/naming.ts';
import { connectTunnel, TunnelRefusedError } from './connectTunnel.ts';
import type { SessionKey, SignedIdentity } from './identity.ts';
import { connectTls } from './tlsClient.ts';

export interface SignerRoute {
  /** `direct`: the address is edge's. `egress`: it is egress', which is asked to CONNECT to the signer. */
  readonly kind: 'direct' | 'egress';
  readonly host: string;
  readonly port: number;
  /** Name for the first handshake; nothing is checked against it. */
  readonly servername?: string;
}

export interface IdentityRequestOptions {
  readonly route: SignerRoute;
  readonly trustDomain: string;
  /** The bundle by which to know egress and edge; read anew for each request. */
  readonly trustBundlePem: () => Promise<string>;
  /** A pod-bound token of the audience `oz0-ca`; read anew for each request. */
  readonly token: () => Promise<string>;
  readonly timeoutMs?: number;
}

const TIMEOUT_MS = 10_000;
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_REASON_LENGTH = 200;

/** The signer's refusal, or an answer that is none. */
export class SignerError extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(`${code}: ${message}`);
    this.code = code;
  }
}

/** A function as `startIdentity` wants it: sends one request, bounded in time and size. */
export function identityRequest(
  options: IdentityRequestOptions,
): (csrPem: string, signal: AbortSignal, heldBundlePem?: string) => Promise<SignedIdentity> {
  return async (csrPem, outer, heldBundlePem = '') => {
    const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    const signal = AbortSignal.any([outer, AbortSignal.timeout(timeoutMs)]);
    const [bundlePem, token] = await Promise.all([options.trustBundlePem(), options.token()]);
    const trustBundlePem = `${bundlePem}\n${heldBundlePem}`;
    const socket = await connectSigner(options, trustBundlePem, timeoutMs, signal);
    try {
      const answer = await post(socket, token.trim(), JSON.stringify({ csr: csrPem }), signal);
      return parseAnswer(answer.status, answer.body);
    } finally {
      socket.destroy();
    }
  };
}

async function connectSigner(
  options: IdentityRequestOptions,
  trustBundlePem: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const { route, trustDomain } = options;
  const common = { trustBundlePem, trustDomain, timeoutMs, signal };
  const outer = await connectTls({
    ...common,
    over: { host: route.host, port: route.port },
    expected: { kind: route.kind === 'direct' ? 'edge' : 'egress' },
    ...(route.servername === undefined ? {} : { servername: route.servername }),
  });
  if (route.kind === 'direct') return outer;
  try {
    await connectTunnel(outer, SIGNER_ROUTE, signal);
  } catch (error) {
    if (!(error instanceof TunnelRefusedError)) throw error;
    throw new SignerError(error.status === 0 ? error.code : 'refused-by-egress', error.message);
  }
  return connectTls({ ...common, over: outer, expected: { kind: 'edge' } });
}

function post(
  socket: TLSSocket,
  token: string,
  body: string,
  signal: AbortSignal,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options: RequestOptions = {
      method: 'POST',
      path: '/v1/identity',
      host: 'edge',
      createConnection: (): Duplex => socket,
      signal,
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        connection: 'close',
      },
    };
    const outgoing = request(options, (response) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      response.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_ANSWER_BYTES) response.destroy(new SignerError('bad-answer', 'the answer is too long'));
        else chunks.push(chunk);
      });
      response.once('error', reject);
      response.once('close', () => reject(new SignerError('bad-answer', 'the answer broke off')));
      response.once('end', () => {
        resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') });
      });
    });
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}

/** @throws SignerError for a refusal, and for whatever does not have the answer's form */
export function parseAnswer(status: number, body: string): SignedIdentity {
  const json = parseObject(body);
  if (status !== 200) {
    const error = asObject(json?.['error']);
    const code = error?.['code'];
    const message = error?.['message'];
    throw new SignerError(
      typeof code === 'string' ? code.slice(0, MAX_REASON_LENGTH) : `http-${status}`,
      typeof message === 'string' ? message.slice(0, MAX_REASON_LENGTH) : 'no reason given',
    );
  }
  const certificate = json?.['certificate'];
  const trustBundle = json?.['trustBundle'];
  const notAfter = json?.['notAfter'];
  const identity = json?.['identity'];
  if (
    typeof certificate !== 'string' ||
    typeof trustBundle !== 'string' ||
    typeof notAfter !== 'string' ||
    typeof identity !== 'string'
  ) {
    throw new SignerError('bad-answer', 'the answer lacks a field');
  }
  const sessionKeys = parseSessionKeys(json?.['sessionKeys']);
  return { certificate, trustBundle, notAfter, identity, ...(sessionKeys === undefined ? {} : { sessionKeys }) };
}

function parseSessionKeys(value: unknown): SessionKey[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw new SignerError('bad-answer', 'sessionKeys is not a list');
  return value.map((entry) => {
    const object = asObject(entry);
    const id = object?.['id'];
    const key = object?.['key'];
    if (typeof id !== 'string' || typeof key !== 'string')
      throw new SignerError('bad-answer', 'a session key is broken');
    return { id, key };
  });
}

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function asObject(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : undefined;
}
