import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { judge } from '../../api/judge.ts';
import { tool as toolKind } from '../../api/tool.ts';
import type { SidecarStatus } from '../../domain/config/sidecar.ts';
import { BY_NAME_ONLY, type Definitions } from '../../domain/snapshot/difference.ts';
import { packListing } from '../../domain/snapshot/packListing.ts';
import { snapshotListing } from '../../domain/snapshot/snapshotListing.ts';
import type { KubeObject, Sensed } from '../../engine/contract.ts';
import { aTool, IMAGE, messageOf, OPERATOR, observe, statusOf, verdict } from '../testing/objects.ts';
import { anAnswer, live, NOT_READY, podOf, TRUST } from '../testing/tools.ts';
import { listingObjects } from './listings.ts';
import { RUNS_ANNOTATION, TEMPLATE_ANNOTATION } from './pod.ts';
import { toolReconciler } from './reconcile.ts';
import { parseTool } from './tool.ts';

const reconciler = toolReconciler(OPERATOR, () => Promise.reject(new Error('not asked')));

const OLD: Definitions = { tools: [{ name: 'get_pr', description: 'Reads one.', inputSchema: {} }] };
const NEW: Definitions = { tools: [{ name: 'get_pr', description: 'Reads all.', inputSchema: {} }] };
const listingOf = ({ tools, instructions }: Definitions) => {
  const { hash, functions } = snapshotListing(tools, instructions);
  return { hash, functions };
};
const hashOf = (definitions: Definitions) => `sha256:${listingOf(definitions).hash}`;

const V1 = aTool();
const V2_SPEC = { image: { ...IMAGE, reference: 'ghcr.example/acme/tool:2' } };
const annotation = (object: KubeObject, name: string) => {
  const { template } = object['spec'] as { template: { metadata: { annotations: Record<string, string> } } };
  return template.metadata.annotations[name] ?? '';
};
const wanted = (tool: KubeObject, kind: string, seen = {}) => {
  const outcome = reconciler.reconcile(observe(reconciler, tool, seen));
  return outcome.do === 'converge' ? outcome.children.find((child) => child.kind === kind) : undefined;
};
const workloadOf = (tool: KubeObject, kind = 'DaemonSet') => {
  const found = wanted(tool, kind);
  if (!found) throw new Error(`no ${kind}`);
  return live(found);
};

const WORKLOAD = workloadOf(V1);
const SNAPSHOT = {
  hash: hashOf(OLD),
  from: 'FirstListing',
  runs: annotation(WORKLOAD, RUNS_ANNOTATION),
  count: 1,
  functions: listingOf(OLD).functions.map(({ name, hash }) => ({ name, hash: `sha256:${hash}` })),
};
const V2 = aTool(V2_SPEC, { generation: 2 }, { snapshot: SNAPSHOT });
const PROBE = (() => {
  const found = wanted(V2, 'Deployment', { children: [WORKLOAD] });
  if (!found) throw new Error('no probe');
  return live(found, { replicas: 1, updatedReplicas: 1, readyReplicas: 1, availableReplicas: 1 });
})();
const PROBE_POD = podOf(PROBE, 'oz0t-everything--probe-1');

interface Scene {
  readonly tool?: KubeObject;
  readonly children?: readonly KubeObject[];
  readonly probes?: readonly KubeObject[];
  readonly said?: SidecarStatus;
  readonly given?: Definitions | Error;
}

/** A probe that was made, and its pod. */
function scene({ tool = V2, children = [], probes = [PROBE_POD], said, given }: Scene) {
  const key = `${annotation(PROBE, TEMPLATE_ANNOTATION)}/${PROBE_POD.metadata.uid}`;
  const about = `${key}/${hashOf(NEW)}`;
  const definitions: Sensed =
    given === undefined
      ? { state: 'none' }
      : given instanceof Error
        ? { state: 'failed', key: about, problem: given.message, ageMs: 0 }
        : { state: 'ok', key: about, value: { hash: hashOf(given), parts: packListing(given) }, ageMs: 0 };
  return {
    tool,
    seen: {
      children: [WORKLOAD, PROBE, ...children],
      reads: { pods: [podOf(WORKLOAD, 'a')], probes, trust: [TRUST] },
      sensed: {
        probe: said ? ({ state: 'ok', key, value: said, ageMs: 0 } as const) : ({ state: 'none' } as const),
        definitions,
      },
    },
  };
}

