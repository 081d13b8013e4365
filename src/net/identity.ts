/**
 * Keeps this process's certificate: a key made in memory for each, asked for, held, and renewed at two thirds of its life.
 * The key never leaves the process. Nothing here knows the way to the signer: that is `request`'s affair.
 */
import { generateKeyPairSync, type KeyObject, X509Certificate } from 'node:crypto';
import { formatIdentity, type Identity, parseIdentity } from '../domain/identity/identity.ts';
import type { CredentialSource, TlsCredentials } from './credentials.ts';
import { certificateRequest } from './csr.ts';
import type { NetLog } from './log.ts';
import { identityOfSubjectAltName } from './peerIdentity.ts';
import { systemTimers, type Timers } from './timers.ts';

/** A key by which gateways seal sessions; base64. */
export interface SessionKey {
  readonly id: string;
  readonly key: string;
}

/** Edge's answer to a certificate request. */
export interface SignedIdentity {
  /** PEM, the leaf first. */
  readonly certificate: string;
  readonly trustBundle: string;
  /** RFC 3339. */
  readonly notAfter: string;
  readonly identity: string;
  readonly sessionKeys?: readonly SessionKey[];
}

export interface HeldIdentity extends TlsCredentials {
  readonly identity: Identity;
  /** Milliseconds since the epoch. */
  readonly notAfter: number;
  readonly sessionKeys?: readonly SessionKey[];
}

export interface IdentityHolder extends CredentialSource {
  /** Undefined before the first certificate, and once the last one ran out. */
  current(): HeldIdentity | undefined;
  /** Resolves with the first certificate; rejects only when closed before it came. */
  readonly ready: Promise<void>;
  onChange(listener: () => void): () => void;
  close(): void;
}

export interface IdentityOptions {
  /**
   * Sends a request (PEM) to the signer once. A rejection is tried again. The bundle is that of the certificate that is held: the signer
   * may have changed since the one on disk was written.
   */
  readonly request: (csrPem: string, signal: AbortSignal, heldBundlePem?: string) => Promise<SignedIdentity>;
  readonly trustDomain: string;
  readonly log: NetLog;
  readonly signal: AbortSignal;
  readonly timers?: Timers;
}

const RETRY_FIRST_MS = 250;
const RETRY_LONGEST_MS = 30_000;
/** Clocks differ by so much; edge backdates by as much. */
const CLOCK_SKEW_MS = 60_000;

export function startIdentity(options: IdentityOptions): IdentityHolder {
  const timers = options.timers ?? systemTimers;
  const own = new AbortController();
  const signal = AbortSignal.any([options.signal, own.signal]);
  const listeners = new Set<() => void>();
  let held: HeldIdentity | undefined;
  const first = Promise.withResolvers<void>();
  // Whoever does not wait for it must not crash on it.
  first.promise.catch(() => {});

  async function obtain(): Promise<void> {
    for (let failures = 0; ; failures++) {
      try {
        const keys = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
        const known = held !== undefined && held.notAfter > timers.now() ? held.trustBundlePem : undefined;
        const answer = await options.request(certificateRequest(keys), signal, known);
        held = acceptIdentity(answer, keys.privateKey, options.trustDomain, timers.now());
        return;
      } catch (error) {
        signal.throwIfAborted();
        const ceiling = Math.min(RETRY_LONGEST_MS, RETRY_FIRST_MS * 2 ** Math.min(failures, 10));
        const waitMs = Math.round(ceiling * (0.5 + timers.random() / 2));
        options.log('warn', 'identity.failed', {
          reason: error instanceof Error ? error.message : String(error),
          retryMs: waitMs,
          expired: held !== undefined && held.notAfter <= timers.now(),
        });
        await timers.sleep(waitMs, signal);
      }
    }
  }

  async function keep(): Promise<void> {
    while (true) {
      await obtain();
      if (held === undefined) return;
      options.log('info', 'identity.renewed', {
        identity: formatIdentity(options.trustDomain, held.identity),
        notAfter: new Date(held.notAfter).toISOString(),
      });
      first.resolve();
      for (const listener of [...listeners]) listener();
      const lifeMs = held.notAfter - timers.now();
      // Up to a tenth earlier, so that pods that came up together do not ask together for ever.
      await timers.sleep(lifeMs * (2 / 3) * (1 - timers.random() / 10), signal);
    }
  }
  keep().catch((error) => first.reject(error));

  return {
    current: () => (held !== undefined && held.notAfter > timers.now() ? held : undefined),
    ready: first.promise,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close() {
      own.abort(new Error('identity holder closed'));
      listeners.clear();
    },
  };
}

/**
 * Checks an answer before it is used: what is served wrongly is better noticed here than by every peer.
 * @throws Error saying what is wrong with it
 */
export function acceptIdentity(
  answer: SignedIdentity,
  privateKey: KeyObject,
  trustDomain: string,
  nowMs: number,
): HeldIdentity {
  const leaf = new X509Certificate(answer.certificate);
  if (!leaf.checkPrivateKey(privateKey)) throw new Error('signer answered with a certificate for another key');
  const identity = parseIdentity(trustDomain, answer.identity);
  const named = identityOfSubjectAltName(trustDomain, leaf.subjectAltName);
  if (identity === undefined || named === undefined || formatIdentity(trustDomain, named) !== answer.identity) {
    throw new Error('signer answered with a certificate for another identity');
  }
  const authorities = answer.trustBundle.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  if (!authorities.some((pem) => leaf.verify(new X509Certificate(pem).publicKey))) {
    throw new Error('signer answered with a certificate that its trust bundle does not verify');
  }
  const notAfter = leaf.validToDate.getTime();
  if (notAfter <= nowMs) throw new Error('signer answered with a certificate that has run out; do the clocks differ?');
  if (leaf.validFromDate.getTime() > nowMs + CLOCK_SKEW_MS) {
    throw new Error('signer answered with a certificate of the future; do the clocks differ?');
  }
  return {
    certificatePem: answer.certificate,
    keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    trustBundlePem: answer.trustBundle,
    identity,
    notAfter,
    ...(answer.sessionKeys === undefined ? {} : { sessionKeys: answer.sessionKeys }),
  };
}
