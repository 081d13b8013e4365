/** The pod of a tool: launcher, sidecar and the tool's container, as `src/README.md` says under "Tool pod". */
import { createHash } from 'node:crypto';
import { parseQuantity } from '../../api/quantity.ts';
import { SIDECAR_UID } from '../../api/settings.ts';
import { affinityOf, type ToolSpec } from '../../api/tool.ts';
import {
  AUDIENCE_IDENTITY,
  LABEL_PLUGIN,
  LABEL_TOOL,
  PORT_HEALTH,
  PORT_TLS,
  TRUST_CONFIG_MAP,
  toolResourceName,
} from '../../domain/naming.ts';
import { MANAGED_BY, type Operator } from '../operator.ts';
import type { Credentials, MountedSecret } from './credentials.ts';
import { runsOf } from './runs.ts';
import { type ProcessSource, type Source, sidecarConfig, sorted, timeoutMsOf } from './source.ts';
import type { WrittenTool } from './tool.ts';

/** On the pods: which template they are of. A pod of an earlier one says nothing about the Tool as it is written now. */
export const TEMPLATE_ANNOTATION = 'oz0.ai/template';
/** On the pods: which version of the Tool they run, as its snapshot names it. */
export const RUNS_ANNOTATION = 'oz0.ai/runs';

const TOOL_UID = 65532;
/** Owned by root, so readable by all: but only the sidecar mounts it. A group for it would be one of the tool's container too. */
const SECRET_MODE = 0o444;
const GRACE_MAX_SECONDS = 600;
/** Beyond the drain, so that the sidecar and not the kubelet ends it. */
const GRACE_MARGIN_SECONDS = 5;

const LAUNCHER_RESOURCES = {
  requests: { cpu: '10m', memory: '16Mi', 'ephemeral-storage': '16Mi' },
  limits: { cpu: '500m', memory: '64Mi', 'ephemeral-storage': '64Mi' },
};
const SIDECAR_RESOURCES = {
  requests: { cpu: '10m', memory: '48Mi', 'ephemeral-storage': '16Mi' },
  limits: { cpu: '1', memory: '128Mi', 'ephemeral-storage': '224Mi' },
};
/** The journal's file, its successor while that is written, and what is written at once (`sidecar/journal/journal.ts`). */
const JOURNAL_SIZE = '96Mi';

export interface PodTemplate {
  readonly metadata: { readonly labels: Record<string, string>; readonly annotations: Record<string, string> };
  readonly spec: Record<string, unknown>;
}

/** Labels of everything of a tool; the first selects its pods and never changes, since selectors cannot. */
export function toolLabels({ metadata, spec }: WrittenTool): Record<string, string> {
  return {
    ...toolSelector(metadata.name),
    ...(spec.plugin === undefined ? {} : { [LABEL_PLUGIN]: spec.plugin }),
    ...MANAGED_BY,
  };
}

export function toolSelector(name: string): Record<string, string> {
  return { [LABEL_TOOL]: name };
}

/** Byte for byte the same for the same Tool, Plugin and operator, whatever the order in which maps were read. */
export function podTemplate(
  tool: WrittenTool,
  source: Source,
  credentials: Credentials,
  operator: Operator,
): PodTemplate {
  const labels = toolLabels(tool);
  const spec = podSpec(tool, source, credentials, operator);
  const hash = createHash('sha256').update(JSON.stringify({ labels, spec })).digest('hex').slice(0, 16);
  const annotations = { [RUNS_ANNOTATION]: runsOf(tool, source, credentials), [TEMPLATE_ANNOTATION]: hash };
  return { metadata: { labels, annotations }, spec };
}