function look(given: Scene) {
  const { tool, seen } = scene(given);
  const outcome = reconciler.reconcile(observe(reconciler, tool, seen));
  if (outcome.do !== 'converge') throw new Error('held');
  const status = statusOf(reconciler, tool, seen);
  expect(judge(toolKind.schema, { ...tool, status })).toMatchObject({ ok: true });
  return {
    status,
    fact: verdict(status, 'SnapshotCurrent'),
    children: outcome.children.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    keep: (outcome.keep ?? []).map(({ kind, name }) => `${kind} ${name}`),
  };
}

const says = (definitions: Definitions, more: Partial<SidecarStatus> = {}) =>
  anAnswer({ podUid: PROBE_POD.metadata.uid ?? '', listing: listingOf(definitions), ...more });
const PROBING = 'Deployment oz0t-everything--probe';
const SERVING = 'DaemonSet oz0t-everything';

describe('[P02] a new version beside the one that serves', () => {
  test('it, as YAML, but for what its pod is made of', async () => {
    const probe = wanted(V2, 'Deployment', { children: [WORKLOAD] }) ?? PROBE;
    const { template, ...spec } = probe['spec'] as { template: { metadata: { labels: object } } };
    const shown = { ...probe, spec: { ...spec, template: { metadata: { labels: template.metadata.labels } } } };
    await expect(stringify(shown, { aliasDuplicateObjects: false })).toMatchFileSnapshot('golden/probe.golden.yaml');
  });

  test('it has the template that would be rolled out, but for the label by which pods are taken to serve', () => {
    const next = workloadOf(aTool(V2_SPEC));
    expect(annotation(PROBE, TEMPLATE_ANNOTATION)).toBe(annotation(next, TEMPLATE_ANNOTATION));
    const template = (object: KubeObject) =>
      (object['spec'] as { template: { spec: object; metadata: object } }).template;
    expect(template(PROBE).spec).toEqual(template(next).spec);
    expect(template(PROBE).metadata).toMatchObject({ labels: { 'oz0.ai/tool': 'everything.probe' } });
  });

  test('the workload is neither applied nor deleted meanwhile; the walls are kept up', () => {
    const { children, keep } = look({});
    expect(children).toEqual(['ServiceAccount oz0t-everything', 'NetworkPolicy oz0t-everything', PROBING]);
    expect(keep).toEqual([SERVING]);
  });

  test.for<[string, Scene, string, RegExp]>([
    ['it starts', { probes: [podOf(PROBE, 'p', NOT_READY)] }, 'Unknown Probing', /former version goes on/],
    [
      'its image is not there',
      {
        probes: [
          podOf(PROBE, 'p', {
            ...NOT_READY,
            containerStatuses: [
              { name: 'tool', state: { waiting: { reason: 'ErrImagePull', message: 'no such tag' } } },
            ],
          }),
        ],
      },
      'False NewVersionFails',
      /no such tag/,
    ],
    [
      'its server does not come up',
      {
        probes: [podOf(PROBE, 'oz0t-everything--probe-1', NOT_READY)],
        said: says(OLD, { phase: 'Down', problem: 'exit code 1' }),
      },
      'False NewVersionFails',
      /exit code 1/,
    ],
    [
      'its walls are being proved',
      {
        probes: [podOf(PROBE, 'oz0t-everything--probe-1', NOT_READY)],
        said: says(OLD, { phase: 'Down', problem: 'not proved', sandbox: { ...anAnswer().sandbox, holds: false } }),
      },
      'Unknown Probing',
      /./,
    ],
    [
      'it is asked, and its listing is one of before it was ready',
      { probes: [podOf(PROBE, 'oz0t-everything--probe-1', NOT_READY)], said: says(NEW) },
      'Unknown Probing',
      /./,
    ],
    ['[case 55] it lists nothing', { said: says({ tools: [] }) }, 'False NewVersionFails', /lists no function/],
    ['it lists something else', { said: says(NEW) }, 'False NewVersionWaits', /kubectl create/],
    ['it lists the same', { said: says(OLD) }, 'Unknown Probing', /accepted/],
  ])('%s', ([, given, fact, message]) => {
    const seen = look(given);
    expect(seen.fact).toBe(fact);
    expect(messageOf(seen.status, 'SnapshotCurrent')).toMatch(message);
    expect(seen.status['snapshot']).toMatchObject({ hash: hashOf(OLD) });
    expect(seen.keep).toContain(SERVING);
    expect(seen.children).toContain(PROBING);
  });

  test('a pod of an earlier try says nothing', () => {
    const { tool, seen } = scene({ said: says(NEW) });
    const [other] = [
      podOf(PROBE, 'oz0t-everything--probe-1', {}, { annotations: { [TEMPLATE_ANNOTATION]: 'earlier' } }),
    ];
    const status = statusOf(reconciler, tool, { ...seen, reads: { ...seen.reads, probes: other ? [other] : [] } });
    expect(verdict(status, 'SnapshotCurrent')).toBe('Unknown Probing');
  });
});

