import { describe, expect, test } from 'vitest';
import { judge } from '../../api/judge.ts';
import { tool as toolKind } from '../../api/tool.ts';
import type { KubeObject, Sensed } from '../../engine/contract.ts';
import type { Status } from '../../engine/status.ts';
import {
  aConnection,
  aPlugin,
  aPluginTool,
  aRemoteTool,
  aTool,
  IMAGE,
  messageOf,
  OPERATOR,
  observe,
  statusOf,
  verdict,
} from '../testing/objects.ts';
import { anAnswer, HASH, live, NOT_READY, podOf, TRUST } from '../testing/tools.ts';
import { TEMPLATE_ANNOTATION } from './pod.ts';
import { toolReconciler } from './reconcile.ts';

const reconciler = toolReconciler(OPERATOR, () => Promise.reject(new Error('not asked')));

function wantedWorkload(tool: KubeObject): KubeObject {
  const outcome = reconciler.reconcile(observe(reconciler, tool));
  const found = outcome.do === 'converge' ? outcome.children.at(-1) : undefined;
  if (!found) throw new Error('no workload');
  return found;
}

interface Scene {
  readonly tool?: KubeObject;
  readonly workload?: KubeObject | 'none';
  readonly pods?: readonly KubeObject[];
  readonly policies?: readonly KubeObject[];
  readonly connections?: readonly KubeObject[];
  readonly trust?: KubeObject | 'none';
  readonly listing?: unknown;
  readonly trouble?: unknown;
  /** Another template, or another pod, was asked. */
  readonly listingKey?: string;
}

const TOOL = aTool();
const WORKLOAD = live(wantedWorkload(TOOL));
const READY_POD = podOf(WORKLOAD, 'a');
const BAD_POD = podOf(WORKLOAD, 'b', NOT_READY);
const STARTING = { numberReady: 1, numberAvailable: 1 };

function sensed(value: unknown, pod: KubeObject, key?: string): Sensed {
  const template = pod.metadata.annotations?.[TEMPLATE_ANNOTATION];
  const about = key ?? `${template}/${pod.metadata.uid}`;
  if (value instanceof Error) return { state: 'failed', key: about, problem: value.message, ageMs: 0 };
  return value === undefined ? { state: 'none' } : { state: 'ok', key: about, value, ageMs: 0 };
}

function see(scene: Scene): Status {
  const {
    tool = TOOL,
    workload = WORKLOAD,
    pods = [READY_POD],
    policies = [],
    connections = [],
    trust = TRUST,
  } = scene;
  return statusOf(reconciler, tool, {
    children: workload === 'none' ? [] : [workload],
    reads: { pods, policies, connections, trust: trust === 'none' ? [] : [trust] },
    sensed: {
      listing: sensed(scene.listing, pods[0] ?? READY_POD, scene.listingKey),
      trouble: sensed(scene.trouble, pods.at(-1) ?? READY_POD),
    },
  });
}

const WELL: Scene = { listing: anAnswer() };