function podSpec(
  tool: WrittenTool,
  source: Source,
  credentials: Credentials,
  operator: Operator,
): Record<string, unknown> {
  const { runtimeClassName, nodeSelector = {}, tolerations } = tool.spec;
  const pullSecrets = source.kind === 'process' ? source.pullSecrets : [];
  const drainSeconds = Math.ceil(timeoutMsOf(tool) / 1000) + 10;
  return {
    serviceAccountName: toolResourceName(tool.metadata.name),
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    ...(operator.userNamespaces ? { hostUsers: false } : {}),
    ...(runtimeClassName === undefined ? {} : { runtimeClassName }),
    nodeSelector: sorted({ 'kubernetes.io/os': 'linux', ...nodeSelector }),
    ...(tolerations === undefined ? {} : { tolerations }),
    ...(pullSecrets.length > 0 ? { imagePullSecrets: pullSecrets.map((name) => ({ name })) } : {}),
    // A tool resolves no names: what it may reach is resolved by egress.
    dnsPolicy: 'None',
    dnsConfig: { nameservers: ['127.0.0.1'] },
    terminationGracePeriodSeconds: Math.min(drainSeconds, GRACE_MAX_SECONDS) + GRACE_MARGIN_SECONDS,
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    ...(source.kind === 'process'
      ? withProcess(tool, source, credentials, operator)
      : {
          containers: [sidecarContainer(tool, source, credentials, operator)],
          volumes: sidecarVolumes(credentials),
        }),
  };
}

function withProcess(
  tool: WrittenTool,
  source: ProcessSource,
  credentials: Credentials,
  operator: Operator,
): Record<string, unknown> {
  const resources = toolResources(tool.spec, operator);
  return {
    initContainers: [launcherContainer(operator), sidecarContainer(tool, source, credentials, operator)],
    containers: [
      {
        name: 'tool',
        image: source.image,
        command: ['/oz0/bin/launcher', 'run'],
        resources,
        securityContext: containerSecurity(tool.spec.runAsUser ?? TOOL_UID),
        volumeMounts: [
          { name: 'bin', mountPath: '/oz0/bin', readOnly: true },
          { name: 'run', mountPath: '/oz0/run', readOnly: true },
          { name: 'tmp', mountPath: '/tmp' },
        ],
      },
    ],
    volumes: [
      { name: 'bin', emptyDir: { sizeLimit: '16Mi' } },
      { name: 'run', emptyDir: { sizeLimit: '1Mi' } },
      { name: 'tmp', emptyDir: { sizeLimit: resources.limits['ephemeral-storage'] } },
      ...sidecarVolumes(credentials),
    ],
  };
}

/** What the sidecar alone mounts. */
function sidecarVolumes({ secrets }: Credentials): readonly Record<string, unknown>[] {
  return [
    { name: 'trust', configMap: { name: TRUST_CONFIG_MAP } },
    {
      name: 'identity',
      projected: {
        sources: [{ serviceAccountToken: { audience: AUDIENCE_IDENTITY, expirationSeconds: 3600, path: 'token' } }],
      },
    },
    { name: 'journal', emptyDir: { sizeLimit: JOURNAL_SIZE } },
    ...(secrets.length > 0
      ? [{ name: 'secrets', projected: { defaultMode: SECRET_MODE, sources: secretSources(secrets) } }]
      : []),
  ];
}

/**
 * The declared keys and no other. Optional, so that a pod with a missing Secret starts and its sidecar can say so. The kubelet puts
 * new values in; the template knows none, so a rotated one rolls no pod.
 */
function secretSources(secrets: readonly MountedSecret[]): readonly Record<string, unknown>[] {
  const names = [...new Set(secrets.map(({ secret }) => secret))];
  return names.map((name) => ({
    secret: {
      name,
      optional: true,
      items: secrets.filter(({ secret }) => secret === name).map(({ key, file }) => ({ key, path: file })),
    },
  }));
}

function launcherContainer({ image }: Operator): Record<string, unknown> {
  return {
    name: 'launcher',
    image,
    command: ['/app/launcher', 'install', '/oz0/bin/launcher'],
    resources: LAUNCHER_RESOURCES,
    securityContext: containerSecurity(SIDECAR_UID),
    volumeMounts: [{ name: 'bin', mountPath: '/oz0/bin' }],
  };
}

