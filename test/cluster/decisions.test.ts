/**
 * Who decides on a call: proved by the API server, which judges every request on a ToolCall. The attackers are the agent, the
 * tool, whoever started the job, a namespace's editors and admins, other deciders, and somebody with every right in the namespace.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { waitFor } from '../../hack/shell/wait.ts';
import {
  type Actor,
  account,
  ask,
  bind,
  component,
  expectAllowed,
  expectRefused,
  person,
  tryCreate,
  tryPatch,
  untilMay,
} from './actors.ts';
import { apply, get, kubectl, type Live, type Manifest, OPERATOR_NAMESPACE, storyNamespace } from './cluster.ts';

const GROUP = 'story:deciders';
const ROLE = 'release-managers';
const HASH = `sha256:${'0123456789abcdef'.repeat(4)}`;

/** May decide, as the chart's role has it, and is nothing else. */
const approver = person('story-decisions-approver');
const second = person('story-decisions-second');
const member = person('story-decisions-member', GROUP);
const holder = person('story-decisions-holder');
const starter = person('story-decisions-starter', GROUP);
/** Has the group, and not the verb. */
const outsider = person('story-decisions-outsider', GROUP);
/** May patch ToolCalls, and not decide. */
const patcher = person('story-decisions-patcher');
const owner = person('story-decisions-owner');
const rescuer = person('story-decisions-owner', 'oz0:break-glass');
const elsewhere = person('story-decisions-elsewhere');
const gateway = component('gateway');
const controller = component('controller');

let space: Awaited<ReturnType<typeof storyNamespace>>;
let other: Awaited<ReturnType<typeof storyNamespace>>;
let namespace: string;
let caller: Actor;

type Fields = Record<string, unknown>;

const manifest = (kind: string, name: string, rest: Fields = {}): Manifest => ({
  apiVersion: 'oz0.ai/v1alpha1',
  kind,
  ...rest,
  metadata: { name, namespace, ...(rest['metadata'] as Fields | undefined) },
});
/** As a gateway writes it, for an agent that is not there: no gateway sends it. */
const toolCall = (name: string, spec: Fields = {}) =>
  manifest('ToolCall', name, {
    spec: {
      agent: 'nobody',
      agentUid: 'none',
      caller: caller.user,
      job: { id: 'j-1', startedBy: starter.user, proved: true },
      tool: 'none',
      function: 'merge',
      arguments: { number: 7 },
      argumentsHash: HASH,
      definition: HASH,
      policy: HASH,
      idempotencyKey: `k-${name}`,
      expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
      ...spec,
    },
  });

const uids = new Map<string, string>();

async function record(name: string, spec: Fields = {}, status?: Fields): Promise<string> {
  expectAllowed(await ask(gateway, ['create', '--filename=-'], toolCall(name, spec)));
  if (status) await say(name, status);
  uids.set(name, (await read(name)).metadata.uid);
  return name;
}

const read = (name: string): Promise<Live> => get('toolcall', name, `--namespace=${namespace}`);

/** The gateway's word on what became of it. */
async function say(name: string, status: Fields): Promise<void> {
  const object = { ...(await read(name)), status };
  expectAllowed(await ask(gateway, ['replace', '--subresource=status', '--filename=-'], object));
}

const decision = (actor: Actor, name: string, fields: Fields = {}) => ({
  decision: { verdict: 'approve', by: actor.user, uid: uids.get(name), ...fields },
});
const answer = (actor: Actor, name: string, fields: Fields = {}) => ({
  answer: { outcome: 'happened', by: actor.user, uid: uids.get(name), ...fields },
});
/** What would become of it. */
const tryDecide = (actor: Actor, name: string, fields: Fields = {}) =>
  tryPatch(actor, namespace, `toolcall/${name}`, { spec: decision(actor, name, fields) });
const tryAnswer = (actor: Actor, name: string, fields: Fields = {}) =>
  tryPatch(actor, namespace, `toolcall/${name}`, { spec: answer(actor, name, fields) });
/** For real, as a person does it. */
const decide = (actor: Actor, name: string, verdict = 'approve') =>
  ask(actor, [
    'patch',
    'toolcall',
    name,
    `--namespace=${namespace}`,
    '--type=merge',
    `--patch=${JSON.stringify({ spec: decision(actor, name, { verdict }) })}`,
  ]);