describe('Accepted: what only other objects, or this version, can refuse', () => {
  const accept = (tool: KubeObject, plugins: readonly KubeObject[] = []) => {
    const seen = observe(reconciler, tool, { reads: { plugin: plugins } });
    return { does: reconciler.reconcile(seen).do, status: statusOf(reconciler, tool, { reads: { plugin: plugins } }) };
  };

  test.for<[string, KubeObject, KubeObject[], string, string]>([
    ['[K02] a Tool by itself', aTool(), [], 'converge', 'True Accepted'],
    ["[K03] a plugin's own code", aPluginTool(), [aPlugin()], 'converge', 'True Accepted'],
    ['an image of a plugin', aPluginTool({ mcp: undefined, image: IMAGE }), [aPlugin()], 'converge', 'True Accepted'],
    ['[K04] a package', aTool({ image: undefined, package: 'npm:a@1.0.0' }), [], 'hold', 'False SourceNotSupported'],
    ['[S09] a model that the cluster has not', aTool({ usesModel: true }), [], 'hold', 'False NoModelGateway'],
    ['[K06] a remote server', aTool({ image: undefined, url: 'https://a.example/' }), [], 'converge', 'True Accepted'],
    [
      '[N07] a remote server whose host a Connection would say',
      aTool({ image: undefined, url: 'https://{params.host}/mcp' }),
      [],
      'hold',
      'False ParameterMissing',
    ],
    ['a Plugin that is gone', aPluginTool(), [], 'hold', 'False PluginMissing'],
    [
      'a Plugin that did not make it',
      aPluginTool({}, { ownerReferences: [] }),
      [aPlugin()],
      'hold',
      'False PluginNotOwner',
    ],
    [
      'a Plugin of that name that came later',
      aPluginTool(),
      [aPlugin({}, { uid: 'other' })],
      'hold',
      'False PluginNotOwner',
    ],
    ['a Plugin without an image', aPluginTool(), [aPlugin({ source: undefined })], 'hold', 'False PluginWithoutImage'],
    [
      'more than a process can be given',
      aTool({ env: Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`V${index}`, 'x'.repeat(4000)])) }),
      [],
      'hold',
      'False ConfigurationTooLarge',
    ],
  ])('%s', ([, tool, plugins, does, accepted]) => {
    const seen = accept(JSON.parse(JSON.stringify(tool)), plugins);
    expect(seen.does).toBe(does);
    expect(verdict(seen.status, 'Accepted')).toBe(accepted);
    if (does === 'hold') {
      expect(verdict(seen.status, 'Stalled')).toMatch(/^True/);
      expect(verdict(seen.status, 'Listed')).toBe('Unknown NotAccepted');
    }
  });

  test('[K05] a tag is warned about, a digest is not', () => {
    const tagged = aTool({ image: { ...IMAGE, reference: 'ghcr.example/acme/tool:2' } });
    expect(messageOf(accept(tagged).status, 'Accepted')).toContain('digest');
    expect(messageOf(accept(aTool()).status, 'Accepted')).toBe('');
  });

  test('[case 114] a Tool that cannot be read is the engine to refuse, with the field named', () => {
    expect(reconciler.parse({ ...aTool(), spec: { image: { reference: 7 } } })).toMatchObject({
      ok: false,
      problem: expect.stringContaining('spec.image.reference'),
    });
  });

  test('an old status that no longer fits does not make the Tool unreadable', () => {
    expect(reconciler.parse(aTool({}, {}, { listing: 'of an earlier version' }))).toMatchObject({ ok: true });
  });
});