/** Beside a process it is a sidecar in Kubernetes' sense: started before it, which waits for the startup probe, and ended after it. */
function sidecarContainer(
  tool: WrittenTool,
  source: Source,
  credentials: Credentials,
  { image }: Operator,
): Record<string, unknown> {
  const process = source.kind === 'process';
  return {
    name: 'sidecar',
    image,
    // A small heap and no worker threads: each tool pays for its sidecar's memory.
    command: ['/usr/local/bin/node', '--max-semi-space-size=1', '--single-threaded', '/app/sidecar.mjs'],
    env: [
      { name: 'OZ0_SIDECAR', value: literal(sidecarConfig(tool, source, credentials)) },
      // Whose gateway alone may call.
      ...(affinityOf(tool.spec) === 'node'
        ? [{ name: 'OZ0_NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } }]
        : []),
    ],
    ...(process ? { restartPolicy: 'Always' } : {}),
    ports: [
      { name: 'tls', containerPort: PORT_TLS, protocol: 'TCP' },
      { name: 'health', containerPort: PORT_HEALTH, protocol: 'TCP' },
    ],
    // Until the sandbox was seen to hold, which may wait for the operator's own parts: no use in ending it meanwhile.
    startupProbe: {
      httpGet: { path: '/startedz', port: 'health' },
      periodSeconds: 1,
      timeoutSeconds: 2,
      failureThreshold: 900,
    },
    readinessProbe: {
      httpGet: { path: '/readyz', port: 'health' },
      periodSeconds: 2,
      timeoutSeconds: 2,
      failureThreshold: 2,
    },
    // Depends on nothing but the process' own turn, for minutes: the end of a sidecar is the end of the calls that run.
    livenessProbe: {
      httpGet: { path: '/livez', port: 'health' },
      periodSeconds: 30,
      timeoutSeconds: 10,
      failureThreshold: 4,
    },
    resources: SIDECAR_RESOURCES,
    securityContext: containerSecurity(SIDECAR_UID),
    volumeMounts: [
      ...(process ? [{ name: 'run', mountPath: '/oz0/run' }] : []),
      { name: 'trust', mountPath: '/oz0/trust', readOnly: true },
      { name: 'identity', mountPath: '/oz0/identity', readOnly: true },
      { name: 'journal', mountPath: '/oz0/journal' },
      ...(credentials.secrets.length > 0 ? [{ name: 'secrets', mountPath: '/oz0/secrets', readOnly: true }] : []),
    ],
  };
}

/** The kubelet puts variables in for `$(NAME)`, and one dollar for two: a text that is to arrive as it is has two for each. */
function literal(value: string): string {
  return value.replaceAll('$', () => '$$');
}

function containerSecurity(uid: number): Record<string, unknown> {
  return {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    readOnlyRootFilesystem: true,
    runAsGroup: uid,
    runAsNonRoot: true,
    runAsUser: uid,
  };
}

const AMOUNTS = ['cpu', 'memory', 'ephemeral-storage'] as const;

/** What the Tool says, completed from the operator's defaults: a default limit gives way to a larger request, a default request to a smaller limit. */
export function toolResources({ resources }: Pick<ToolSpec, 'resources'>, { resources: defaults }: Operator) {
  const requests: Record<string, string> = {};
  const limits: Record<string, string> = {};
  for (const name of AMOUNTS) {
    const request = text(resources?.requests?.[name]);
    const limit = text(resources?.limits?.[name]);
    requests[name] = request ?? smaller(defaults.requests[name], limit);
    limits[name] = limit ?? larger(defaults.limits[name], request);
  }
  return { requests, limits };
}

function text(value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : String(value);
}

function smaller(a: string, b: string | undefined): string {
  return b !== undefined && (parseQuantity(b) ?? 0n) < (parseQuantity(a) ?? 0n) ? b : a;
}

function larger(a: string, b: string | undefined): string {
  return b !== undefined && (parseQuantity(b) ?? 0n) > (parseQuantity(a) ?? 0n) ? b : a;
}