const refused = (attempt: Awaited<ReturnType<typeof tryCreate>>, message: RegExp) =>
  expectRefused(attempt, 'tool-calls', message);

/** By want of a right, before any policy is asked. */
function unauthorized({ ok, output }: Awaited<ReturnType<typeof tryCreate>>): void {
  expect(output).toMatch(/cannot (get|create|patch|update|delete) resource/);
  expect(ok).toBe(false);
}

const roleFor = (name: string, actor: Actor, rule: Fields): Manifest[] => [
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: { name, namespace },
    rules: [{ apiGroups: ['oz0.ai'], ...rule }],
  },
  {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: actor.user }],
  },
];

beforeAll(async () => {
  space = await storyNamespace('decisions');
  namespace = space.name;
  other = await storyNamespace('decisions-other');
  caller = account(namespace, 'reviewer');
  for (const actor of [approver, second, member, holder, starter]) await bind(namespace, actor, 'oz0-approver');
  // An agent's account that was given the right to decide: its own calls stay out of its reach.
  await apply({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: { name: 'agent-decides', namespace },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'oz0-approver' },
    subjects: [{ kind: 'ServiceAccount', name: 'reviewer', namespace }],
  });
  for (const role of ['view', 'edit', 'admin', 'oz0-author', 'oz0-operator', 'oz0-viewer'])
    await bind(namespace, person(`story-decisions-${role}`), role);
  await bind(namespace, owner, 'cluster-admin');
  await bind(other.name, elsewhere, 'oz0-approver');
  await apply(
    ...roleFor('holds', holder, { resources: ['deciders'], resourceNames: [ROLE, 'r15', 'r16'], verbs: ['decide'] }),
    ...roleFor('patches', patcher, { resources: ['toolcalls'], verbs: ['get', 'update', 'patch'] }),
  );
  await untilMay(caller, 'decide', 'toolcalls.oz0.ai', namespace);
  await untilMay(patcher, 'patch', 'toolcalls.oz0.ai', namespace);
  await untilMay(owner, 'decide', 'toolcalls.oz0.ai', namespace);
  await untilMay(elsewhere, 'decide', 'toolcalls.oz0.ai', other.name);

  await record('plain');
  await record('narrow', { deciders: [{ groups: [GROUP], roles: [ROLE] }], rule: 'default/merges' });
  await record('twice', { deciders: [{ groups: [GROUP] }, { roles: [ROLE] }] });
  await record('nobody', { deciders: [{ groups: [], roles: [] }] });
  await record('not-starter', { deciders: [{ notStarter: true }], rule: 'default/merges' });
  await record('unproved', {
    deciders: [{ groups: [GROUP], notStarter: true }],
    rule: 'default/merges',
    job: { id: 'j-1', startedBy: starter.user, proved: false },
  });
  await record('unsaid', { deciders: [{ notStarter: true }], job: { id: 'j-1' } });
});

afterAll(async () => {
  await space?.[Symbol.asyncDispose]();
  await other?.[Symbol.asyncDispose]();
});