describe('Connected: whether pods have what the Tool needs', () => {
  const secret = aTool({ secrets: ['TOKEN'] });
  const connection = aConnection({ tools: ['everything'] });
  const workloadOfTool = (tool: KubeObject, ...connections: KubeObject[]) => {
    const outcome = reconciler.reconcile(observe(reconciler, tool, { reads: { connections } }));
    const wanted = outcome.do === 'converge' ? outcome.children.at(-1) : undefined;
    if (!wanted) throw new Error('no workload');
    return wanted;
  };
  /** With the workload that the Tool and its Connections come to. */
  const given = (tool: KubeObject, scene: Scene, ...connections: KubeObject[]): Scene => {
    const status = scene.pods?.some((pod) => pod.metadata.name === 'b') ? STARTING : {};
    const workload = live(workloadOfTool(tool, ...connections), status);
    const pods = (scene.pods ?? [READY_POD]).map((pod) =>
      podOf(workload, pod.metadata.name, pod.metadata.name === 'b' ? NOT_READY : {}),
    );
    return { ...scene, tool, workload, pods, connections };
  };
  const lacking = (name: string, problem: 'missing' | 'empty' | 'malformed'): Scene => ({
    pods: [BAD_POD],
    trouble: anAnswer({ podUid: 'b-uid', phase: 'Down', secrets: { problems: [{ name, problem }] } }),
  });
  const MCP = aRemoteTool({}, { name: 'everything' });

  test.for<[string, Scene, string]>([
    ['there is nothing', WELL, 'True NothingToConnect'],
    ['nobody said', given(secret, {}), 'Unknown Connecting'],
    ['the pods have it', given(secret, WELL), 'True Connected'],
    ['[case 81] a Secret is missing', given(secret, lacking('TOKEN', 'missing')), 'False SecretMissing'],
    ['[case 81] a key is empty', given(secret, lacking('TOKEN', 'empty')), 'False SecretEmpty'],
    ['a value cannot be sent', given(secret, lacking('TOKEN', 'malformed')), 'False SecretMalformed'],
    [
      'a Secret went while its pod takes calls',
      given(secret, { listing: anAnswer({ secrets: { problems: [{ name: 'TOKEN', problem: 'missing' }] } }) }),
      'False SecretMissing',
    ],
    ['a problem of a secret that it has not', given(secret, lacking('OTHER', 'missing')), 'Unknown Connecting'],
    ['the pods have that of a Connection', given(TOOL, WELL, connection), 'True Connected'],
    [
      'the pods there are were made before the Connection',
      { ...WELL, connections: [connection] },
      'Unknown Connecting',
    ],
    ['a remote server that answers', given(MCP, WELL), 'True Connected'],
    [
      'a remote server that does not',
      given(MCP, { pods: [BAD_POD], trouble: anAnswer({ podUid: 'b-uid', phase: 'Down', problem: 'status 401' }) }),
      'False ServerUnreachable',
    ],
  ])('%s', ([, scene, wanted]) => {
    const status = see(scene);
    expect(verdict(status, 'Connected')).toBe(wanted);
    if (!wanted.startsWith('True')) expect(verdict(status, 'Ready')).not.toMatch(/^True/);
    expect(judge(toolKind.schema, { ...(scene.tool ?? TOOL), status })).toMatchObject({ ok: true });
  });

  test('[case 81] every condition that waits for it names the key, and status does', () => {
    const status = see(given(secret, lacking('TOKEN', 'missing')));
    for (const type of ['Connected', 'Installed', 'Listed']) {
      expect(messageOf(status, type), type).toMatch(/key TOKEN of Secret everything is missing/i);
    }
    expect(verdict(status, 'Installed')).toBe('False SecretMissing');
    expect(status['secrets']).toEqual([{ secret: 'everything', key: 'TOKEN', problem: 'missing' }]);
  });

  test('status names the Connections whose credentials the pods have, once they do', () => {
    expect(see(given(TOOL, WELL, connection))['connections']).toEqual(['tracker']);
    expect(see({ ...WELL, connections: [connection] })).not.toHaveProperty('connections');
  });

  test('[N12] a header that a binding takes the place of is said', () => {
    const spec = { secrets: ['A', 'B'], headers: { 'X-Key': '$'.concat('{A}') } };
    const inject = [{ secret: 'B', host: 'mcp.example.com', header: 'x-key' }];
    expect(messageOf(see(given(aRemoteTool({ ...spec, inject }), WELL)), 'Accepted')).toBe(
      'Headers that are not sent as written, since a secret is bound there: X-Key.',
    );
  });

  test('a host that a secret is bound to and that the Tool may not reach is said', () => {
    const scene = given(aTool({ secrets: ['TOKEN'], inject: [{ secret: 'TOKEN', host: 'api.example.com' }] }), WELL);
    expect(messageOf(see(scene), 'Accepted')).toBe(
      'Secrets are bound to hosts that its hosts do not name: api.example.com.',
    );
  });
});

