/** Bounds of the credential proxy; a test narrows them. */

export interface ProxyLimits {
  readonly maxConnections: number;
  readonly maxRequestHeadBytes: number;
  readonly maxResponseHeadBytes: number;
  readonly maxRequestBodyBytes: number;
  readonly maxResponseBodyBytes: number;
  /** For the first request of a connection, and between two. */
  readonly firstByteMs: number;
  readonly keepAliveMs: number;
  /** From a head's first byte to its last. */
  readonly headMs: number;
  readonly requestBodyIdleMs: number;
  /** To an answer's head, and between two parts of its body; models think for minutes. */
  readonly responseIdleMs: number;
  readonly handshakeMs: number;
  readonly connectMs: number;
  /** Without a byte in either direction. */
  readonly tunnelIdleMs: number;
}

export const DEFAULT_LIMITS: ProxyLimits = {
  maxConnections: 256,
  maxRequestHeadBytes: 16 * 1024,
  maxResponseHeadBytes: 64 * 1024,
  maxRequestBodyBytes: 256 * 1024 * 1024,
  maxResponseBodyBytes: 4 * 1024 * 1024 * 1024,
  firstByteMs: 10_000,
  keepAliveMs: 60_000,
  headMs: 10_000,
  requestBodyIdleMs: 60_000,
  responseIdleMs: 600_000,
  handshakeMs: 10_000,
  connectMs: 15_000,
  tunnelIdleMs: 900_000,
};
