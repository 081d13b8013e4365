import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../../hack/shell/wait.ts';
import {
  agentPod,
  apply,
  callFunction,
  conditionOf,
  get,
  kubectl,
  type Live,
  listFunctions,
  type Manifest,
  OPERATOR_NAMESPACE,
  storyNamespace,
  waitForCondition,
  waitForPod,
} from './cluster.ts';
import { agentOf, probeTool } from './probe.ts';

/** A server that says something else than it said: what is held, what goes on serving, and what lets exactly that through. */
describe('a rug pull', () => {
  let namespace = '';
  let end: () => Promise<void> = async () => {};

  beforeAll(async () => {
    const made = await storyNamespace('snapshots');
    namespace = made.name;
    end = () => made[Symbol.asyncDispose]();
    await putListing('none');
    await apply(version('1'), agentOf(namespace, 'all', ['agent'], ['rug.*', 'drift.*']));
    await apply(probeTool(namespace, 'drift', { affinity: 'any', secrets: ['PROBE_LISTING'] }));
    for (const tool of ['rug', 'drift']) await waitForCondition('tool', namespace, tool, 'Ready', 'True', 240);
    await apply(...agentPod(namespace, 'agent', 'agent'));
    await waitForPod(namespace, 'agent');
  });

  afterAll(() => end());

  const version = (of: string, listing = 'none') =>
    probeTool(namespace, 'rug', { affinity: 'any', replicas: 1, env: { VERSION: of, PROBE_LISTING: listing } });
  /** What the server lists from its next start on, with no change of any pod's template. */
  const putListing = (listing: string) =>
    apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'drift', namespace },
      stringData: { PROBE_LISTING: listing },
    });
  const approve = (tool: string, hash: string, name: string) => {
    const approval: Manifest = {
      apiVersion: 'oz0.ai/v1alpha1',
      kind: 'SnapshotApproval',
      metadata: { name, namespace },
      spec: { tool, hash },
    };
    return apply(approval);
  };
  const toolOf = async (name: string): Promise<Live> => await get('tool', name, `--namespace=${namespace}`);
  const held = (name: string) =>
    waitFor(
      `${name} waits for approval`,
      async () => {
        const tool = await toolOf(name);
        const condition = conditionOf(tool, 'SnapshotCurrent');
        if (condition?.status === 'False' && tool.status.pending !== undefined) return tool;
        throw new Error(JSON.stringify(tool.status));
      },
      { timeoutSeconds: 90, everyMs: 1000 },
    );
  const call = (name: string, args: unknown = {}) => callFunction(namespace, 'agent', name, args);
  const described = async (tool: string) =>
    (await listFunctions(namespace, 'agent')).find(({ name }) => name === `${tool}__echo`)?.description;

  test('[P02] the first listing is the snapshot', async () => {
    const { status } = await toolOf('rug');
    expect(status.snapshot).toMatchObject({ from: 'FirstListing', hash: status.listing.hash });
    expect(status.snapshot.functions.length).toBe(status.listing.count);
  });

  test('[P02] [case 53] a new version that lists the same, in another order, needs nobody', async () => {
    const before = (await toolOf('rug')).status.snapshot.hash;
    await apply(version('2', 'order'));
    await rolled('2');
    const { status } = await toolOf('rug');
    expect(status.snapshot.hash).toBe(before);
    expect(status.pending).toBeUndefined();
  });

  /** Until every pod of the tool is of this version, and the Tool says so. */
  const rolled = (of: string) =>
    waitFor(
      `version ${of} runs alone`,
      async () => {
        const answer = await call('rug__environ');
        const environment = JSON.parse(answer.content[0].text);
        if (environment.VERSION === of) return true;
        throw new Error(`still ${environment.VERSION}`);
      },
      { timeoutSeconds: 120, everyMs: 1000 },
    );

  test.each([
    ['description', /description/],
    ['schema', /more/],
    ['annotation', /openWorldHint/],
    ['invisible', /200b/i],
    ['name', /echo2/],
  ])(
    '[P02] [P05] a new version with another %s waits; the old one serves; approving that hash lets it in',
    async (listing, shown) => {
      const before = await toolOf('rug');
      await apply(version(listing, listing));
      const waiting = await held('rug');
      expect(waiting.status.snapshot.hash).toBe(before.status.snapshot.hash);
      expect(waiting.status.pending.hash).not.toBe(before.status.snapshot.hash);
      expect(waiting.status.pending.difference).toMatch(shown);
      expect(conditionOf(waiting, 'SnapshotCurrent')?.message).toContain(waiting.status.pending.hash);
      // The old version serves all that it did; a moment after a rollout, a gateway may still know the pod before it.
      await waitFor(
        'the old version serves',
        async () => {
          const answer = await call('rug__echo', { text: 'old' });
          if (answer.isError !== true) return answer.content[0].text.includes('old') || undefined;
          throw new Error(JSON.stringify(answer));
        },
        { timeoutSeconds: 15, everyMs: 1000 },
      );
      expect(JSON.parse((await call('rug__environ')).content[0].text).VERSION).not.toBe(listing);

      await approve('rug', `sha256:${'0'.repeat(64)}`, `wrong-${listing}`);
      expect((await held('rug')).status.snapshot.hash).toBe(before.status.snapshot.hash);
      await approve('rug', waiting.status.pending.hash, `right-${listing}`);
      await rolled(listing);
      const after = await waitForCondition('tool', namespace, 'rug', 'SnapshotCurrent', 'True', 60);
      expect(after.status.snapshot).toMatchObject({ from: 'Approval', approval: `right-${listing}` });
      expect(after.status.snapshot.hash).toBe(waiting.status.pending.hash);
      await waitForCondition('snapshotapproval', namespace, `right-${listing}`, 'Ready', 'True', 30);
    },
  );

  test('[P03] an approval may be there before the change', async () => {
    const first = await toolOf('drift');
    await approve('rug', first.status.snapshot.hash, 'known-before');
    await apply(version('last'));
    await rolled('last');
    expect((await toolOf('rug')).status.snapshot).toMatchObject({
      hash: first.status.snapshot.hash,
      approval: 'known-before',
    });
  });

  test('[P05] [case 37] what changes while it runs is held alone, until exactly it is approved', async () => {
    const before = await described('drift');
    await call('drift__changeListing', { change: 'description' });
    const waiting = await held('drift');
    await waitFor('the gateway holds it', async () => ((await described('drift')) === undefined ? true : undefined), {
      timeoutSeconds: 30,
      everyMs: 500,
    });
    const refused = await call('drift__echo', { text: 'x' });
    expect(refused.isError).toBe(true);
    expect(refused._meta['ai.oz0/reason']).toBe('not-approved');
    expect((await call('drift__hostname')).isError ?? false).toBe(false);
    await approve('drift', waiting.status.pending.hash, 'drift-1');
    await waitForCondition('tool', namespace, 'drift', 'SnapshotCurrent', 'True', 60);
    await waitFor('it is served', async () => ((await described('drift')) === undefined ? undefined : true), {
      timeoutSeconds: 30,
      everyMs: 500,
    });
    expect(await described('drift')).not.toBe(before);
  });

  test('[case 52] everything starts anew at once and the server lists something else: nothing is learnt', async () => {
    const before = (await toolOf('drift')).status.snapshot;
    await putListing('schema');
    await Promise.all([
      kubectl('delete', 'pods', `--namespace=${OPERATOR_NAMESPACE}`, '--all', '--wait=false'),
      kubectl('delete', 'pods', `--namespace=${namespace}`, '--selector=oz0.ai/tool=drift', '--wait=false'),
    ]);
    for (const part of ['deployment/oz0-controller', 'deployment/oz0-edge', 'daemonset/oz0-gateway']) {
      await kubectl('rollout', 'status', part, `--namespace=${OPERATOR_NAMESPACE}`, '--timeout=110s');
    }
    const waiting = await held('drift');
    expect(waiting.status.snapshot.hash).toBe(before.hash);
    const refused = await waitFor(
      'the gateway answers',
      async () => {
        const answer = await call('drift__echo', { text: 'x' });
        if (answer._meta?.['ai.oz0/reason'] === 'not-approved') return answer;
        throw new Error(JSON.stringify(answer));
      },
      { timeoutSeconds: 60, everyMs: 1000 },
    );
    expect(refused.isError).toBe(true);
  });
});