describe('Installed: what pods say', () => {
  const pod = (status: Record<string, unknown>) => podOf(WORKLOAD, 'b', { ...NOT_READY, ...status });
  const waiting = (reason: string, container = 'tool', last?: object) => ({
    containerStatuses: [
      {
        name: container,
        state: { waiting: { reason, message: `about ${reason}` } },
        ...(last ? { lastState: { terminated: last } } : {}),
      },
    ],
  });
  const behind = (bad: KubeObject, more: Scene = {}): Scene => ({
    workload: live(wantedWorkload(TOOL), STARTING),
    pods: [READY_POD, bad],
    listing: anAnswer(),
    ...more,
  });

  test.for<[string, Scene, string]>([
    ['no workload yet', { workload: 'none', pods: [] }, 'Unknown Installing'],
    ['not looked at yet', { workload: live(wantedWorkload(TOOL), { observedGeneration: 0 }) }, 'Unknown Installing'],
    [
      '[S06] no node fits',
      { workload: live(wantedWorkload(TOOL), { desiredNumberScheduled: 0 }), pods: [] },
      'False NoEligibleNode',
    ],
    ['all ready', WELL, 'True RolledOut'],
    ['one starts', behind(BAD_POD), 'Unknown RollingOut'],
    ['image not found', behind(pod(waiting('ImagePullBackOff'))), 'False ImageUnavailable'],
    ['image of no right name', behind(pod(waiting('InvalidImageName'))), 'False ImageUnavailable'],
    ['container cannot be made', behind(pod(waiting('CreateContainerConfigError'))), 'False CannotStart'],
    ['runtime cannot start it', behind(pod(waiting('RunContainerError'))), 'False CannotStart'],
    [
      'container ends again and again',
      behind(pod(waiting('CrashLoopBackOff', 'tool', { exitCode: 3 }))),
      'False Crashing',
    ],
    [
      '[S08] memory limit passed',
      behind(pod(waiting('Other', 'tool', { reason: 'OOMKilled', exitCode: 137 }))),
      'False Crashing',
    ],
    [
      'no node for a pod',
      behind(pod({ conditions: [{ type: 'PodScheduled', status: 'False', message: '0/2 nodes are available' }] })),
      'False Unschedulable',
    ],
    ['evicted', behind(pod({ phase: 'Failed', reason: 'Evicted', message: 'low on disk' })), 'False Evicted'],
    [
      'a pod on its way out says nothing',
      behind(podOf(WORKLOAD, 'b', { ...NOT_READY, ...waiting('ImagePullBackOff') }, { deletionTimestamp: 'now' })),
      'Unknown RollingOut',
    ],
    [
      'a pod of an earlier template says nothing',
      behind(podOf(WORKLOAD, 'b', { ...NOT_READY, ...waiting('ImagePullBackOff') }, { annotations: {} })),
      'Unknown RollingOut',
    ],
    ['no CA in the namespace yet', behind(BAD_POD, { trust: 'none' }), 'Unknown WaitingForTrust'],
    [
      "somebody's ConfigMap of that name",
      behind(BAD_POD, { trust: { ...TRUST, metadata: { name: 'oz0' } } }),
      'False TrustForeign',
    ],
    [
      '[S08] the server does not come up',
      behind(BAD_POD, {
        trouble: anAnswer({ podUid: 'b-uid', phase: 'Down', problem: 'exit code 1: no such module' }),
      }),
      'False ServerFails',
    ],
    [
      'its walls were not seen to hold yet, so nothing of it was started',
      behind(BAD_POD, {
        trouble: anAnswer({
          podUid: 'b-uid',
          phase: 'Down',
          problem: 'the sandbox is not proved yet',
          sandbox: { ...anAnswer().sandbox, holds: false },
        }),
      }),
      'Unknown RollingOut',
    ],
    [
      'the sidecar waits for something',
      behind(BAD_POD, { trouble: anAnswer({ podUid: 'b-uid', phase: 'Starting', problem: 'egress does not answer' }) }),
      'Unknown RollingOut',
    ],
    [
      'an answer about another pod says nothing',
      behind(BAD_POD, { trouble: anAnswer({ podUid: 'x', phase: 'Down', problem: 'x' }) }),
      'Unknown RollingOut',
    ],
  ])('%s', ([, scene, wanted]) => {
    const status = see(scene);
    expect(verdict(status, 'Installed')).toBe(wanted);
    if (wanted.startsWith('False')) expect(verdict(status, 'Ready'), '[O02] Degraded').toBe(wanted);
    if (wanted.startsWith('Unknown')) expect(verdict(status, 'Ready'), '[O02] Progressing').toMatch(/^Unknown/);
  });

  test('[case 115] pods that are not made at all: where the reason is to be found', () => {
    const none = { currentNumberScheduled: 0, numberReady: 0, numberAvailable: 0, updatedNumberScheduled: 0 };
    const status = see({ workload: live(wantedWorkload(TOOL), none), pods: [] });
    expect(verdict(status, 'Installed')).toBe('Unknown RollingOut');
    expect(messageOf(status, 'Installed')).toContain('kubectl describe daemonset oz0t-everything -n acme');
    expect(messageOf(see(behind(BAD_POD)), 'Installed')).not.toContain('describe');
  });

  test('the message says which pod, where, and why', () => {
    const status = see(behind(pod(waiting('CrashLoopBackOff', 'tool', { exitCode: 3, message: 'bye' }))));
    expect(messageOf(status, 'Installed')).toBe(
      '1 of 2 pods take calls. Pod b on node node1: container tool ended with exit code 3: bye',
    );
  });

  test.for<[string, Record<string, unknown>, string]>([
    ['rolled out', {}, 'True RolledOut'],
    ['old pods still there', { replicas: 3 }, 'Unknown RollingOut'],
    [
      'refused by a quota',
      {
        readyReplicas: 0,
        availableReplicas: 0,
        conditions: [{ type: 'ReplicaFailure', status: 'True', message: 'exceeded quota' }],
      },
      'False PodsRefused',
    ],
  ])('a Deployment: %s', ([, status, wanted]) => {
    const tool = aTool({ affinity: 'any', replicas: 2 });
    expect(verdict(see({ tool, workload: live(wantedWorkload(tool), status), pods: [] }), 'Installed')).toBe(wanted);
  });
});

