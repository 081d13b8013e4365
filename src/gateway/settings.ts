/** The gateway's settings, from its environment: all mistakes named at once. */
import { randomUUID } from 'node:crypto';
import { PORT_TLS } from '../domain/naming.ts';
import { type Environment, readVariables } from '../runtime/configuration.ts';

export interface Settings {
  readonly namespace: string;
  readonly ownNode: string;
  /** Of this pod: what it claimed before its container was started anew is its own. */
  readonly podUid: string;
  readonly trustDomain: string;
  /** Edge, for its signer. */
  readonly edge: { readonly host: string; readonly port: number };
  /** Told to clients. */
  readonly version: string;
  readonly trustFile: string;
  readonly tokenFile: string;
  readonly port: number;
  /** Origins of browsers that may call. */
  readonly allowedOrigins: ReadonlySet<string>;
  /** After SIGTERM: how long new calls are still taken, until no Service leads here any more. */
  readonly lingerMs: number;
  /** After that: how long running calls may go on. */
  readonly drainMs: number;
  /** Of a result that a model is given at once, by estimate; 0: any. */
  readonly resultTokens: number;
}

/** @throws ConfigurationError that names each variable that is missing or wrong */
export function readSettings(environment: Environment): Settings {
  const { problems, text, check } = readVariables(environment);
  const whole = (name: string, unset: number, max: number): number => {
    const value = Number(environment[name] || unset);
    if (Number.isInteger(value) && value >= 0 && value <= max) return value;
    problems.push(`  ${name}: must be a whole number from 0 to ${max}`);
    return unset;
  };
  const namespace = text('OZ0_NAMESPACE');
  const settings: Settings = {
    namespace,
    ownNode: text('OZ0_NODE'),
    podUid: text('OZ0_POD_UID', randomUUID()),
    trustDomain: text('OZ0_TRUST_DOMAIN'),
    edge: { host: text('OZ0_EDGE_HOST', `oz0-edge.${namespace}.svc`), port: whole('OZ0_EDGE_PORT', 443, 65_535) },
    version: text('OZ0_VERSION', '0.1.0'),
    trustFile: text('OZ0_TRUST_FILE', '/oz0/trust/ca.crt'),
    tokenFile: text('OZ0_TOKEN_FILE', '/oz0/identity/token'),
    port: whole('OZ0_PORT', PORT_TLS, 65_535),
    allowedOrigins: new Set((environment['OZ0_ALLOWED_ORIGINS'] ?? '').split(',').filter((origin) => origin !== '')),
    lingerMs: whole('OZ0_LINGER_MS', 5_000, 60_000),
    drainMs: whole('OZ0_DRAIN_MS', 600_000, 600_000),
    resultTokens: whole('OZ0_RESULT_TOKENS', 25_000, 1_000_000),
  };
  check();
  return settings;
}
