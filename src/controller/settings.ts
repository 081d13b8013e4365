/** The controller's settings, from its environment: all mistakes named at once. */
import { parseDuration } from '../api/duration.ts';
import { parseQuantity } from '../api/quantity.ts';
import { DEFAULT_RESOURCES, type Resources } from '../reconcilers/operator.ts';
import { type Environment, readVariables } from '../runtime/configuration.ts';

/** `prefer`: where every node's runtime has them. */
export type UserNamespaceMode = 'require' | 'prefer' | 'off';

export interface Settings {
  readonly namespace: string;
  readonly podName: string;
  readonly trustDomain: string;
  /** Of the sidecar and launcher of tool pods. */
  readonly image: string;
  readonly userNamespaces: UserNamespaceMode;
  readonly resources: Resources;
  /** The cluster has a model gateway; egress knows where. */
  readonly modelGateway: boolean;
  /** How long a ToolCall is kept after its end. */
  readonly callRetentionMs: number;
  /** Edge, for its signer. */
  readonly edge: { readonly host: string; readonly port: number };
  readonly trustFile: string;
  readonly tokenFile: string;
}

/** Environment variable of each default: `OZ0_TOOL_LIMIT_MEMORY` and so on. */
const AMOUNTS = [
  ['cpu', 'CPU'],
  ['memory', 'MEMORY'],
  ['ephemeral-storage', 'EPHEMERAL_STORAGE'],
] as const;

/** @throws ConfigurationError that names each variable that is missing or wrong */
export function readSettings(environment: Environment): Settings {
  const { problems, text, port, check } = readVariables(environment);
  const amounts = (prefix: string, defaults: Resources['limits']): Resources['limits'] => {
    const read = AMOUNTS.map(([amount, suffix]) => {
      const name = `${prefix}_${suffix}`;
      const value = text(name, defaults[amount]);
      if (parseQuantity(value) === undefined) problems.push(`  ${name}: must be a quantity such as 50m or 64Mi`);
      return [amount, value];
    });
    return Object.fromEntries(read);
  };
  const namespace = text('OZ0_NAMESPACE');
  const mode = text('OZ0_USER_NAMESPACES', 'prefer');
  if (!isMode(mode)) problems.push('  OZ0_USER_NAMESPACES: must be require, prefer or off');
  const retention = parseDuration(text('OZ0_CALL_RETENTION', '24h'));
  if (retention === undefined || retention < 60_000) {
    problems.push('  OZ0_CALL_RETENTION: must be a duration such as 24h, at least 1m');
  }
  const settings: Settings = {
    namespace,
    podName: text('OZ0_POD_NAME'),
    trustDomain: text('OZ0_TRUST_DOMAIN'),
    image: text('OZ0_IMAGE'),
    userNamespaces: isMode(mode) ? mode : 'prefer',
    resources: {
      requests: amounts('OZ0_TOOL_REQUEST', DEFAULT_RESOURCES.requests),
      limits: amounts('OZ0_TOOL_LIMIT', DEFAULT_RESOURCES.limits),
    },
    modelGateway: environment['OZ0_MODEL_GATEWAY'] === 'true',
    callRetentionMs: retention ?? 0,
    edge: { host: text('OZ0_EDGE_HOST', `oz0-edge.${namespace}.svc`), port: port('OZ0_EDGE_PORT', 443) },
    trustFile: text('OZ0_TRUST_FILE', '/oz0/trust/ca.crt'),
    tokenFile: text('OZ0_TOKEN_FILE', '/oz0/identity/token'),
  };
  for (const [amount] of AMOUNTS) {
    const { requests, limits } = settings.resources;
    if ((parseQuantity(requests[amount]) ?? 0n) > (parseQuantity(limits[amount]) ?? 0n)) {
      problems.push(`  the default request of ${amount} is over its limit`);
    }
  }
  check();
  return settings;
}

function isMode(value: string): value is UserNamespaceMode {
  return value === 'require' || value === 'prefer' || value === 'off';
}