describe('Sandboxed: which walls hold', () => {
  const sandbox = (report: object) => anAnswer({ sandbox: { ...anAnswer().sandbox, ...report } });
  const policy = (name: string, spec: object): KubeObject => ({
    apiVersion: 'networking.k8s.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name, namespace: 'acme' },
    spec,
  });

  test.for<[string, Scene, string]>([
    ['nobody said', {}, 'Unknown SandboxNotSeen'],
    ['[S01] all hold', WELL, 'True SandboxHolds'],
    [
      '[S05] the API server answered',
      { listing: sandbox({ holds: false, open: ['10.96.0.1:443'] }) },
      'False SandboxOpen',
    ],
    ['not proved yet', { listing: sandbox({ holds: false }) }, 'Unknown SandboxNotSeen'],
    [
      '[I12] one pod of two is open',
      {
        workload: live(wantedWorkload(TOOL), STARTING),
        pods: [READY_POD, BAD_POD],
        listing: anAnswer(),
        trouble: { ...sandbox({ holds: false, open: ['10.96.0.1:443'] }), podUid: 'b-uid' },
      },
      'False SandboxOpen',
    ],
    [
      '[case 97] another policy opens',
      { ...WELL, policies: [policy('dns', { podSelector: {}, egress: [{}] })] },
      'False WidenedByPolicy',
    ],
    [
      'a policy that only denies',
      { ...WELL, policies: [policy('deny', { podSelector: {}, policyTypes: ['Egress'] })] },
      'True SandboxHolds',
    ],
    [
      'a policy of other pods',
      { ...WELL, policies: [policy('web', { podSelector: { matchLabels: { app: 'web' } }, egress: [{}] })] },
      'True SandboxHolds',
    ],
    [
      'its own policy',
      { ...WELL, policies: [policy('oz0t-everything', { podSelector: {}, egress: [{}] })] },
      'True SandboxHolds',
    ],
  ])('%s', ([, scene, wanted]) => {
    expect(verdict(see(scene), 'Sandboxed')).toBe(wanted);
  });

  test('[S01] the message says what is in force', () => {
    expect(messageOf(see(WELL), 'Sandboxed')).toContain('user namespace of its own: yes. Limit on processes: 1024.');
    const less = { listing: sandbox({ userNamespace: 'unknown', pidsLimit: 'none' }) };
    expect(messageOf(see(less), 'Sandboxed')).toContain(
      'user namespace of its own: unknown. Limit on processes: none.',
    );
  });
});