describe('the record', () => {
  test('[Y03] gateways write it, and nobody else', async () => {
    expectAllowed(await tryCreate(gateway, toolCall('new')));
    for (const actor of [owner, rescuer]) refused(await tryCreate(actor, toolCall('new')), /gateways alone write it/);
    for (const actor of [approver, caller, controller]) unauthorized(await tryCreate(actor, toolCall('new')));
  });

  test('[Y03] [case 41] a gateway makes none that is decided, and decides on none', async () => {
    const forged = { decision: { verdict: 'approve', by: approver.user, uid: 'none' } };
    refused(await tryCreate(gateway, toolCall('new', forged)), /without decision/);
    const answered = { answer: { outcome: 'runAgain', by: approver.user, uid: 'none' } };
    refused(await tryCreate(gateway, toolCall('new', answered)), /without decision/);
    unauthorized(await tryDecide(gateway, 'plain'));
  });

  test('[Y03] what became of it is for gateways to say', async () => {
    const status = { status: { phase: 'Succeeded' } };
    refused(await tryPatch(owner, namespace, 'toolcall/plain', status, 'status'), /for gateways to say/);
    for (const actor of [approver, caller, controller])
      unauthorized(await tryPatch(actor, namespace, 'toolcall/plain', status, 'status'));
    // What a person may change is not that either.
    expectAllowed(await tryPatch(approver, namespace, 'toolcall/plain', { ...status, metadata: { labels: {} } }));
    expect((await read('plain')).status?.phase).not.toBe('Succeeded');
  });

  test.for<[string, Fields]>([
    ['an argument', { arguments: { number: 8 } }],
    ['one argument more', { arguments: { force: true } }],
    ['no arguments', { arguments: null }],
    ['the hash of the arguments', { argumentsHash: HASH.replace('0', '1') }],
    ['the function', { function: 'delete' }],
    ['the definition', { definition: HASH.replace('0', '1') }],
    ['the caller', { caller: 'jane' }],
    ['who started it', { job: { startedBy: 'jane' } }],
    ['who decides', { deciders: [{ groups: ['mine'] }] }],
    ['when it expires', { expiresAt: '2099-01-01T00:00:00Z' }],
  ])('[Y03] [case 41] nobody edits %s, alone or with a decision', async ([, spec]) => {
    for (const actor of [approver, owner]) {
      refused(
        await tryPatch(actor, namespace, 'toolcall/plain', { spec }),
        /nothing of the spec of ToolCall plain changes/,
      );
      const both = { spec: { ...spec, ...decision(actor, 'plain') } };
      refused(
        await tryPatch(actor, namespace, 'toolcall/plain', both),
        /nothing of the spec of ToolCall plain changes/,
      );
    }
  });

  test('[Y03] nobody deletes it, directly or by an owner that is gone', async () => {
    const remove = (actor: Actor) =>
      ask(actor, ['delete', 'toolcall', 'plain', `--namespace=${namespace}`, '--dry-run=server']);
    refused(await remove(owner), /is a record, which the operator deletes/);
    for (const actor of [approver, caller, gateway]) unauthorized(await remove(actor));
    expectAllowed(await remove(rescuer));
    expectAllowed(await remove(controller));
    for (const name of ['namespace-controller', 'generic-garbage-collector'])
      expectAllowed(await remove(account('kube-system', name)));
    const gone = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'gone' };
    for (const metadata of [{ ownerReferences: [gone] }, { finalizers: ['example.com/kept'] }]) {
      refused(await tryPatch(owner, namespace, 'toolcall/plain', { metadata }), /not for its owners or finalizers/);
    }
    expectAllowed(
      await tryPatch(approver, namespace, 'toolcall/plain', { metadata: { annotations: { seen: 'yes' } } }),
    );
  });
});