describe('[P05] what is told of it', () => {
  const parsed = parseTool(V2);
  if (!parsed.ok) throw new Error(parsed.problem);
  const kept = (role: 'snapshot' | 'pending', definitions: Definitions) =>
    listingObjects(parsed.value, role, hashOf(definitions), packListing(definitions) ?? []);
  const pendingOf = (given: Scene) => look(given).status['pending'] as { difference: string };
  const [byName, inFull] = [BY_NAME_ONLY, '"Reads one." → "Reads all."'];
  const waiting = (difference: string) =>
    aTool(
      V2_SPEC,
      { generation: 2 },
      {
        snapshot: SNAPSHOT,
        pending: { ...pendingOf({ said: says(NEW) }), difference },
      },
    );

  test.for<[string, Scene, string]>([
    ['by name, while more is asked for', { said: says(NEW) }, byName],
    ['by name, where the former listing was never kept', { said: says(NEW), given: NEW }, byName],
    ['in full, with both', { said: says(NEW), given: NEW, children: kept('snapshot', OLD) }, inFull],
    [
      'in full, once both are kept',
      { said: says(NEW), children: [...kept('snapshot', OLD), ...kept('pending', NEW)] },
      inFull,
    ],
    [
      'in full in place of by name',
      { tool: waiting(byName), said: says(NEW), given: NEW, children: kept('snapshot', OLD) },
      inFull,
    ],
    [
      'as it was told before',
      { tool: waiting('told'), said: says(NEW), given: NEW, children: kept('snapshot', OLD) },
      'told',
    ],
  ])('%s', ([, given, text]) => {
    expect(pendingOf(given).difference).toContain(text);
  });

  test('its pod stays until all of it is kept, or cannot be had', () => {
    const told = waiting('told');
    const probes = (given: Scene) => look({ tool: told, said: says(NEW), ...given }).children.includes(PROBING);
    expect(probes({})).toBe(true);
    expect(probes({ given: NEW })).toBe(true);
    expect(probes({ children: kept('pending', NEW) })).toBe(false);
    expect(probes({ given: new Error('status 404') })).toBe(false);
  });

  test('a listing is kept as soon as status speaks of it, and as long', () => {
    const listings = (given: Scene) => {
      const { children, keep } = look(given);
      const of = (names: readonly string[]) =>
        names.filter((name) => name.startsWith('ToolListing')).map((name) => name.slice(29, 38));
      return { made: of(children), kept: of(keep) };
    };
    expect(listings({ said: says(NEW), given: NEW })).toEqual({ made: [], kept: [] });
    expect(listings({ tool: waiting('told'), said: says(NEW), given: NEW })).toEqual({
      made: ['pending-'.padEnd(9, hashOf(NEW)[7])],
      kept: [],
    });
    expect(
      listings({
        tool: waiting('told'),
        children: [...kept('snapshot', OLD), ...kept('pending', NEW), ...kept('pending', OLD)],
      }).kept,
    ).toHaveLength(2);
  });
});

describe('[K10] a Tool that moves between one pod a node and pods anywhere', () => {
  const moved = aTool({ affinity: 'any', replicas: 2 }, { generation: 2 }, { snapshot: SNAPSHOT });
  const next = workloadOf(aTool({ affinity: 'any', replicas: 2 }), 'Deployment');
  const keepWith = (...children: KubeObject[]) => {
    const outcome = reconciler.reconcile(observe(reconciler, moved, { children }));
    return outcome.do === 'converge' ? (outcome.keep ?? []).map(({ kind }) => kind) : [];
  };

  test('keeps the former workload until the new one takes calls', () => {
    expect(keepWith(WORKLOAD)).toEqual(['DaemonSet']);
    expect(keepWith(WORKLOAD, { ...next, status: { observedGeneration: 1, replicas: 2 } })).toEqual(['DaemonSet']);
    expect(keepWith(WORKLOAD, next)).toEqual([]);
  });
});