describe('Listed: only what a sidecar really answered', () => {
  const functions = (count: number) =>
    Array.from({ length: count }, (_, index) => ({
      name: `f${String(index).padStart(4, '0')}`,
      kind: 'ReadOnly' as const,
      hash: 'h',
    }));

  test.for<[string, Scene, string]>([
    ['nobody ready', { pods: [BAD_POD] }, 'Unknown NoReadyPod'],
    ['not asked yet', {}, 'Unknown Asking'],
    ['listed', WELL, 'True Listed'],
    [
      '[case 55] an empty listing is no success',
      { listing: anAnswer({ listing: { hash: 'h', functions: [] } }) },
      'False NothingListed',
    ],
    ['not reached', { listing: new Error('connection refused') }, 'Unknown SidecarUnreachable'],
    [
      'answered by another pod of the template',
      { ...WELL, listingKey: `${READY_POD.metadata.annotations?.[TEMPLATE_ANNOTATION]}/gone` },
      'True Listed',
    ],
    ['answered by a pod of an earlier template', { ...WELL, listingKey: 'earlier/a-uid' }, 'Unknown Asking'],
  ])('%s', ([, scene, wanted]) => {
    const status = see(scene);
    expect(verdict(status, 'Listed')).toBe(wanted);
    expect('listing' in status, '[case 115] no stale listing').toBe(wanted === 'True Listed');
  });

  test('[case 115] Ready is True with a real listing only', () => {
    expect(verdict(see({}), 'Ready')).toMatch(/^Unknown/);
    expect(verdict(see(WELL), 'Ready')).toBe('True Ready');
    expect(see(WELL)['listing']).toEqual({
      hash: `sha256:${HASH}`,
      count: 1,
      functions: [{ name: 'get_pr', kind: 'ReadOnly' }],
    });
    expect(see(WELL)['pods']).toEqual({ ready: 2, desired: 2 });
  });

  const before = see(WELL);

  test('a new leader keeps the word of the last one until it has asked', () => {
    const status = see({ tool: aTool({}, {}, before) });
    expect(verdict(status, 'Ready')).toBe('True Ready');
    expect(status['listing']).toEqual(before['listing']);
  });

  test.for<[string, Scene]>([
    ['another generation', { tool: aTool({}, { generation: 2 }, before) }],
    ['it asked in vain', { tool: aTool({}, {}, before), listing: new Error('refused') }],
    ['no pod is ready', { tool: aTool({}, {}, before), pods: [BAD_POD] }],
  ])('but not once %s', ([, scene]) => {
    const status = see(scene);
    expect(verdict(status, 'Listed')).toMatch(/^Unknown/);
    expect(status).not.toHaveProperty('listing');
  });

  test('[case 122] a large listing is counted, and named in part', () => {
    const status = see({ listing: anAnswer({ listing: { hash: 'h', functions: functions(10_000) } }) });
    expect(status['listing']).toMatchObject({ count: 10_000 });
    expect((status['listing'] as { functions: unknown[] }).functions).toHaveLength(500);
    expect(JSON.stringify(status).length).toBeLessThan(100_000);
  });

  test('[case 129] names come from a server that may be hostile: shown without control characters, and cut', () => {
    const name = `a\u001b[31m\n\u202e${'x'.repeat(300)}`;
    const status = see({
      listing: anAnswer({ listing: { hash: 'h', functions: [{ name, kind: 'Undeclared', hash: 'h' }] } }),
    });
    const shown = (status['listing'] as { functions: { name: string }[] }).functions[0]?.name ?? '';
    expect(shown).toMatch(/^a\ufffd\[31m\ufffd\ufffdx+$/);
    expect(shown).toHaveLength(128);
  });
});

test.for<[string, Scene]>([
  ['well', WELL],
  [
    'large',
    {
      listing: anAnswer({
        listing: { hash: 'h'.repeat(500), functions: [{ name: '😀'.repeat(200), kind: 'Additive', hash: '' }] },
      }),
    },
  ],
  ['at first', { workload: 'none', pods: [] }],
])('[case 115] the status fits its schema: %s', ([, scene]) => {
  expect(judge(toolKind.schema, { ...aTool(), status: see(scene) })).toMatchObject({ ok: true });
});

describe('what is asked of sidecars', () => {
  const subjectOf = (name: string, pods: readonly KubeObject[]) => {
    const sensor = reconciler.sensors.find((candidate) => candidate.name === name);
    return sensor?.subject(observe(reconciler, TOOL, { children: [WORKLOAD], reads: { pods } }));
  };
  const input = (uid: string) => ({ namespace: 'acme', tool: 'everything', podUid: uid, address: '10.1.0.7' });

  test('the listing of a pod that takes calls, always the same one', () => {
    const pods = [podOf(WORKLOAD, 'c'), READY_POD, BAD_POD];
    expect(subjectOf('listing', pods)?.input).toEqual(input('a-uid'));
    expect(subjectOf('listing', [...pods].reverse())?.input).toEqual(input('a-uid'));
  });

  test('why another takes none', () => {
    expect(subjectOf('trouble', [READY_POD, BAD_POD])?.input).toEqual(input('b-uid'));
  });

  test.for<[string, KubeObject]>([
    ['of an earlier template', podOf(WORKLOAD, 'd', {}, { annotations: {} })],
    ['on its way out', podOf(WORKLOAD, 'd', {}, { deletionTimestamp: 'now' })],
    ['without an address', podOf(WORKLOAD, 'd', { podIP: undefined })],
    ['whose sidecar does not run', podOf(WORKLOAD, 'd', { initContainerStatuses: [] })],
  ])('never of a pod %s', ([, pod]) => {
    expect(subjectOf('listing', [pod])).toBeUndefined();
    expect(subjectOf('trouble', [pod])).toBeUndefined();
  });
});
