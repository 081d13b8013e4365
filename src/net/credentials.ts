/**
 * What a TLS end shows and trusts, as the servers and diallers here read it. The identity holder is one; a certificate of
 * the admin's can be another.
 */

export interface TlsCredentials {
  readonly certificatePem: string;
  readonly keyPem: string;
  /** Authorities whose certificates a peer may show. */
  readonly trustBundlePem: string;
}

export interface CredentialSource {
  /** Undefined until there is something valid to show. */
  current(): TlsCredentials | undefined;
  /** Called after `current()` changed; the returned function unsubscribes. */
  onChange(listener: () => void): () => void;
}

/** Resolves once there are credentials; rejects when the signal is aborted first. */
export function untilCredentials(source: CredentialSource, signal: AbortSignal): Promise<TlsCredentials> {
  return new Promise((resolve, reject) => {
    const stop = source.onChange(check);
    const abort = () => {
      stop();
      reject(signal.reason);
    };
    function check(): void {
      const credentials = source.current();
      if (credentials === undefined) return;
      stop();
      signal.removeEventListener('abort', abort);
      resolve(credentials);
    }
    if (signal.aborted) return abort();
    signal.addEventListener('abort', abort, { once: true });
    check();
  });
}
