/** Settings that a Tool and an entry of a Plugin share. */
import { DURATION, parseDuration } from './duration.ts';
import { environment, imageEnvironmentRule } from './environment.ts';
import { headers, remoteRules } from './headers.ts';
import { hostPattern } from './hosts.ts';
import { resources } from './resources.ts';
import { nodeSelector, runtimeClassName, tolerations } from './scheduling.ts';
import { choice, flag, integer, list, optional, type Rule, text, withDefault } from './schema.ts';
import { oneSourceRule } from './sources.ts';

/** User of the sidecar's process in every tool pod; no tool may be it. */
export const SIDECAR_UID = 65533;

const TIMEOUT_MAX_SECONDS = 30 * 60;

export const settingsFields = {
  env: optional(environment),
  hosts: optional(
    list(hostPattern, {
      description:
        'All that it may reach, by its way out: hosts, with a port where it is not 443, and `*.` for one label. Left out or empty, nothing.',
      max: 32,
      merge: 'set',
    }),
  ),
  headers: optional(headers),
  usesModel: optional(
    flag({
      description:
        "Whether it asks a model: it then finds the cluster's model gateway in `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL`. The key is put in on the way.",
    }),
  ),
  affinity: optional(
    choice(['node', 'any'], {
      description:
        '`node`: a pod on each eligible node, and a call runs on the node of the agent that makes it; for tools that touch the machine. `any`: a few pods anywhere; for tools without state. Left out, `node`, but `any` where `url` is set.',
    }),
  ),
  replicas: optional(
    integer({
      description:
        'Pods of a tool of affinity `any`. Left out, one at first, and an autoscaler or `kubectl scale` may change it.',
      min: 1,
      max: 100,
    }),
  ),
  timeout: withDefault(
    text({
      description: "A call's longest duration, such as `90s`, `1m30s` or `30m`.",
      min: 2,
      max: 16,
      pattern: DURATION,
      patternMessage: 'must be a duration such as 90s, 1m30s or 30m',
      rules: [
        {
          // A text that is no duration is the pattern's to refuse; here it must only not end the evaluation.
          cel: `!self.matches('${DURATION.source}') || self.size() < 2 || (duration(self) >= duration('1s') && duration(self) <= duration('${TIMEOUT_MAX_SECONDS}s'))`,
          test: (value) => {
            const duration = parseDuration(value);
            return duration === undefined || (duration >= 1000 && duration <= TIMEOUT_MAX_SECONDS * 1000);
          },
          message: 'must be from 1s to 30m',
        },
      ],
    }),
    '60s',
  ),
  concurrency: withDefault(
    integer({
      description: 'Calls that may run in one pod at once; a further one is refused as busy.',
      min: 1,
      max: 1024,
    }),
    8,
  ),
  runAsUser: optional(
    integer({
      description: "User id of the tool's process. Left out, 65532.",
      min: 1,
      max: 65535,
      rules: [
        {
          cel: `self != ${SIDECAR_UID}`,
          test: (uid) => uid !== SIDECAR_UID,
          message: `${SIDECAR_UID} is the sidecar's`,
        },
      ],
    }),
  ),
  resources: optional(resources),
  runtimeClassName: optional(runtimeClassName),
  nodeSelector: optional(nodeSelector),
  tolerations: optional(tolerations),
};

interface Placed {
  readonly affinity?: 'node' | 'any';
  readonly replicas?: number;
  readonly url?: unknown;
  readonly usesModel?: boolean;
}

/** Rules over a Tool's spec, and over a Plugin's entry. */
export const settingsRules = [
  oneSourceRule,
  imageEnvironmentRule,
  ...remoteRules,
  {
    cel: "!has(self.url) || !has(self.affinity) || self.affinity == 'any'",
    test: ({ url, affinity }: Placed) => url === undefined || affinity === undefined || affinity === 'any',
    message: 'a remote server has no node: any, or leave it out',
    field: '.affinity',
  },
  {
    cel: '!has(self.url) || !has(self.usesModel) || !self.usesModel',
    test: ({ url, usesModel }: Placed) => url === undefined || usesModel !== true,
    message: 'a remote server asks its own model: leave usesModel out',
    field: '.usesModel',
  },
  {
    cel: "!has(self.replicas) || has(self.url) || (has(self.affinity) && self.affinity == 'any')",
    test: ({ replicas, url, affinity }: Placed) => replicas === undefined || url !== undefined || affinity === 'any',
    message: 'goes with affinity any only: a tool of affinity node has one pod on each node',
    field: '.replicas',
  },
] as const satisfies readonly Rule<never>[];