describe('[Y03] [case 41] who decides', () => {
  test('whoever has the verb, where no rule says more', async () => {
    for (const actor of [approver, second, member, owner]) {
      expectAllowed(await tryDecide(actor, 'plain'));
      expectAllowed(await tryDecide(actor, 'plain', { verdict: 'deny', note: 'Not today.' }));
    }
  });

  test('not the agent, though it has the verb', async () => {
    refused(await tryDecide(caller, 'plain'), /nobody decides on their own calls/);
    refused(await tryDecide(caller, 'plain', { verdict: 'deny' }), /nobody decides on their own calls/);
    refused(await tryDecide(caller, 'plain', { by: approver.user }), /in the name of another/);
  });

  test('not the tool, nor another account of the namespace, nor who decides elsewhere', async () => {
    for (const actor of [account(namespace, 'oz0t-none'), account(namespace, 'default'), elsewhere, outsider])
      unauthorized(await tryDecide(actor, 'plain'));
  });

  test.for(['view', 'edit', 'admin', 'oz0-author', 'oz0-operator', 'oz0-viewer'])('not who has %s', async (role) => {
    unauthorized(await tryDecide(person(`story-decisions-${role}`), 'plain'));
  });

  test('not who may patch and has no verb', async () => {
    refused(await tryDecide(patcher, 'plain'), /may not decide: .* the verb decide .* oz0-approver/);
  });

  test('nobody in the name of another', async () => {
    for (const actor of [approver, owner, patcher])
      refused(
        await tryDecide(actor, 'plain', { by: member.user }),
        /in the name of another: set by to story-decisions-/,
      );
  });

  test('on this object, and not on one of the same name before it', async () => {
    refused(
      await tryDecide(approver, 'plain', { uid: uids.get('narrow') }),
      /about another object than ToolCall plain/,
    );
    refused(await tryDecide(approver, 'plain', { uid: 'plain' }), new RegExp(`metadata.uid, ${uids.get('plain')}`));
  });

  test('members of the group, and who has the role', async () => {
    for (const actor of [member, holder, starter]) expectAllowed(await tryDecide(actor, 'narrow'));
    for (const actor of [approver, second])
      refused(
        await tryDecide(actor, 'narrow'),
        /for others to decide: members of story:deciders, or who has .* release-managers/,
      );
    unauthorized(await tryDecide(outsider, 'narrow'));
  });

  test('each of several sets must be met', async () => {
    for (const actor of [approver, member, holder]) refused(await tryDecide(actor, 'twice'), /for others to decide/);
    expectAllowed(await tryDecide({ ...holder, groups: [...holder.groups, GROUP] }, 'twice'));
  });

  test('[case 42] nobody is in an empty set', async () => {
    for (const actor of [member, owner])
      refused(await tryDecide(actor, 'nobody'), /for others to decide: members of no group/);
  });

  test('roles are asked for one by one, up to sixteen', async () => {
    const named = (from: number) => ({ roles: Array.from({ length: 8 }, (_, index) => `r${from + index}`) });
    await record('roles', { deciders: [{ roles: [...named(0).roles.slice(1), 'r16'] }, named(8)] });
    expectAllowed(await tryDecide(holder, 'roles'));
    refused(await tryDecide(approver, 'roles'), /for others to decide/);
    await record('more-roles', { deciders: [named(0), named(8), { roles: ['r17'] }] });
    refused(await tryDecide(holder, 'more-roles'), /for others to decide/);
  });

  test('not who started the job, where a rule says so', async () => {
    refused(await tryDecide(starter, 'not-starter'), /started the job of ToolCall not-starter/);
    expectAllowed(await tryDecide(approver, 'not-starter'));
    expectAllowed(await tryDecide(starter, 'plain'));
  });

  test('nobody, where who started it is not proved', async () => {
    for (const actor of [starter, member, holder, owner])
      refused(
        await tryDecide(actor, 'unproved'),
        /nobody can decide ToolCall unproved.*take notStarter out of the rule default\/merges/,
      );
    refused(await tryDecide(approver, 'unsaid'), /nobody can decide ToolCall unsaid/);
  });
});

describe('[Y03] a decision is made once, while the call waits', () => {
  test('[case 41] of two at once one holds, and the other is told whose', async () => {
    await record('race');
    const answers = await Promise.all([decide(approver, 'race'), decide(second, 'race', 'deny')]);
    expect(
      answers.filter(({ ok }) => ok),
      JSON.stringify(answers),
    ).toHaveLength(1);
    const { by, verdict } = (await read('race')).spec.decision;
    expect([`${approver.user} approve`, `${second.user} deny`]).toContain(`${by} ${verdict}`);
    const [late] = answers.filter(({ ok }) => !ok);
    expect(late?.output).toMatch(new RegExp(`decided already, by ${by}`));
  });

  test('it is neither changed nor taken back', async () => {
    await record('decided');
    expectAllowed(await decide(approver, 'decided', 'deny'));
    const before = (await read('decided')).spec.decision;
    for (const actor of [approver, second, owner]) refused(await tryDecide(actor, 'decided'), /decided already, by/);
    const none = { spec: { decision: null } };
    refused(await tryPatch(approver, namespace, 'toolcall/decided', none), /decided already, by/);
    refused(
      await tryPatch(approver, namespace, 'toolcall/decided', { spec: { decision: { note: 'x' } } }),
      /decided already, by/,
    );
    expect((await read('decided')).spec.decision).toEqual(before);
  });

  test('an approval does not fit another call with the same arguments', async () => {
    await record('again');
    const { decision: replayed } = (await read('decided')).spec;
    refused(
      await tryPatch(approver, namespace, 'toolcall/again', {
        spec: { decision: { ...replayed, verdict: 'approve' } },
      }),
      /about another object than ToolCall again/,
    );
    refused(
      await tryPatch(second, namespace, 'toolcall/again', { spec: { decision: replayed } }),
      /in the name of another/,
    );
  });

  test('[case 41] not when it has expired, whether a gateway has said so or not', async () => {
    const past = { expiresAt: new Date(Date.now() - 60_000).toISOString() };
    await record('late', past);
    refused(await tryDecide(approver, 'late'), /expired/i);
    await record('expired', past, { phase: 'Expired' });
    refused(await tryDecide(approver, 'expired'), /ToolCall expired is Expired and waits for no decision/);
  });

  test.for(['Sending', 'Succeeded', 'Failed', 'Refused', 'Stopped', 'Expired'])('not when it is %s', async (phase) => {
    const name = await record(`is-${phase.toLowerCase()}`, {}, { phase });
    refused(await tryDecide(approver, name), /waits for no decision/);
    refused(await tryAnswer(approver, name), /only a call whose outcome is Unknown is answered/);
  });

  test('not when it was sent at once', async () => {
    const sender = { pod: 'none', nonce: 'none', node: 'none' };
    const notAfter = new Date(Date.now() + 3_600_000).toISOString();
    await record('sent', { sender, notAfter, arguments: null });
    const { ok, output } = await tryDecide(approver, 'sent');
    expect(output).toContain('a call that is sent at once waits for nobody');
    expect(ok).toBe(false);
  });
});

describe('[Y03] [R06] an answer to an unknown outcome', () => {
  test('is given by who may decide, in their own name, once', async () => {
    await record('unknown', { deciders: [{ groups: [GROUP], notStarter: true }] }, { phase: 'Unknown' });
    for (const outcome of ['happened', 'runAgain', 'stop'])
      expectAllowed(await tryAnswer(member, 'unknown', { outcome }));
    refused(await tryDecide(member, 'unknown'), /is Unknown and waits for no decision any more: set spec.answer/);
    refused(await tryAnswer(member, 'unknown', { by: approver.user }), /in the name of another/);
    refused(await tryAnswer(member, 'unknown', { uid: uids.get('plain') }), /about another object/);
    refused(await tryAnswer(approver, 'unknown'), /for others to decide/);
    refused(await tryAnswer(starter, 'unknown'), /started the job/);
    refused(await tryAnswer(caller, 'unknown'), /nobody decides on their own calls/);
    refused(await tryAnswer(patcher, 'unknown'), /may not decide/);
    const patch = JSON.stringify({ spec: answer(member, 'unknown') });
    const given = ['patch', 'toolcall', 'unknown', `--namespace=${namespace}`, '--type=merge', `--patch=${patch}`];
    expectAllowed(await ask(member, given));
    refused(await tryAnswer(member, 'unknown', { outcome: 'runAgain' }), /answered already, by story-decisions-member/);
  });

  test('is not given to one that waits, nor with a decision', async () => {
    refused(await tryAnswer(approver, 'plain'), /is Waiting, and only a call whose outcome is Unknown is answered/);
    const both = { spec: { ...decision(approver, 'plain'), ...answer(approver, 'plain') } };
    refused(await tryPatch(approver, namespace, 'toolcall/plain', both), /never both at once/);
  });
});

describe('[Y06] a Stop', () => {
  const stop = (spec: Fields, where = namespace) => manifest('Stop', 'story', { metadata: { namespace: where }, spec });
  const operator = person('story-decisions-oz0-operator');

  test('of a tool, a plugin, an agent or the namespace is for who answers for its agents', async () => {
    for (const spec of [{ tool: 'a' }, { plugin: 'a' }, { agent: 'a' }, { all: true }]) {
      expectAllowed(await tryCreate(operator, stop(spec)));
      for (const role of ['edit', 'admin', 'oz0-author'])
        unauthorized(await tryCreate(person(`story-decisions-${role}`), stop(spec)));
      for (const actor of [caller, approver]) unauthorized(await tryCreate(actor, stop(spec)));
    }
  });

  test('of the cluster is applied in the namespace of the operator, and nowhere else', async () => {
    for (const actor of [operator, owner])
      expectRefused(
        await tryCreate(actor, stop({ cluster: true })),
        'stops',
        /stopped from namespace oz0-system.*all: true/,
      );
    const admin = person('story-decisions-admin-of-all', 'system:masters');
    expectAllowed(await tryCreate(admin, stop({ cluster: true }, OPERATOR_NAMESPACE)));
    unauthorized(await tryCreate(owner, stop({ cluster: true }, OPERATOR_NAMESPACE)));
  });

  test('does not grow into one of the cluster', async () => {
    await apply(manifest('Stop', 'small', { spec: { tool: 'none' } }));
    const grown = { spec: { tool: null, cluster: true } };
    expectRefused(await tryPatch(operator, namespace, 'stop/small', grown), 'stops', /stopped from namespace/);
  });
});

describe('[P03] who applied a SnapshotApproval', () => {
  const BY = 'oz0.ai/applied-by';
  const approval = (name: string, annotations?: Fields) =>
    manifest('SnapshotApproval', name, {
      metadata: annotations === undefined ? {} : { annotations },
      spec: { tool: 'none', hash: HASH },
    });
  const signed = ({ output }: Awaited<ReturnType<typeof tryCreate>>) => JSON.parse(output).metadata.annotations?.[BY];
  let stamped: boolean;

  beforeAll(async () => {
    const policies = await kubectl('get', 'mutatingadmissionpolicies', '--output=name').catch(() => '');
    stamped = policies.includes('snapshot-approvals.oz0.ai');
  });

  test('is on it, as the API server knows them', async ({ skip }) => {
    skip(!stamped, 'this API server serves no MutatingAdmissionPolicy');
    const made = await tryCreate(approver, approval('story'));
    expectAllowed(made);
    expect(signed(made)).toBe(approver.user);
  });

  test('[case 41] is not forged when it is made', async () => {
    const made = await tryCreate(approver, approval('story', { [BY]: second.user }));
    if (stamped) expect(signed(made)).toBe(approver.user);
    else expectRefused(made, 'snapshot-approvals', /leave it out, or set it to story-decisions-approver/);
    expect(signed(await tryCreate(approver, approval('story', { [BY]: approver.user })))).toBe(approver.user);
  });

  test('[case 41] nor changed, nor taken off, afterwards', async () => {
    const file = ['create', '--filename=-'];
    expectAllowed(await ask(approver, file, approval('kept', { [BY]: approver.user })));
    for (const value of [second.user, 'jane', null]) {
      const answered = await tryPatch(second, namespace, 'snapshotapproval/kept', {
        metadata: { annotations: { [BY]: value } },
      });
      if (stamped) expect(signed(answered)).toBe(approver.user);
      else expectRefused(answered, 'snapshot-approvals', /leave it at story-decisions-approver/);
    }
    expectAllowed(await tryPatch(second, namespace, 'snapshotapproval/kept', { metadata: { labels: { a: 'b' } } }));
    const other = { spec: { hash: HASH.replace('0', '1') } };
    expect((await tryPatch(approver, namespace, 'snapshotapproval/kept', other)).output).toContain('make another one');
  });

  test('[case 41] neither the agent, the tool nor an editor applies one', async () => {
    const actors = [account(namespace, 'other'), account(namespace, 'oz0t-none'), gateway, controller];
    const people = ['view', 'edit', 'admin', 'oz0-author', 'oz0-viewer'].map((role) =>
      person(`story-decisions-${role}`),
    );
    for (const actor of [...actors, ...people]) unauthorized(await tryCreate(actor, approval('story')));
    expectAllowed(await tryCreate(person('story-decisions-oz0-operator'), approval('story')));
  });
});

test('[Y03] a namespace takes its ToolCalls with it', async () => {
  const gone = await storyNamespace('decisions-gone');
  const object = toolCall('left');
  expectAllowed(
    await ask(gateway, ['create', '--filename=-'], {
      ...object,
      metadata: { ...object.metadata, namespace: gone.name },
    }),
  );
  await gone[Symbol.asyncDispose]();
  await waitFor(
    'the namespace is gone',
    async () =>
      (await kubectl('get', 'namespace', gone.name, '--ignore-not-found', '--output=name')) === '' || undefined,
    { timeoutSeconds: 60, everyMs: 500 },
  );
});
